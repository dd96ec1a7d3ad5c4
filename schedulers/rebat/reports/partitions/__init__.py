# SPDX-License-Identifier: Apache-2.0
"""Boxes on a torus for many jobs at once: what they cost, and when foresight pays."""
