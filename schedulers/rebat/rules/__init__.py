# SPDX-License-Identifier: Apache-2.0
"""The rules of scheduling: functions that change the tables of a simulation."""
