# SPDX-License-Identifier: Apache-2.0
"""The embedded engine: behaves as Batsim 4.2.1 does for delay workloads, without a network."""
