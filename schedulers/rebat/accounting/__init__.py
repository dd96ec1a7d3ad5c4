# SPDX-License-Identifier: Apache-2.0
"""Accounting records of batch systems: Slurm's sacct and sacctmgr, and OpenPBS."""
