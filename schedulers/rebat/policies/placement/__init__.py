# SPDX-License-Identifier: Apache-2.0
"""Placements: rules that choose nodes, and the plans that reserve the nodes."""
