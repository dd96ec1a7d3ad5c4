"""Platforms: named machines, and SimGrid's XML for them, written and read."""
