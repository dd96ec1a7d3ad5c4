# SPDX-License-Identifier: Apache-2.0
"""The metrics of a run, measured on its ledger."""
