# SPDX-License-Identifier: Apache-2.0
"""Simulations as units of work: their keys, checks and runs, also of many on this machine."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from rebat.core.cores import groups_of
from rebat.core.errors import InputError, RebatError
from rebat.core.jobs import Workload
from rebat.drive.choose import compile_for, covers, is_tiered, threads_pay
from rebat.drive.shared import Shared
from rebat.models.failures.laws import reads_files
from rebat.policies.own_policy import OwnPolicy
from rebat.policies.point import Point
from rebat.policies.presets import Preset
from rebat.policies.presets import identity as policy_identity
from rebat.runs.labels import about, labels
from rebat.runs.scenario import Scenario
from rebat.runs.single import RunResult
from rebat.runs.staging import machine_events, preparation, prepared, staged
from rebat.runs.unit import (
    RunSpec,
    Source,
    Unit,
    canonical,
    content_hash,
    generated,
    identity,
    key_of,
    scheduler_of,
)
from rebat.workloads.load import load_workload

NAME = "simulation"


def units(specs: Iterable[RunSpec]) -> list[Unit]:
    """Return the units of the runs with their keys. Read each input and policy only once."""
    contents: dict[str, str] = {}
    policies: dict[tuple[str, str, Any], Any] = {}
    units = []
    for spec in specs:
        source, policy = _text_of(spec.source), (spec.policy, spec.folder, spec.kind)
        if source not in contents:
            contents[source] = content_hash(spec.source)
        if policy not in policies:
            policies[policy] = policy_identity(scheduler_of(spec))
        units.append(_unit(spec, identity(spec, contents[source], policies[policy])))
    return units


def check_inputs(units: Iterable[Unit]) -> None:
    """Check that traces, records and machines are valid, and that policies fit their machines."""
    units = list(units)
    _check_contents(units)
    _check_policies(units)


def _check_contents(units: Iterable[Unit]) -> None:
    seen = set()
    for unit in units:
        scenario, source = unit.spec.scenario, _text_of(unit.spec.source)
        law = scenario.failures.law if scenario.failures else None
        if not reads_files(law):
            law = None
        law_text = canonical(law.identity()) if law else ""
        inputs = (source, scenario.nodes, scenario.cores_per_node, law_text)
        if inputs in seen:
            continue
        seen.add(inputs)
        try:
            _check_input(unit, law is not None)
        except InputError as error:
            raise error.at(f"{unit.grid}, {unit.spec.workload}") from None


def _check_input(unit: Unit, recorded: bool) -> None:
    scenario = unit.spec.scenario
    if not (unit.spec.source.options or scenario.nodes or scenario.cores_per_node > 1 or recorded):
        return  # then no option depends on the contents of the workload
    n_nodes = scenario.nodes or workload_of(unit).n_nodes
    groups_of(n_nodes, scenario.cores_per_node)
    if unit.spec.source.options:
        workload_of(unit)
    if recorded:
        next(iter(machine_events(scenario, n_nodes)), None)


def _check_policies(units: Iterable[Unit]) -> None:
    """Create the torus and the partitions of each policy once per machine size."""
    seen = set()
    for unit in units:
        spec, scenario = unit.spec, unit.spec.scenario
        machine = scenario.nodes or _text_of(spec.source), scenario.cores_per_node
        case = spec.policy, spec.folder, machine
        if case in seen:
            continue
        seen.add(case)
        try:
            _check_policy(unit)
        except InputError as error:
            raise error.at(f"{unit.grid}, {spec.workload}: {spec.policy}") from None


def _check_policy(unit: Unit) -> None:
    scenario, chosen = unit.spec.scenario, scheduler_of(unit.spec)
    if not isinstance(chosen, Preset) or not (chosen.on_torus or chosen.point.partitions):
        return  # then the policy fits every machine
    n_nodes = scenario.nodes or workload_of(unit).n_nodes
    chosen.blocks(n_nodes)
    chosen.partitions(n_nodes, scenario.cores_per_node)


def simulate_run(unit: Unit) -> RunResult:
    """Run one unit."""
    spec: RunSpec = unit.spec
    workload = _prepared(_text_of(spec.source), _content(unit), preparation(spec.scenario))
    _check_law(unit)
    return staged(workload, spec.scenario).run(_scheduler(unit))


def in_threads(units: Iterable[Unit], workers: int) -> set[str]:
    """Return the keys of the runs for threads of this process: those that use the compiled loop.

    Return an empty set if processes would be faster. If it saves time, compile the loop.
    """
    cases: dict[Any, list[Unit]] = {}
    for unit in units:
        spec, scenario = unit.spec, unit.spec.scenario
        if not scenario.operations:
            usual = msgspec.structs.replace(preparation(scenario), silent_errors=None)
            case = _text_of(spec.source), usual, spec.policy, spec.folder, spec.kind
            cases.setdefault(case, []).append(unit)
    covered, n_jobs = list[tuple[Point, bool, list[Unit]]](), 0
    for (source, usual, *_), alike in cases.items():
        with suppress(RebatError):  # the run reports the error
            workload, chosen = _prepared(source, _content(alike[0]), usual), _scheduler(alike[0])
            if isinstance(chosen, Preset) and covers(workload, chosen):
                covered.append((chosen.point, is_tiered(workload), alike))
                n_jobs += len(workload.jobs) * len(alike)
    compiled = [alike for point, tiered, alike in covered if compile_for(point, n_jobs, tiered)]
    keys = {unit.key for alike in compiled for unit in alike}
    return keys if threads_pay(len(keys), n_jobs, workers) else set()


def workload_of(unit: Unit) -> Workload:
    """Return the workload of a run, before checkpoints are added."""
    return _loaded(_text_of(unit.spec.source), _content(unit))


def _unit(spec: RunSpec, determines: dict[str, Any]) -> Unit:
    return Unit(
        kind=NAME,
        grid=spec.grid,
        about=about(spec),
        spec=spec,
        labels=labels(spec),
        identity=determines,
        key=key_of(determines),
    )


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
    failures = unit.spec.scenario.failures
    if failures and not failures.law.identity().items() <= unit.identity["failures"].items():
        raise InputError("changed while the campaign ran", failures.law.label())


_WORKLOADS: Shared[Workload] = Shared(4_000_000, lambda workload: len(workload.jobs))
"""The workloads used last, before and after checkpoints and silent errors are added."""


def _loaded(source: str, content: str) -> Workload:
    """Read a workload once per process. ``content`` is its expected hash."""
    return _WORKLOADS.get((source, content), lambda: _read(source, content))


def _read(source: str, content: str) -> Workload:
    where = msgspec.json.decode(source, type=Source)
    if where.file is None:
        return generated(where)
    if content_hash(where) != content:
        raise InputError("changed while the campaign ran", Path(where.file).name)
    return load_workload(Path(where.file), **where.options)


def _prepared(source: str, content: str, scenario: Scenario) -> Workload:
    """Add checkpoints and silent errors to a workload, once per process."""

    def create() -> Workload:
        return prepared(_loaded(source, content), scenario)

    return _WORKLOADS.get((source, content, scenario), create)
