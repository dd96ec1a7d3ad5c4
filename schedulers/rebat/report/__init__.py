"""Files and tables that a run leaves behind."""
