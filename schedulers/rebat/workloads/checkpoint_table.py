# SPDX-License-Identifier: Apache-2.0
"""The checkpoints that the jobs of a site write today, as a table.

A CSV file has a column ``period``, at least one of the columns ``job``, ``user`` and ``queue``, and
optionally the columns ``cost`` and ``recovery``. The first row that matches a job determines its
checkpoints. An empty cell matches all jobs. A job without a row writes no checkpoints.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError, short
from rebat.core.files import open_text
from rebat.core.job_table import Jobs
from rebat.core.jobs import Job, Workload
from rebat.core.table import distinct
from rebat.core.traits import traits_of
from rebat.core.units import MAX_SECONDS, parse_duration, to_us
from rebat.models.checkpoint import PERIOD_FIELD, saved_in, young_daly_period_s

EARLIER = "earlier_attempts_s"
"""Field of a job: the run times of its attempts before the last one, in seconds."""

NONE, YOUNG_DALY = "none", "young-daly"
"""Checkpoints of a site that need no table: no job writes checkpoints, or all jobs do."""

OWNERS, TIMES = ("job", "user", "queue"), ("period", "cost", "recovery")


class CheckpointRow(NamedTuple):
    """A row of the table: the jobs that it describes, and their checkpoints in seconds.

    If ``period_s`` is None, the period is the Young/Daly period of the job.
    """

    owners: dict[str, str]
    period_s: float | None
    cost_s: float
    recovery_s: float

    def describes(self, jobs: Jobs) -> npt.NDArray[np.bool_]:
        """Return whether the row matches each job."""
        owners = dict(self.owners)
        job = owners.pop("job", None)
        traits = [traits_of(extra) for extra in jobs.extra_fields]
        fits = [all(getattr(each, name) == owners[name] for name in owners) for each in traits]
        matches: npt.NDArray[np.bool_] = np.array(fits, dtype=bool)[jobs.extra_codes]
        if job is not None:
            place = jobs.ids.position(job)
            matches &= np.arange(len(jobs)) == (-1 if place is None else place)
        return matches


class UsualCosts(NamedTuple):
    """Times in seconds to write and to read a checkpoint, for rows without their own."""

    cost_s: float = 300.0
    recovery_s: float = 300.0


def read_checkpoints(path: Path, usual: UsualCosts) -> list[CheckpointRow]:
    """Read the table. Empty costs are those of ``usual``."""
    with open_text(path, newline="") as file:
        reader = csv.DictReader(file, restval="")
        names = [name.strip().lower() for name in reader.fieldnames or ()]
        reader.fieldnames = names
        unknown = [name for name in names if name not in (*OWNERS, *TIMES)]
        if unknown or "period" not in names or not set(OWNERS) & set(names):
            problem = f"has the columns {', '.join(names) or 'of an empty file'}"
            expected = "period, and job, user or queue; optionally cost and recovery"
            raise InputError(problem, f"{path}:1", expected)
        rows = [checkpoint_row(fields, usual, f"{path}:{reader.line_num}") for fields in reader]
    if not rows:
        raise InputError("has no row", str(path), "a row for each user or queue with checkpoints")
    return rows


def checkpoint_row(fields: dict[str, Any], usual: UsualCosts, where: str) -> CheckpointRow:
    """Return a row of the table from its cells."""
    if None in fields:
        raise InputError("has more fields than the header", where)
    unknown = sorted({*fields} - {*OWNERS, *TIMES})
    if unknown or "period" not in fields:
        problem = f"has the field {short(unknown[0])}" if unknown else "has no period"
        raise InputError(problem, where, f"{', '.join((*OWNERS, *TIMES))}; the period is required")
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
    workload: Workload,
    rows: list[CheckpointRow],
    n_nodes: int,
    mtbf_s: float,
    *,
    only_work: bool = False,
) -> tuple[Workload, int]:
    """Return the workload with the checkpoints of the table, and the number of jobs that have any.

    The recorded run time of a job includes its checkpoints. It is the run time of the last attempt,
    so the work that earlier attempts saved is added to it. With ``only_work``, jobs get this work,
    but write no checkpoints.
    """
    jobs = Jobs.of(workload.jobs)
    chosen = np.full(len(jobs), -1)
    for at in reversed(range(len(rows))):  # of several rows that match, the first counts
        chosen[rows[at].describes(jobs)] = at
    several = np.array([EARLIER in extra for extra in jobs.extra_fields], dtype=bool)
    kind = np.where((chosen >= 0) & several[jobs.extra_codes], jobs.extra_codes, -1)
    sizes = np.where(chosen < 0, 0, jobs.n_nodes)
    first, codes = distinct(jobs.profile_codes, sizes, chosen, kind)
    names, profiles, more_us = [], dict[str, dict[str, Any]](), np.zeros(len(first), np.int64)
    for i, (job, at) in enumerate(
        zip(map(jobs.at, first.tolist()), chosen[first].tolist(), strict=True)
    ):
        profile, name = workload.profiles[job.profile], job.profile
        if at >= 0:
            name = f"{name}@{job.n_nodes}@{at}"
            written = _checkpointed(job, profile, rows[at], n_nodes, mtbf_s)
            saved_s = _saved_s(job.extra.get(EARLIER), rows[at], written[PERIOD_FIELD])
            profile = {**profile} if only_work else written
            if saved_s:
                name = f"{name}@{kind[first[i]]}"
                profile["delay"] += saved_s
                more_us[i] = to_us(saved_s)
        names.append(name)
        profiles[name] = profile
    walls_us = np.where(jobs.walltime_us < 0, jobs.walltime_us, jobs.walltime_us + more_us[codes])
    changed = jobs.changed(walls_us, codes, names)
    changed_workload = msgspec.structs.replace(workload, jobs=changed, profiles=profiles)
    return changed_workload, int(np.count_nonzero(chosen >= 0))


def _saved_s(earlier_s: Any, row: CheckpointRow, period_s: float) -> float:
    """Return the work that earlier attempts saved, without the last recovery, in seconds.

    An attempt begins with the time to read the last checkpoint, if there is one.
    """
    lengths = earlier_s if isinstance(earlier_s, list) else []
    valid = [s for s in lengths if isinstance(s, int | float) and 0 <= s <= MAX_SECONDS]
    if len(valid) < len(lengths):
        return 0.0
    saved_s = 0.0
    for length_s in lengths:
        worked_s = length_s - (row.recovery_s if saved_s else 0.0)
        saved_s += saved_in(worked_s, period_s + row.cost_s)
    return max(0.0, saved_s - row.recovery_s)


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
