"""Reports of campaigns: a folder per paper, and what they share."""
