"""The verbs of ``import rebat``; the command line calls the same."""
