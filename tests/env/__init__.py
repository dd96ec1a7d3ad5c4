# SPDX-License-Identifier: Apache-2.0
"""The environment for reinforcement learning, and agents as policies."""
