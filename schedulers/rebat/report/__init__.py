# SPDX-License-Identifier: Apache-2.0
"""Files and tables that a run leaves behind."""
