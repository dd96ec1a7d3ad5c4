"""Boxes on a torus for many jobs at once: what they cost, and when foresight pays."""
