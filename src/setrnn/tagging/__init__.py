"""The use cases: train, tag, complete, explain, evaluate, calibrate."""
