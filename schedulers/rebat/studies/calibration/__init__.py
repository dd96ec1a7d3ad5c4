# SPDX-License-Identifier: Apache-2.0
"""Comparison of simulated waits with the recorded waits of a cluster."""
