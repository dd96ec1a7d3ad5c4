# SPDX-License-Identifier: Apache-2.0
"""Runs as one page that can be explored: drawn by Bokeh, binned in the browser, no network."""
