"""Models of the world: checkpoints, failures, silent errors, topologies."""
