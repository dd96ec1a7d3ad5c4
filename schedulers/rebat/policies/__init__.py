"""What to do: queue orders, planning, placement, recovery, and their named combinations."""
