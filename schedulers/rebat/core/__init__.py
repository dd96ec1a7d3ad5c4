"""What everything else speaks in: times, jobs, node sets, events, decisions, errors."""
