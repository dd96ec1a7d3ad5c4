# SPDX-License-Identifier: Apache-2.0
"""The story of a job. It gives the reasons for its start time, from recorded plans of a run."""
