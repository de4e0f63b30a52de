"""What a person can choose for a session while it lives: modes, and the config options that follow them."""
