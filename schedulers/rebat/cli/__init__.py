"""The command line: thin; everything it does is a library call."""
