# SPDX-License-Identifier: Apache-2.0
"""Shared data types: times, jobs, node sets, events, decisions, errors."""
