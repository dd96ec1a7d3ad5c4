# SPDX-License-Identifier: Apache-2.0
"""The command line: thin; everything it does is a library call."""
