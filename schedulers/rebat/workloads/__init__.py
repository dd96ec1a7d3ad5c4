# SPDX-License-Identifier: Apache-2.0
"""Workloads: readers of traces and of Batsim's own JSON, generators, and a summary.

The modules are imported one by one, so that this package costs nothing to import.
"""
