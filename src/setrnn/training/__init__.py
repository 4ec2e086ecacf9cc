"""Train the networks: Algorithm 2."""
