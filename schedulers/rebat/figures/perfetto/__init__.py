# SPDX-License-Identifier: Apache-2.0
"""A run as a trace for the Perfetto viewer (https://ui.perfetto.dev)."""
