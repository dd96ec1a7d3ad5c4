# SPDX-License-Identifier: Apache-2.0
"""The metrics of a run, computed from its ledger (the record of all attempts)."""
