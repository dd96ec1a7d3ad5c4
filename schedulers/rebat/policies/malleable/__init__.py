# SPDX-License-Identifier: Apache-2.0
"""Malleable jobs: which jobs grow and shrink, and when."""
