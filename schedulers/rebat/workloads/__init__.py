# SPDX-License-Identifier: Apache-2.0
"""Workloads: readers of traces and Batsim JSON, generators, and a summary.

Import the modules directly, because the package imports none of them.
"""
