"""Runs as one page that can be explored: drawn by Bokeh, binned in the browser, no network."""
