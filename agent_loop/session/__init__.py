"""One conversation: its header, its append-only log of facts, and what can be derived from them."""
