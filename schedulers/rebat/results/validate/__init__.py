# SPDX-License-Identifier: Apache-2.0
"""Validation of a schedule in Batsim's files, for any scheduler."""
