# SPDX-License-Identifier: Apache-2.0
"""Code that the reports of all papers share: an index of runs, claims, tables, the page."""
