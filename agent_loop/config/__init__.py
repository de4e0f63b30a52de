"""Settings: what can be set, where each value came from, and which model they name."""
