# SPDX-License-Identifier: Apache-2.0
"""Malleable jobs: which ones grow and shrink, and when."""
