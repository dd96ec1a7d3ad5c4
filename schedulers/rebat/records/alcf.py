# SPDX-License-Identifier: Apache-2.0
"""ALCF's public job logs: the CSV of DIM_JOB_COMPOSITE (Mira, Intrepid and other machines).

Source: Argonne Leadership Computing Facility, public data, files ``ANL-ALCF-DJC-*.csv``.
"""

from __future__ import annotations

from datetime import tzinfo
from functools import partial
from pathlib import Path

from rebat.core.errors import InputError
from rebat.records.mapping import (
    CountColumn,
    Fields,
    SpanColumn,
    TextColumn,
    TimeColumn,
    ValueColumn,
    required_columns,
)
from rebat.records.reader import read_rows
from rebat.records.sources import csv_blocks
from rebat.records.table import Problems, Rows

REQUIRED = (
    "COBALT_JOBID",
    "QUEUED_TIMESTAMP",
    "START_TIMESTAMP",
    "WALLTIME_SECONDS",
    "RUNTIME_SECONDS",
    "NODES_REQUESTED",
    "NODES_USED",
)
OPTIONAL = ("MACHINE_NAME", "USERNAME_GENID", "QUEUE_NAME", "EXIT_STATUS")

MACHINE_NODES = {"mira": 49152, "intrepid": 40960}
"""Number of nodes by MACHINE_NAME (Du et al. 2024, 5.2).

For other machines, ``n_nodes`` is required.
"""


def _job(text: str) -> str:
    job = text.strip()
    if not job.isalnum():
        raise InputError(f"COBALT_JOBID is {job[:40]!r}", expected="a job number")
    return job


def _state(status: str) -> str:
    """Return the final state for an exit status. The state is empty if the status is unknown."""
    try:
        return "FAILED" if float(status) else "COMPLETED"
    except ValueError:
        return ""


FIELDS: Fields = {
    "id": (ValueColumn(column="COBALT_JOBID", convert=_job, default=""),),
    "submit": (TimeColumn(column="QUEUED_TIMESTAMP"),),
    "start": (TimeColumn(column="START_TIMESTAMP"),),
    "walltime": (SpanColumn(column="WALLTIME_SECONDS"),),
    "run": (SpanColumn(column="RUNTIME_SECONDS"),),
    "requested": (CountColumn(column="NODES_REQUESTED"),),
    "allocated": (CountColumn(column="NODES_USED"),),
    "user": (TextColumn(column="USERNAME_GENID"),),
    "queue": (TextColumn(column="QUEUE_NAME"),),
    "state": (ValueColumn(column="EXIT_STATUS", convert=_state, default=""),),
    "machine": (TextColumn(column="MACHINE_NAME"),),
}


def read_alcf(path: Path, zone: tzinfo, strict: bool = False) -> Rows:
    """Read a job log, plain or .gz. The dates in the file are in ``zone``."""
    problems = Problems(str(path), strict)
    columns = partial(required_columns, required=REQUIRED, optional=OPTIONAL)
    rows = read_rows(csv_blocks(path, columns, problems), FIELDS, zone, problems)
    if not len(rows):
        problems.check(0)
        raise InputError("the log contains no job", str(path), "a line per job after the header")
    sizes = {MACHINE_NODES.get(name.lower()) for name in set(rows.text("machine"))}
    # for logs of several machines, the caller sets the number of nodes
    rows.facts |= {"n_nodes": sizes.pop() if len(sizes) == 1 else None, "dated": True}
    return rows
