# SPDX-License-Identifier: Apache-2.0
"""What runs say: intervals over seeds, and the table of a campaign's results."""
