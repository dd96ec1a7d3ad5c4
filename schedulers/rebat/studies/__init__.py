# SPDX-License-Identifier: Apache-2.0
"""Studies of a cluster: advice, the calibration with its records, and the goodput of training."""
