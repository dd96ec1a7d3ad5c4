# SPDX-License-Identifier: Apache-2.0
"""The command line. Each command checks its options, then calls the library."""
