# SPDX-License-Identifier: Apache-2.0
"""The tables of a simulation: jobs, attempts, nodes, stops, waits, and those of the plan."""
