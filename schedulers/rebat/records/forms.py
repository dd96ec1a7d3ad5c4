# SPDX-License-Identifier: Apache-2.0
"""The names of the formats of records."""

from __future__ import annotations

AUTO = "auto"
"""Detect the format."""

SWF, ALCF, SACCT, PBS, TABLE = "swf", "alcf", "sacct", "pbs", "table"
LANL, MIRA_RAS, FTA, SACCTMGR, PLAIN = "lanl", "mira-ras", "fta", "sacctmgr", "csv"
EVENTS = "events"
"""The format of Batsim's own event files."""
