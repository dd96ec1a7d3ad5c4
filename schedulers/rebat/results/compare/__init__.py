# SPDX-License-Identifier: Apache-2.0
"""Comparison of two schedules of a workload, job by job."""
