# SPDX-License-Identifier: Apache-2.0
"""Embedded engine: behaves like Batsim 4.2.1 for delay workloads, without a network."""
