"""How far predictions can be trusted: calibrated probabilities, and which to accept."""
