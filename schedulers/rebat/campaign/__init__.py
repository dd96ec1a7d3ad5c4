# SPDX-License-Identifier: Apache-2.0
"""Campaigns: many runs from one file, and their results."""
