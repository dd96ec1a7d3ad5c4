# SPDX-License-Identifier: Apache-2.0
"""What a run was worth: per job, per size class, per node-second of the platform."""
