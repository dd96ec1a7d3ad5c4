# SPDX-License-Identifier: Apache-2.0
"""One simulation of a campaign: its unit, its workload read once per process, its run."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import msgspec

from rebat.core.cores import groups_of
from rebat.core.errors import InputError
from rebat.core.jobs import Workload
from rebat.models.failures.laws import reads_files
from rebat.policies.own_policy import OwnPolicy
from rebat.policies.preset import identity as policy_identity
from rebat.policies.presets import Preset
from rebat.runs.keys import content_hash, generated, identity, scheduler_of
from rebat.runs.labels import about, labels
from rebat.runs.single import RunResult
from rebat.runs.spec import RunSpec, Scenario, Source
from rebat.runs.staging import machine_events, preparation, prepared, staged
from rebat.runs.unit import Unit, canonical, key_of
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


def check_inputs(some: Iterable[Unit]) -> None:
    """Read every trace and record once, and see that the cores of nodes fit the machine.

    Raises
    ------
    InputError
        With the grid and the workload, before anything runs.
    """
    seen = set()
    for unit in some:
        asked, source = unit.spec.scenario, _text_of(unit.spec.source)
        law = asked.failures.law if asked.failures else None
        if not reads_files(law):
            law = None
        what = (source, asked.nodes, asked.cores_per_node, canonical(law.identity()) if law else "")
        if what in seen:
            continue
        seen.add(what)
        try:
            _check_input(unit, law is not None)
        except InputError as error:
            raise error.at(f"{unit.grid}, {unit.spec.workload}") from None


def _check_input(unit: Unit, recorded: bool) -> None:
    asked = unit.spec.scenario
    if not (unit.spec.source.options or asked.nodes or asked.cores_per_node > 1 or recorded):
        return  # nothing that depends on what is in the workload
    n_nodes = asked.nodes or workload_of(unit).n_nodes
    groups_of(n_nodes, asked.cores_per_node)
    if unit.spec.source.options:
        workload_of(unit)
    if recorded:
        next(iter(machine_events(asked, n_nodes)), None)


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
    _check_law(unit)
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


def _check_law(unit: Unit) -> None:
    asked = unit.spec.scenario.failures
    if asked and not asked.law.identity().items() <= unit.identity["failures"].items():
        raise InputError("changed while the campaign ran", asked.law.label())


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
