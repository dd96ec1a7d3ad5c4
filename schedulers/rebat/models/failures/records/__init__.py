# SPDX-License-Identifier: Apache-2.0
"""Readers of failure records, a module for each format; `formats` contains the table of formats."""
