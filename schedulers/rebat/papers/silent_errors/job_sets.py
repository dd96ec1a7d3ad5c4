# SPDX-License-Identifier: Apache-2.0
"""Job sets of a campaign file: synthetic as in RR-9296, or the days of a trace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec

from rebat.core.errors import InputError
from rebat.models.silent_errors import (
    SYNTHETIC_JOBS,
    SYNTHETIC_PROCS,
    SYNTHETIC_SETS,
    Ints,
    synthetic_jobs,
)
from rebat.papers.common.kind import Document
from rebat.runs.reading import convert
from rebat.workloads.cluster_day import read_day_sets

Positive = Annotated[int, msgspec.Meta(ge=1, le=1 << 40)]
Probability = Annotated[float, msgspec.Meta(ge=0, lt=1)]
Name = Annotated[str, msgspec.Meta(min_length=1, pattern="^[^/]*$")]


class SyntheticIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table ``[synthetic.NAME]``: job sets as in Section 5.1, which states the defaults."""

    sets: Positive = SYNTHETIC_SETS
    jobs: Positive = SYNTHETIC_JOBS


class DaysIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table ``[days.NAME]``: a job set per day of a trace.

    If `file` is not set, the option ``--trace`` names the trace. `size` states which number of
    nodes is the size of a job: "requested" or "allocated" (default).
    """

    file: str | None = None
    months: list[str] | None = None
    tz: str = "UTC"
    size: str | None = None
    n_nodes: Positive | None = None
    least_jobs: Positive = 1


class JobSet(NamedTuple):
    """A job set: its name (in reports and random streams), and its jobs.

    Times are in microseconds.
    """

    name: str
    times: Ints
    sizes: Ints
    n_procs: int


def job_sets(document: Document, seed: int) -> tuple[dict[str, list[JobSet]], list[str]]:
    """Return the job sets of each source, and the names of sources without a trace."""
    synthetic, days = (_tables(document, key) for key in ("synthetic", "days"))
    twice = sorted(synthetic.keys() & days.keys())
    if twice:
        raise InputError(
            f"{twice[0]!r} is a duplicate", "synthetic, days", "a different name for each table"
        )
    if not synthetic and not days:
        expected = "at least one table [synthetic.NAME] or [days.NAME]"
        raise InputError("is missing", "synthetic or days", expected)
    sources: dict[str, list[JobSet]] = {}
    for name, table in synthetic.items():
        counts = convert(table, SyntheticIn, f"synthetic.{name}")
        sources[name] = list(_drawn(counts, seed))
    for name, table in days.items():
        where = f"days.{name}"
        sources[name] = _days(convert(table, DaysIn, where), where, document)
    return sources, [name for name, sets in sources.items() if not sets]


def _tables(document: Document, key: str) -> dict[str, Any]:
    tables = document.tables.get(key, {})
    if not isinstance(tables, dict):
        raise InputError("is not a table", key, f"a table [{key}.NAME] per source")
    return tables


def _drawn(counts: SyntheticIn, seed: int) -> Iterator[JobSet]:
    for number in range(counts.sets):
        times, sizes = synthetic_jobs(seed, number, counts.jobs)
        yield JobSet(str(number), times, sizes, SYNTHETIC_PROCS)


def _days(days: DaysIn, where: str, document: Document) -> list[JobSet]:
    """Return the job sets of a trace's days. Return an empty list if there is no trace."""
    own: Path | None = document.path.parent / days.file if days.file else None
    path = document.trace or own
    if path is None:
        return []
    options: dict[str, Any] = {"size": days.size, "n_nodes": days.n_nodes}
    if not path.name.removesuffix(".gz").endswith(".json"):  # a Batsim workload accepts no options
        options |= {"size": days.size or "allocated", "overrun": "keep"}
    try:
        day_sets = read_day_sets(path, days.months, tz=days.tz, **options)
    except InputError as error:
        raise error.at(where) from None
    sets = [JobSet(*day) for day in day_sets if len(day.sizes) >= days.least_jobs]
    if not sets:
        problem = f"no day has {days.least_jobs} jobs or more"
        raise InputError(problem, f"{where}.least_jobs", "a smaller number")
    return sets
