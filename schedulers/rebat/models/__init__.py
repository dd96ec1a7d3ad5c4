# SPDX-License-Identifier: Apache-2.0
"""Models of the world: checkpoints, failures, silent errors, topologies."""
