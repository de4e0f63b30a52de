"""The benchmark's own pieces: a client, the agents, the parts of a round, the figures and their table."""
