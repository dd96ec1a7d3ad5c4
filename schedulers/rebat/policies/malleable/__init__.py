"""Malleable jobs: who grows, who shrinks, and when."""
