# SPDX-License-Identifier: Apache-2.0
"""``rebat whatif``: a local page with the answer for settings that the user changes."""
