"""Tools: what one is, how a call is checked and run, and the ones that come with the house."""
