"""Plugins: what stands around the loop. Each is a stranger to the loop and to the others."""
