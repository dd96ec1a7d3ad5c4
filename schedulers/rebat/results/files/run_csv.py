# SPDX-License-Identifier: Apache-2.0
"""rebat's own files of a run, line by line. Times are in seconds from the start of the run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import isnan
from typing import Any

import numpy as np
import numpy.typing as npt

from rebat.core.attempts import job_name
from rebat.core.formatting import name_field
from rebat.core.options import STAGES
from rebat.core.table import Texts
from rebat.core.units import to_s
from rebat.results.files.tables import Column, Names, Nodes, Reals, Seconds, Whole, Words, csv_lines
from rebat.results.measures.jobs import GROUP_COLUMNS, JOB_COLUMNS, JobRows, group_rows, losses_us
from rebat.results.measures.recoveries import since_checkpoint_us
from rebat.results.measures.timeline import pattern_of
from rebat.state.ledger import Ledger

RECOVERY_COLUMNS = (
    "job_id",
    "attempt",
    "size",
    "cause",
    "failed_time",
    *(f"{name}_seconds" for name in STAGES),
    "since_checkpoint_seconds",
)
"""Columns of rebat_recoveries.csv, see `recoveries_csv`."""


def recoveries_csv(ledger: Ledger) -> Iterator[str]:
    """Yield rebat_recoveries.csv, with a row per failure of an attempt that has a cause or stages.

    ``failed_time`` is the time of the failure. ``detect_seconds`` and similar columns are the
    durations of the recovery stages. ``since_checkpoint_seconds`` is the part of the run time
    before the failure that was not kept.
    """
    yield ",".join(RECOVERY_COLUMNS)
    for record in ledger.attempts.where(ledger.attempts.column("hit") != 0):
        attempt = record.attempt
        yield _line(
            (
                job_name(attempt.job_id),
                attempt.number,
                attempt.n_nodes,
                record.failure,
                to_s(record.end_us - record.hung_us),
                *(to_s(record.stages.get(name, 0)) for name in STAGES),
                to_s(since_checkpoint_us(record)),
            )
        )


def row_columns(rows: JobRows, names: Sequence[str] = JOB_COLUMNS) -> dict[str, Column]:
    """Return the named columns of rebat_jobs.csv, which has a row per original job."""
    return {name: _column(rows.column(name)) for name in names}


def rows_csv(rows: JobRows, names: Sequence[str] = JOB_COLUMNS) -> Iterator[str]:
    """Yield the lines of rebat_jobs.csv with the named columns."""
    return csv_lines(row_columns(rows, names), len(rows))


def _column(values: npt.NDArray[Any]) -> Column:
    """Return an array as a column of a file."""
    if values.dtype.kind == "f":
        return Reals(values)
    if values.dtype.kind == "i":
        return Whole(values)
    if values.dtype.kind == "O":
        return Words.of(values.tolist())
    return Names(lambda part: Texts.of(values[part].tolist()))


def groups_csv(rows: JobRows, column: str) -> Iterator[str]:
    """Yield rebat_users.csv or rebat_queues.csv, a row per user or queue (`group_rows`)."""
    yield ",".join((column, *GROUP_COLUMNS))
    for values in group_rows(rows, column):
        yield _line(values)


def attempts_csv(ledger: Ledger) -> Iterator[str]:
    """Yield the lines of rebat_attempts.csv: a row per attempt, sorted by end."""
    return csv_lines(attempt_columns(ledger), len(ledger.attempts))


def attempt_columns(ledger: Ledger) -> dict[str, Column]:
    """Return the columns of rebat_attempts.csv.

    - ``attempt``: number of the attempt. The first attempt of a job is 0.
    - ``start_time``, ``nodes``: empty if the attempt never ran.
    - ``finish_time``: empty if the attempt was rejected.
    - ``cause``: why the attempt ended (`core.attempts.Cause`).
    - ``why``: the reason that the policy stated for a stop. For a stolen attempt, this is the job
      that takes its nodes.
    - ``kept_seconds``: the progress that was kept when the attempt ended.
    - ``lost_later_seconds``: the part of the kept progress that was lost later.
    - ``lost_seconds``: the run time whose work was lost, at the end of the attempt or later.
    - ``recovery_seconds``: duration of the recovery.
    - ``first_period_seconds``, ``period_seconds``: durations of the first checkpoint period and of
      each later period.
    - ``checkpoint_seconds``: duration of a checkpoint.

    The last three columns are empty if the attempt writes no periodic checkpoints.
    """
    attempts = ledger.attempts
    column = attempts.column
    start_us, end_us = column("start_us"), column("end_us")
    recovery_us, first_us, period_us, cost_us = pattern_of(attempts)
    return {
        "job_id": Names(lambda part: attempts.texts("name", part)),
        "attempt": Whole(column("number")),
        "size": Whole(column("n_nodes")),
        "submission_time": Seconds(column("submit_us")),
        "queued_time": Seconds(column("queued_us")),
        "start_time": Seconds(start_us, start_us < 0),
        "finish_time": Seconds(end_us, end_us < 0),
        "cause": Words(column("cause"), attempts.values("cause")),
        "why": Words(column("why"), attempts.values("why")),
        "kept_seconds": Seconds(np.maximum(0, column("useful_us"))),
        "lost_later_seconds": Seconds(column("lost_us")),
        "lost_seconds": Seconds(losses_us(attempts)),
        "nodes": Nodes(attempts.nodes()),
        "recovery_seconds": Seconds(recovery_us),
        "first_period_seconds": Seconds(first_us, period_us < 0),
        "period_seconds": Seconds(period_us, period_us < 0),
        "checkpoint_seconds": Seconds(cost_us, period_us < 0),
    }


HOLD_COLUMNS = ("job_id", "start_time", "finish_time", "nodes")
"""Columns of rebat_holds.csv. If nodes are held until the run ends, finish_time is empty."""


def holds_csv(ledger: Ledger) -> Iterator[str]:
    """Yield rebat_holds.csv: a row per set of nodes held for a job that does not run on them."""
    yield ",".join(HOLD_COLUMNS)
    for hold in ledger.holds:
        if hold.until_us != hold.since_us:
            until = None if hold.until_us is None else to_s(hold.until_us)
            yield _line((job_name(hold.job_id), to_s(hold.since_us), until, str(hold.nodes)))


def node_events_csv(ledger: Ledger) -> Iterator[str]:
    """Yield node_events.csv: failures and repairs of nodes."""
    yield "time,event,nodes"
    for at, up, nodes in ledger.node_events:
        yield f"{to_s(at):.6f},{'rejuvenated' if up else 'failed'},{nodes}"


def _line(values: Iterable[Any]) -> str:
    """Return a row as text. Floats have six decimals, and None and NaN become empty fields."""
    return ",".join(map(_cell, values))


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and isnan(value)):
        return ""
    if isinstance(value, float):
        return f"{value:.6f}"
    return str(value) if isinstance(value, int) else name_field(str(value))
