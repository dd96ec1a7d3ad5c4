# SPDX-License-Identifier: Apache-2.0
"""Executors of units of work: local processes, Dask, or jobs of a batch system."""
