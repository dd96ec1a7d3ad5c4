# SPDX-License-Identifier: Apache-2.0
"""Plannings: rules for when each queued attempt starts."""
