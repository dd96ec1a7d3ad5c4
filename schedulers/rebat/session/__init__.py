# SPDX-License-Identifier: Apache-2.0
"""The session: the state of a simulation, and calls of the policy. It uses no sockets or files."""
