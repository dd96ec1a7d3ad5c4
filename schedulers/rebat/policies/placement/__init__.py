# SPDX-License-Identifier: Apache-2.0
"""On which nodes an attempt runs: choosers, and the plans that reserve what they choose."""
