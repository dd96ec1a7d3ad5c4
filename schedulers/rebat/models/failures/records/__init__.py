"""Readers of failure records, a module each; `formats` is the table of them."""
