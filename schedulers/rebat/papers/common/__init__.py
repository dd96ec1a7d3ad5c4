# SPDX-License-Identifier: Apache-2.0
"""Code for the reports of all papers: an index of runs, claims, tables, and the page."""
