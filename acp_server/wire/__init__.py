"""ACP v1 messages as lean models: only what we read, named as the protocol names it."""
