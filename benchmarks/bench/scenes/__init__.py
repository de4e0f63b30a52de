"""What is done with agents: each module is one scene, with processes of its own in every round."""
