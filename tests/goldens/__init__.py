"""The golden harness: plays `goldens/*/when.jsonl` against the real server and compares what came of it."""
