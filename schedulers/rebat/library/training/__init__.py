# SPDX-License-Identifier: Apache-2.0
"""The effective training time of one job: its case, its simulation and its page."""
