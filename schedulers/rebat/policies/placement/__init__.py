"""On which nodes an attempt runs: choosers, and the plans that reserve what they choose."""
