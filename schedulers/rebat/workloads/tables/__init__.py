# SPDX-License-Identifier: Apache-2.0
"""Tables of jobs with any columns (CSV, Parquet and JSON), and a mapping for each data set."""
