"""Models: what a request is, what a provider must do, and the providers there are."""
