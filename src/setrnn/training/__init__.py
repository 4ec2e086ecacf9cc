"""Training the recurrent systems: Algorithm 2, on Lightning Fabric."""
