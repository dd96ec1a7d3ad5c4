"""What is told to people while something runs: lines, bars, tables."""
