# SPDX-License-Identifier: Apache-2.0
"""The embedded engine, which behaves like Batsim 4.2.1 for delay profiles on an ideal network."""
