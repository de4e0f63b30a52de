"""How bytes come in and go out: framing, stdio, and an in-memory pair for tests."""
