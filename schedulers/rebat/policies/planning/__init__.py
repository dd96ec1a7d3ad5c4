# SPDX-License-Identifier: Apache-2.0
"""Plannings: their options, and decisions on starts in Python. `rebat.rules.plan` plans."""
