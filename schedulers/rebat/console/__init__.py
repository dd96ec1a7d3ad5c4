# SPDX-License-Identifier: Apache-2.0
"""Output on the console: lines, progress bars and tables."""
