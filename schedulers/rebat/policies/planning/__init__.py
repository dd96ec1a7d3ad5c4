# SPDX-License-Identifier: Apache-2.0
"""Plannings: rules that decide when each queued attempt starts."""
