"""Permission: decides, before a tool acts, whether it may, and asks the person when that is theirs to say."""
