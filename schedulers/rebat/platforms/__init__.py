# SPDX-License-Identifier: Apache-2.0
"""Platforms: named machines, and SimGrid's XML for them, written and read."""
