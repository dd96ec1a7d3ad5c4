# SPDX-License-Identifier: Apache-2.0
"""The report of any campaign of simulations: policies side by side, nothing of a paper."""
