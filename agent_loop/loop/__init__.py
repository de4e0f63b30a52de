"""The ReAct loop: call the model, run its tools, repeat. Everything else stands around it.

`driver` decides which prompt comes next, `turn` when steps stop, `step` is one request and its tools.
"""
