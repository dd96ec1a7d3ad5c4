# SPDX-License-Identifier: Apache-2.0
"""Public functions of ``import rebat``; the command line calls the same functions."""
