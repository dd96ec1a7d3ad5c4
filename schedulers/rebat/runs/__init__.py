# SPDX-License-Identifier: Apache-2.0
"""One run: its options, its scenario, its seeds, its key, and how it is simulated."""
