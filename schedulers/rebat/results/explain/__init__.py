# SPDX-License-Identifier: Apache-2.0
"""The story of a job from the recorded plans of a run: the reasons for its start time."""
