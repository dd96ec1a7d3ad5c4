# SPDX-License-Identifier: Apache-2.0
"""Whole evaluations: one run, many runs, their results."""
