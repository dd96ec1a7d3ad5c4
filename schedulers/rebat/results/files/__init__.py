# SPDX-License-Identifier: Apache-2.0
"""Readers and writers of the files of a run, in Batsim's and in rebat's formats."""
