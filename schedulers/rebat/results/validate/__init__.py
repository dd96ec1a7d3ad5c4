# SPDX-License-Identifier: Apache-2.0
"""Checks of a schedule in Batsim's files: what no machine and no Batsim could have done."""
