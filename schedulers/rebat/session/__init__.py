# SPDX-License-Identifier: Apache-2.0
"""The scheduler's state machine: bytes and sockets stay outside, policies plug in."""
