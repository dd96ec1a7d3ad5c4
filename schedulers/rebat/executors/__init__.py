# SPDX-License-Identifier: Apache-2.0
"""Where units of work run: in processes, on Dask, in jobs of a batch system."""
