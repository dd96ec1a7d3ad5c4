# SPDX-License-Identifier: Apache-2.0
"""Two schedules of one workload, compared job by job."""
