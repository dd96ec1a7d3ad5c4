# SPDX-License-Identifier: Apache-2.0
"""Placements: choosers of nodes, and the plans that reserve them."""
