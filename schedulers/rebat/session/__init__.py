# SPDX-License-Identifier: Apache-2.0
"""The session keeps the state of a simulation and calls the policy. It uses no sockets or files."""
