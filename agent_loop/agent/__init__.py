"""The agent: the handle others hold, its inbox, its cancel token, and the registry of agents."""
