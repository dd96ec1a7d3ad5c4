# SPDX-License-Identifier: Apache-2.0
"""Reports of campaigns: an index of runs, claims, tables, figures, and the page."""
