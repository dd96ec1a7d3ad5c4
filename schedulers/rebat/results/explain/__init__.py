# SPDX-License-Identifier: Apache-2.0
"""The story of a job from the recorded plans of a run: why it started when it did."""
