# SPDX-License-Identifier: Apache-2.0
"""The drivers of the rules: a heap of events, messages of Batsim, and policies that are asked."""
