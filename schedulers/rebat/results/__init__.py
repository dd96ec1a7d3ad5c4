# SPDX-License-Identifier: Apache-2.0
"""What runs report: the catalogue of metrics, intervals over seeds, comparisons and tables."""
