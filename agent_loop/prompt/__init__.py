"""The system prompt: ordered sections, who contributes them, how they become one text."""
