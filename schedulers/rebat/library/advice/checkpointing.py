# SPDX-License-Identifier: Apache-2.0
"""The checkpoints that the jobs of a site write today, from a table of users and queues.

The table is a CSV file with a column ``period``, at least one of the columns ``job``, ``user`` and
``queue``, and optionally the columns ``cost`` and ``recovery``. The first row that matches a job
determines its checkpoints. An empty cell matches all jobs. A job without a row writes no
checkpoints.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rebat.core.compact_jobs import with_times
from rebat.core.errors import InputError, short
from rebat.core.files import open_text
from rebat.core.jobs import Job, Workload
from rebat.core.traits import traits_of
from rebat.core.units import MAX_SECONDS, parse_duration
from rebat.models.checkpoint import PERIOD_FIELD, young_daly_period_s
from rebat.runs.spec import CheckpointModel

OWNERS, TIMES = ("job", "user", "queue"), ("period", "cost", "recovery")

YOUNG_DALY = "young-daly"


class CheckpointRow(NamedTuple):
    """A row of the table: the jobs that it describes, and their checkpoints in seconds.

    If ``period_s`` is None, the period is the Young/Daly period of the job.
    """

    owners: dict[str, str]
    period_s: float | None
    cost_s: float
    recovery_s: float

    def describes(self, job: Job) -> bool:
        """Return whether the row matches a job."""
        traits = traits_of(job.extra)
        values = {"job": job.id, "user": traits.user, "queue": traits.queue}
        return all(values[name] == value for name, value in self.owners.items())


def read_checkpoints(path: Path, usual: CheckpointModel) -> list[CheckpointRow]:
    """Read the table. Empty costs are those of ``usual``.

    Raises
    ------
    InputError
        If a column or a value is invalid. The error names file and line.
    """
    with open_text(path, newline="") as file:
        reader = csv.DictReader(file, restval="")
        names = [name.strip().lower() for name in reader.fieldnames or ()]
        reader.fieldnames = names
        unknown = [name for name in names if name not in (*OWNERS, *TIMES)]
        if unknown or "period" not in names or not set(OWNERS) & set(names):
            problem = f"has the columns {', '.join(names) or 'of an empty file'}"
            expected = "period, and job, user or queue; optionally cost and recovery"
            raise InputError(problem, f"{path}:1", expected)
        rows = [_row(fields, usual, f"{path}:{reader.line_num}") for fields in reader]
    if not rows:
        raise InputError("has no row", str(path), "a row for each user or queue with checkpoints")
    return rows


def _row(fields: dict[str, Any], usual: CheckpointModel, where: str) -> CheckpointRow:
    if None in fields:
        raise InputError("has more fields than the header", where)
    cells = {name: text.strip() for name, text in fields.items()}
    owners = {name: cells[name] for name in OWNERS if cells.get(name)}
    period = cells["period"]
    own = period.lower() == YOUNG_DALY
    return CheckpointRow(
        owners,
        None if own else _seconds(period, "period", where, 1e-6),
        _seconds(cells.get("cost") or usual.cost_s, "cost", where, 1e-6 if own else 0),
        _seconds(cells.get("recovery") or usual.recovery_s, "recovery", where, 0),
    )


def _seconds(text: str | float, name: str, where: str, least: float) -> float:
    try:
        seconds = parse_duration(text)
    except InputError:
        seconds = -1.0
    if not least <= seconds <= MAX_SECONDS:
        expected = "a duration like 1h" + (f" or {YOUNG_DALY}" if name == "period" else "")
        raise InputError(f"{name} is {short(text)}", where, expected)
    return seconds


def with_checkpoints_of(
    workload: Workload, rows: list[CheckpointRow], n_nodes: int, mtbf_s: float
) -> tuple[Workload, int]:
    """Return the workload with the checkpoints of the table, and the number of jobs that have any.

    Run times do not change: the recorded run time of a job includes its checkpoints.

    Raises
    ------
    InputError
        If a job with checkpoints has no profile of type ``delay``.
    """
    profiles: dict[str, dict[str, Any]] = {}
    n_jobs = 0

    def times() -> Iterator[tuple[int | None, str]]:
        nonlocal n_jobs
        for job in workload.jobs:
            matches = ((at, row) for at, row in enumerate(rows) if row.describes(job))
            at, row = next(matches, (-1, None))
            profile, name = workload.profiles[job.profile], job.profile
            if row is not None:
                n_jobs += 1
                name = f"{job.profile}@{job.n_nodes}@{at}"
                profile = _checkpointed(job, profile, row, n_nodes, mtbf_s)
            profiles[name] = profile
            yield job.walltime_us, name

    return with_times(workload, times(), profiles), n_jobs


def _checkpointed(
    job: Job, profile: dict[str, Any], row: CheckpointRow, n_nodes: int, mtbf_s: float
) -> dict[str, Any]:
    if profile.get("type") != "delay":
        problem = f"the profile type is {profile.get('type')!r}, which allows no checkpoints"
        raise InputError(problem, f"job {job.id}", "a delay profile")
    period_s = row.period_s
    if period_s is None:
        period_s = young_daly_period_s(job.n_nodes, n_nodes, mtbf_s, row.cost_s)
    return {
        **profile,
        PERIOD_FIELD: period_s,
        "checkpoint_cost": row.cost_s,
        "recovery_cost": row.recovery_s,
        "Tfirst": period_s,
        "Rfirst": 0.0,
        "checkpoint_rounding": "floor",
    }
