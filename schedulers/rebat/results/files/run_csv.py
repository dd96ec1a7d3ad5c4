# SPDX-License-Identifier: Apache-2.0
"""rebat's own files of a run, line by line. Times are in seconds from the start of the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from math import isnan
from types import NoneType
from typing import Any

from rebat.core.attempts import job_name
from rebat.core.csv_text import name_field
from rebat.core.recovery import STAGES
from rebat.core.units import to_s
from rebat.results.measures.jobs import JOB_COLUMNS, JobRows, lost_us
from rebat.results.measures.owners import GROUP_COLUMNS, group_rows
from rebat.results.measures.recoveries import since_checkpoint_us
from rebat.results.measures.timeline import checkpoint_times
from rebat.session.ledger import AttemptRecord, Ledger

ATTEMPT_COLUMNS = (
    "job_id",
    "attempt",
    "size",
    "submission_time",
    "queued_time",
    "start_time",
    "finish_time",
    "cause",
    "why",
    "kept_seconds",
    "lost_later_seconds",
    "lost_seconds",
    "nodes",
    "recovery_seconds",
    "first_period_seconds",
    "period_seconds",
    "checkpoint_seconds",
)
"""Columns of rebat_attempts.csv, see `attempt_values`."""


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


def rows_csv(rows: JobRows, columns: Sequence[str] = JOB_COLUMNS) -> Iterator[str]:
    """Yield rebat_jobs.csv with the given columns and a row per original job."""
    yield ",".join(columns)
    for values in rows.values(columns):
        yield _line(values)


def groups_csv(rows: JobRows, column: str) -> Iterator[str]:
    """Yield rebat_users.csv or rebat_queues.csv, a row per user or queue (`measures.owners`)."""
    yield ",".join((column, *GROUP_COLUMNS))
    for values in group_rows(rows, column):
        yield _line(values)


def attempts_csv(ledger: Ledger) -> Iterator[str]:
    """Yield rebat_attempts.csv: a row per attempt, sorted by end."""
    yield ",".join(ATTEMPT_COLUMNS)
    for record in ledger.attempts:
        yield _line(attempt_values(record))


def attempt_values(record: AttemptRecord) -> tuple[Any, ...]:
    """Return the values of an attempt in the order of `ATTEMPT_COLUMNS`.

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
    attempt, ran = record.attempt, record.start_us >= 0
    recovery_us, pattern = checkpoint_times(record.checkpointing)
    return (
        job_name(attempt.job_id),
        attempt.number,
        attempt.n_nodes,
        to_s(attempt.submit_us),
        to_s(attempt.queued_us),
        to_s(record.start_us) if ran else None,
        to_s(record.end_us) if record.end_us >= 0 else None,
        str(record.cause),
        record.why,
        to_s(max(0, record.useful_us)),
        to_s(record.lost_us),
        to_s(lost_us(record)),
        str(record.nodes or ""),
        to_s(recovery_us),
        *map(to_s, pattern or ()),
        *(() if pattern else (None, None, None)),
    )


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


def _line(values: Sequence[Any]) -> str:
    """Return a row as text. Floats have six decimals, and None and NaN become empty fields."""
    form, texts = _form(tuple(map(type, values)))
    cells = list(values)
    for place in texts:
        cells[place] = name_field(str(cells[place]))
    line = form % tuple(cells)
    if "nan" in line and any(map(_is_nan, values)):
        return _line([None if _is_nan(v) else v for v in values])
    return line


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and isnan(value)


@cache
def _form(kinds: tuple[type, ...]) -> tuple[str, list[int]]:
    """Return the format string of a row of these types, and the positions of its texts."""
    texts = [place for place, kind in enumerate(kinds) if not issubclass(kind, _PRINTED)]
    return ",".join(map(_cell, kinds)), texts


def _cell(kind: type) -> str:
    if issubclass(kind, float):
        return "%.6f"
    return "%.0s" if kind is NoneType else "%s"


_PRINTED = (int, float, NoneType)
"""Types whose values cannot be formulas, so that spreadsheets do not evaluate them."""
