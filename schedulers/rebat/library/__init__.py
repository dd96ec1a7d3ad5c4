# SPDX-License-Identifier: Apache-2.0
"""The verbs of ``import rebat``; the command line calls the same."""
