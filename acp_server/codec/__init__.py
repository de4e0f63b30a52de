"""Pure converters between the loop's values and ACP's; no I/O, no state."""
