"""Whole evaluations: one run, many runs, their results."""
