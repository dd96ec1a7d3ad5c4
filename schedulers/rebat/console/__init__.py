# SPDX-License-Identifier: Apache-2.0
"""What is told to people while something runs: lines, bars, tables."""
