# SPDX-License-Identifier: Apache-2.0
"""What drives the gain of node stealing: the paper and its program, one difference at a time."""
