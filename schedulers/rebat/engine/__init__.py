# SPDX-License-Identifier: Apache-2.0
"""The embedded engine. For delay profiles on an ideal network, it behaves like Batsim 4.2.1."""
