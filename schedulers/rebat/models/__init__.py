# SPDX-License-Identifier: Apache-2.0
"""Models of failures, checkpoints, silent errors and topologies."""
