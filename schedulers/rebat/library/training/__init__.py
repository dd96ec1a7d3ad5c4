# SPDX-License-Identifier: Apache-2.0
"""The effective training time of one job: its definition (case), simulation and page."""
