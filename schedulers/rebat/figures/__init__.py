# SPDX-License-Identifier: Apache-2.0
"""Figures, drawn by matplotlib without a display."""
