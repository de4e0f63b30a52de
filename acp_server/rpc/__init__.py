"""JSON-RPC 2.0, both ways: the peer, its dispatch, our calls to the editor, and the methods table."""
