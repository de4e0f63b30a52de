"""The providers there are; each imports its SDK in `load()`, never when it is itself imported."""
