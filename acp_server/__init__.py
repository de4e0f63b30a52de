"""The ACP bridge: an agent server that editors spawn and drive over stdio."""
