# SPDX-License-Identifier: Apache-2.0
"""Reactions to failures and other events that concern running jobs."""
