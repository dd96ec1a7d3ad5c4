# SPDX-License-Identifier: Apache-2.0
"""Malleable jobs: who grows, who shrinks, and when."""
