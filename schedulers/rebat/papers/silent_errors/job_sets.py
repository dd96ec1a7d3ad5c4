# SPDX-License-Identifier: Apache-2.0
"""Job sets that a campaign file names: drawn as in RR-9296, or the days of a trace."""

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
from rebat.workloads.day_sets import read_day_sets

Positive = Annotated[int, msgspec.Meta(ge=1, le=1 << 40)]
Probability = Annotated[float, msgspec.Meta(ge=0, lt=1)]
Name = Annotated[str, msgspec.Meta(min_length=1, pattern="^[^/]*$")]


class SyntheticIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[synthetic.NAME]``: job sets drawn as in Section 5.1, its numbers being the defaults."""

    sets: Positive = SYNTHETIC_SETS
    jobs: Positive = SYNTHETIC_JOBS


class DaysIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[days.NAME]``: a job set per day of a trace; without `file`, the user has to name one.

    `size` is the trace option of that name, here "allocated" unless given.
    """

    file: str | None = None
    months: list[str] | None = None
    tz: str = "UTC"
    size: str | None = None
    n_nodes: Positive | None = None
    least_jobs: Positive = 1


class JobSet(NamedTuple):
    """A job set: its name in reports and in random streams, and its jobs; times in us."""

    name: str
    times: Ints
    sizes: Ints
    n_procs: int


def job_sets(document: Document, seed: int) -> tuple[dict[str, list[JobSet]], list[str]]:
    """The sets of each source, and the sources without any, as nobody says which trace.

    Raises
    ------
    InputError
        With the key in the file.
    """
    synthetic, days = (_tables(document, key) for key in ("synthetic", "days"))
    twice = sorted(synthetic.keys() & days.keys())
    if twice:
        raise InputError(f"has {twice[0]!r} twice", "synthetic, days")
    if not synthetic and not days:
        raise InputError("is missing", "synthetic or days", "a table [synthetic.NAME] or more")
    found: dict[str, list[JobSet]] = {}
    for name, table in synthetic.items():
        made = convert(table, SyntheticIn, f"synthetic.{name}")
        found[name] = list(_drawn(made, seed))
    for name, table in days.items():
        where = f"days.{name}"
        found[name] = _days(convert(table, DaysIn, where), where, document)
    return found, [name for name, sets in found.items() if not sets]


def _tables(document: Document, key: str) -> dict[str, Any]:
    tables = document.tables.get(key, {})
    if not isinstance(tables, dict):
        raise InputError("is no table", key, f"a table [{key}.NAME] per source")
    return tables


def _drawn(made: SyntheticIn, seed: int) -> Iterator[JobSet]:
    for number in range(made.sets):
        times, sizes = synthetic_jobs(seed, number, made.jobs)
        yield JobSet(str(number), times, sizes, SYNTHETIC_PROCS)


def _days(days: DaysIn, where: str, document: Document) -> list[JobSet]:
    """The sets of a trace's days; none when nobody says which trace."""
    beside: Path | None = document.path.parent / days.file if days.file else None
    path = document.trace or beside
    if path is None:
        return []
    options: dict[str, Any] = {"size": days.size, "n_nodes": days.n_nodes}
    if not path.name.removesuffix(".gz").endswith(".json"):  # a Batsim workload has no options
        options |= {"size": days.size or "allocated", "overrun": "keep"}
    try:
        found = read_day_sets(path, days.months, tz=days.tz, **options)
    except InputError as error:
        raise error.at(where) from None
    kept = [JobSet(*day) for day in found if len(day.sizes) >= days.least_jobs]
    if not kept:
        what = f"no day with {days.least_jobs} jobs or more"
        raise InputError(what, f"{where}.least_jobs", "a smaller number")
    return kept
