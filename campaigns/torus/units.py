# SPDX-License-Identifier: Apache-2.0
"""Batches on a torus, and failures without jobs, as kinds of unit: Vardas et al. 2022.

References
----------
.. [1] I. Vardas, M. Ploumidis, M. Marazakis, "Exploring the impact of node failures on the resource
   allocation for parallel jobs", 2022, section 3.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from rebat.core.errors import InputError, unknown_name
from rebat.core.numbers import duration
from rebat.models.batch import OF_BOXES, PAPER_JOBS, Batch, run_batch, with_lists
from rebat.models.failures.laws import make_law, name_of
from rebat.models.failures.per_node import WeibullNodes
from rebat.models.failures.per_node_laws import PerNodeLaw, Weibull, per_node, system_mttf_s
from rebat.models.topology import Torus, parse_torus
from rebat.report.kind import Document, Expansion, Kind
from rebat.runs.reading import Duration, Positive, check_seeds, convert, distinct, nonempty, seconds
from rebat.runs.unit import Unit, key_of

NAME = "batch"

RESULTS_FORMAT = 1
"""Version of results. Increase it with every change of their format or values."""

COLUMNS: dict[str, type] = {
    "trace": str,
    "torus": str,
    "size": int,
    "jobs": int,
    "duration_s": float,
    "policy": str,
    "list": str,
    "horizon_s": float,
    "begin_s": float,
    "trace_end_s": float,
    "seed": int,
}

DENSITY_SCALE_H = 2160.0
"""The scale of Figure 2 (about three months)."""


def _expand(document: Document) -> Expansion:
    return Expansion([_unit(grid, trace, spec) for grid, trace, spec in runs(document)])


def _unit(grid: str, trace: str, spec: Batch | FailureHorizon) -> Unit:
    labels: dict[str, Any] = {"trace": trace, "torus": str(spec.torus), "seed": spec.seed}
    identity: dict[str, Any] = {
        "format": RESULTS_FORMAT,
        "law": {"model": name_of(spec.law), **spec.law.identity()},
        "seed": spec.seed,
    }
    if isinstance(spec, Batch):
        about = f"{spec.size} nodes for {duration(spec.duration_s)}"
        about += f", {spec.policy} {spec.which}".rstrip()
        of_batch = {
            "size": spec.size,
            "jobs": spec.n_jobs,
            "duration_s": spec.duration_s,
            "policy": spec.policy,
            "list": spec.which or None,
        }
        of_machine = {"begin_s": spec.begin_s or None, "trace_end_s": spec.trace_end_s}
        of_batch |= {name: age for name, age in of_machine.items() if age is not None}
        about += "".join(f", {name} {age:g}" for name, age in of_machine.items() if age)
        labels |= of_batch
        identity |= {"torus": list(spec.torus.sizes)} | of_batch
    else:
        about = f"failures in {duration(spec.horizon_s)}"
        labels["horizon_s"] = spec.horizon_s
        identity |= {"nodes": spec.torus.n_nodes, "horizon_s": spec.horizon_s}
        del identity["law"]["downtime_s"]  # repairs do not delay failures
    return Unit(
        kind=NAME,
        grid=grid,
        about=f"{trace}, {about}, seed {spec.seed}",
        spec=spec,
        labels=labels,
        identity=identity,
        key=key_of(identity),
    )


def play(spec: Batch | FailureHorizon) -> dict[str, float]:
    """Run a unit. Return a batch's completion time and aborts, or mean times to failure."""
    if isinstance(spec, Batch):
        result = run_batch(spec)
        return {"completion_s": result.completion_s, "aborts": result.aborts}
    n_nodes = spec.torus.n_nodes
    return {
        "node_mttf_s": float(spec.law.nodes(n_nodes, spec.seed).mean_s().mean()),
        "system_mttf_s": system_mttf_s(spec.law, n_nodes, spec.seed, spec.horizon_s),
    }


def _perform(unit: Unit, folder: Path | None) -> dict[str, Any]:
    return play(unit.spec)


def _rows(unit: Unit, metrics: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name, value in metrics.items():
        yield {"metric": name, "value": float(value)}


class BatchExtras(msgspec.Struct, frozen=True):
    """Data that the report needs in addition to the results.

    Attributes
    ----------
    laws
        Scale (h) and shape of each trace.
    provenance
        Lines of provenance.
    """

    laws: dict[str, tuple[float, float] | None]
    provenance: list[str]


def _gather(units: Sequence[Unit]) -> BatchExtras:
    laws = {unit.labels["trace"]: _weibull(unit.spec.law) for unit in units}
    return BatchExtras(laws, [*_provenance(units)])


def _report(table: Path, extras: BatchExtras, provenance: Sequence[str]) -> Any:
    from .report import report

    lines = [*provenance, *extras.provenance]
    return report(table, extras.laws, densities((2.0, 4.0, 8.0, 16.0, 32.0)), lines)


def _weibull(law: PerNodeLaw) -> tuple[float, float] | None:
    """Return scale (h) and shape of a law.

    Return None if other parameters differ from the paper's.
    """
    from .batches import REPAIR_S

    if not isinstance(law, Weibull):
        return None
    if (law.scale_sigma_s, law.shape_sigma, law.downtime_s) == (360.0, 0.1, REPAIR_S):
        return law.scale_s / 3600, law.shape
    return None


def densities(shapes: Sequence[float]) -> dict[str, list[tuple[float, float]]]:
    """Return, by shape, the curves of Figure 2 as points (time in h, Weibull density per h)."""
    times_h = np.linspace(10.0, 4000.0, 400)
    curves = {}
    for shape in shapes:
        law = WeibullNodes(np.array([DENSITY_SCALE_H]), np.array([shape]))
        density = np.exp([law.log_density(time_h)[0] for time_h in times_h])
        curves[f"shape {shape:g}"] = list(zip(times_h.tolist(), density.tolist(), strict=True))
    return curves


def _provenance(units: Sequence[Unit]) -> Iterator[str]:
    for trace, law in {unit.labels["trace"]: unit.spec.law for unit in units}.items():
        yield f"{trace}: {name_of(law)}, {law.label()}, repair {duration(law.downtime_s)}"


KIND = Kind(
    name=NAME,
    mark="laws",
    tables=("law",),
    columns=COLUMNS,
    details={},
    expand=_expand,
    perform=_perform,
    rows=_rows,
    extras=BatchExtras,
    gather=_gather,
    report=_report,
)


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
