"""Wire formats: bytes to typed messages and back, one module per Batsim version, no I/O."""
