# SPDX-License-Identifier: Apache-2.0
"""The effective training time of one job: the job's description, its simulations and the page."""
