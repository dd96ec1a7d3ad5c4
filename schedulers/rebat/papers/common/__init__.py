# SPDX-License-Identifier: Apache-2.0
"""Code that the papers' reports share: an index of runs, claims, tables, the page."""
