# SPDX-License-Identifier: Apache-2.0
"""The files of a run: Batsim's own and rebat's, written and read."""
