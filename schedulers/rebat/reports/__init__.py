# SPDX-License-Identifier: Apache-2.0
"""Reports of campaigns: a folder per paper, and what they share."""
