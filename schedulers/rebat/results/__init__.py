# SPDX-License-Identifier: Apache-2.0
"""Results of runs: the catalogue of metrics, intervals over seeds, comparisons and tables."""
