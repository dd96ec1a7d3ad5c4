# SPDX-License-Identifier: Apache-2.0
"""Readers of failure records, one module each; `formats` is the table of them."""
