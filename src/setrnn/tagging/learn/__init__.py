"""Make models: train, automatic, mix, distil, update."""
