# SPDX-License-Identifier: Apache-2.0
"""The grids of a campaign file for batches on a torus, and for failures without jobs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

import msgspec

from rebat.core.errors import InputError, unknown_name
from rebat.models.batch import OF_BOXES, PAPER_JOBS, Batch, with_lists
from rebat.models.failures.laws import make_law
from rebat.models.failures.per_node_laws import PerNodeLaw, per_node
from rebat.models.topology import Torus, parse_torus
from rebat.papers.common.kind import Document
from rebat.runs.reading import Duration, check_seeds, convert, distinct, nonempty, seconds

Positive = Annotated[int, msgspec.Meta(ge=1, le=1 << 40)]
Name = Annotated[str, msgspec.Meta(min_length=1)]


class BatchIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A ``[[grid]]`` of batches: every combination of duration, law, policy (with list) and seed.

    `begin` is the age of the machine when the batch begins. After the age `trace_end` no node
    fails.
    """

    name: Name
    torus: str
    size: Positive
    durations: tuple[Duration, ...]
    laws: tuple[str, ...]
    policies: tuple[str, ...]
    jobs: Positive = PAPER_JOBS
    lists: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)
    begin: Duration | None = None
    trace_end: Duration | None = None


class RecordIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A ``[[grid]]`` of failures up to a horizon, without jobs, for each law and seed."""

    name: Name
    torus: str
    laws: tuple[str, ...]
    horizon: Duration
    seeds: tuple[int, ...] = (0,)


class FailureHorizon(msgspec.Struct, frozen=True):
    """The failures of a machine up to a horizon."""

    torus: Torus
    law: PerNodeLaw
    seed: int
    horizon_s: float


GridRun = tuple[str, str, Batch | FailureHorizon]
"""A run in a grid: name of the grid, name of the law, and the run."""


def runs(document: Document) -> Iterator[GridRun]:
    """Yield all runs of the grids of a file. Runs with the same failures follow each other."""
    laws = _laws(document.tables.get("law"))
    for where, table in document.grids:
        if "horizon" in table:
            yield from _records(convert(table, RecordIn, where), where, laws)
        else:
            yield from _batches(convert(table, BatchIn, where), where, laws)


def _laws(tables: Any) -> dict[str, PerNodeLaw]:
    if not isinstance(tables, dict) or not tables:
        raise InputError("is missing", "law", "at least one table [law.NAME]")
    return {name: _law(table, f"law.{name}") for name, table in tables.items()}


def _law(table: Any, where: str) -> PerNodeLaw:
    if not isinstance(table, dict) or not isinstance(table.get("law"), str):
        raise InputError("is missing", f"{where}.law", "the name of a law")
    values = {key: value for key, value in table.items() if key != "law"}
    with _placed(where):
        law = make_law(table["law"], values)
    return per_node(law, where)


def _records(grid: RecordIn, where: str, laws: Mapping[str, PerNodeLaw]) -> Iterator[GridRun]:
    torus = _common(grid, where, laws)
    horizon_s = seconds(grid.horizon, f"{where}.horizon")
    for name, seed in itertools.product(grid.laws, grid.seeds):
        yield grid.name, name, FailureHorizon(torus, laws[name], seed, horizon_s)


def _batches(grid: BatchIn, where: str, laws: Mapping[str, PerNodeLaw]) -> Iterator[GridRun]:
    torus = _common(grid, where, laws)
    for key in ("durations", "policies"):
        nonempty(getattr(grid, key), f"{where}.{key}")
    distinct(grid.lists, f"{where}.lists")
    if bool(grid.lists) != any(policy in OF_BOXES for policy in grid.policies):
        of_boxes = " or ".join(OF_BOXES)
        problem, expected = "is missing", f"lists of boxes for the policies {of_boxes}"
        if grid.lists:
            problem, expected = "has no effect", f"policy {of_boxes}"
        raise InputError(problem, f"{where}.lists", expected)
    durations_s = [seconds(value, f"{where}.durations") for value in grid.durations]
    distinct(durations_s, f"{where}.durations")
    cases = with_lists(grid.policies, grid.lists)
    begin_s = 0.0 if grid.begin is None else seconds(grid.begin, f"{where}.begin")
    end_s = None if grid.trace_end is None else seconds(grid.trace_end, f"{where}.trace_end")
    for name, seed, duration_s, (policy, which) in itertools.product(
        grid.laws, grid.seeds, durations_s, cases
    ):
        with _placed(where):
            batch = Batch(
                torus,
                grid.size,
                grid.jobs,
                duration_s,
                laws[name],
                policy,
                which,
                seed,
                begin_s,
                end_s,
            )
        yield grid.name, name, batch


def _common(grid: BatchIn | RecordIn, where: str, laws: Mapping[str, PerNodeLaw]) -> Torus:
    nonempty(grid.laws, f"{where}.laws")
    for name in grid.laws:
        if name not in laws:
            raise unknown_name("law", name, laws).at(f"{where}.laws")
    check_seeds(grid.seeds, f"{where}.seeds")
    distinct(grid.seeds, f"{where}.seeds")
    with _placed(f"{where}.torus"):
        return parse_torus(grid.torus)


@contextmanager
def _placed(where: str) -> Iterator[None]:
    """Add a position in the file to the errors that the block raises."""
    try:
        yield
    except InputError as error:
        raise error.at(where) from None
