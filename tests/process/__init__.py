"""The real server as a real process: how it starts, what its stdio may be, and how it ends."""
