"""rebat: resilient batch schedulers for Batsim."""

__version__ = "0.1.0"
