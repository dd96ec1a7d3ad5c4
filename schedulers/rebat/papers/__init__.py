# SPDX-License-Identifier: Apache-2.0
"""A folder per paper with all that is its own, and what their reports share."""
