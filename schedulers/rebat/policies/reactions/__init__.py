"""What to do when nodes fail under running jobs."""
