# SPDX-License-Identifier: Apache-2.0
"""The story of a job: the reasons for its start time, from the recorded plans of a run."""
