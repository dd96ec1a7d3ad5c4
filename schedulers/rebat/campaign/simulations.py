"""Simulations as units of a campaign: a workload, a policy and a failure scenario each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from rebat.campaign.grid import runs
from rebat.campaign.keys import content_hash, generated, identity, scheduler_of
from rebat.campaign.labels import COLUMNS, DETAILS, about, flat_metrics, labels
from rebat.campaign.scenario import preparation, prepared, staged
from rebat.campaign.single import RUN_FILES, RunResult, simulate, write_run
from rebat.campaign.spec import RunSpec, Scenario, Source
from rebat.campaign.unit import Document, Expansion, Kind, Unit, canonical, key_of
from rebat.core.errors import InputError, RebatError, one_line
from rebat.core.jobs import Workload
from rebat.kernels.jit import is_compiled
from rebat.metrics.summary import as_json
from rebat.models.failures import generate_events
from rebat.policies.own import OwnPolicy
from rebat.policies.presets import Preset
from rebat.policies.presets import identity as policy_identity
from rebat.workloads.generate import synthetic
from rebat.workloads.load import load_workload

NAME = "simulation"


def units(specs: Iterable[RunSpec]) -> list[Unit]:
    """The runs as units with their keys; every input is read once.

    Raises
    ------
    InputError
        For a file that cannot be read.
    """
    contents: dict[str, str] = {}
    found = []
    for spec in specs:
        source = _text_of(spec.source)
        if source not in contents:
            contents[source] = content_hash(spec.source)
        found.append(_unit(spec, contents[source]))
    return found


def simulate_run(unit: Unit) -> RunResult:
    """Run one point of the grid.

    Raises
    ------
    InputError
        For inputs that cannot be run, or whose content is another than when the campaign began.
    BatsimAbort
        For what a real Batsim would have died on.
    """
    spec: RunSpec = unit.spec
    made = _prepared(_text_of(spec.source), _content(unit), preparation(spec.scenario))
    return staged(made, spec.scenario).run(_scheduler(unit))


def workload_of(unit: Unit) -> Workload:
    """A run's workload as it came, without checkpoints."""
    return _loaded(_text_of(unit.spec.source), _content(unit))


def _unit(spec: RunSpec, content: str) -> Unit:
    what = identity(spec, content)
    return Unit(
        kind=NAME, grid=spec.grid, about=about(spec), spec=spec, labels=labels(spec),
        identity=what, key=key_of(what),
    )  # fmt: skip


def _text_of(source: Source) -> str:
    return canonical(msgspec.to_builtins(source))


def _content(unit: Unit) -> str:
    content: str = unit.identity["workload"]["sha256"]
    return content


def _scheduler(unit: Unit) -> Preset | OwnPolicy:
    chosen = scheduler_of(unit.spec)
    if msgspec.to_builtins(policy_identity(chosen)) != unit.identity["policy"]:
        raise InputError("changed while the campaign ran", unit.spec.policy)
    return chosen


@lru_cache(maxsize=8)
def _loaded(source: str, content: str) -> Workload:
    """A workload, read once per process; ``content`` is what it must hash to."""
    where = msgspec.json.decode(source, type=Source)
    if where.file is None:
        return generated(where)
    if content_hash(where) != content:
        raise InputError("changed while the campaign ran", Path(where.file).name)
    return load_workload(Path(where.file), **where.options)


@lru_cache(maxsize=16)
def _prepared(source: str, content: str, scenario: Scenario) -> Workload:
    """A workload with its checkpoints and silent errors, made once per process."""
    return prepared(_loaded(source, content), scenario)


# ---- the kind


def _expand(document: Document) -> Expansion:
    return Expansion(units(runs(document)))


def _perform(unit: Unit, folder: Path | None) -> dict[str, Any]:
    try:
        result = simulate_run(unit)
        if folder is not None:
            write_run(folder, result, {"run": unit.identity})
    except Exception as error:
        raise RebatError(_without_paths(one_line(error), unit.spec)) from error
    return as_json(result.summary)


def _without_paths(text: str, spec: RunSpec) -> str:
    """An error that is the same wherever the campaign's files are."""
    if spec.source.file:
        text = text.replace(spec.source.file, Path(spec.source.file).name)
    return text.replace(f"{spec.folder}/", "") if spec.folder else text


def _rows(unit: Unit, metrics: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for metric, size_class, value in flat_metrics(metrics):
        yield {"metric": metric, "size_class": size_class, "value": value}


def _warm_up(some: Sequence[Unit]) -> None:
    if is_compiled():
        return
    jobs = synthetic(0, 50)
    events = generate_events("authors", 1800, 600, jobs.n_nodes, horizon_s=1e4)
    for unit in {unit.spec.policy: unit for unit in some}.values():
        try:
            simulate(jobs, scheduler_of(unit.spec), machine_events=events)
        except RebatError:
            continue  # its own runs will say what is wrong with it


def _report(some: Sequence[Unit], table: Path, provenance: Sequence[str]) -> Any:
    from rebat.campaign.simulation_report import report

    return report(some, table, provenance)


KIND = Kind(
    name=NAME,
    mark="workloads",
    tables=("workloads",),
    columns=COLUMNS,
    details=DETAILS,
    files=RUN_FILES,
    expand=_expand,
    perform=_perform,
    rows=_rows,
    warm_up=_warm_up,
    report=_report,
)
