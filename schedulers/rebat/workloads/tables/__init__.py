# SPDX-License-Identifier: Apache-2.0
"""Tables of jobs in any columns: CSV, Parquet and JSON, with a mapping per data set."""
