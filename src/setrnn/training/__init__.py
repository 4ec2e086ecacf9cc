"""Train the networks: Algorithm 2, on Lightning Fabric."""
