# SPDX-License-Identifier: Apache-2.0
"""Readers of failure records, a module each; `formats` is the table of them."""
