# SPDX-License-Identifier: Apache-2.0
"""Pictures, drawn by matplotlib without a display."""
