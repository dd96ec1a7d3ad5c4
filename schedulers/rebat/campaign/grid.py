# SPDX-License-Identifier: Apache-2.0
"""Grids of simulations: the runs that their tables in a campaign file stand for.

The file names workloads, then says which policies meet them under which failures;
``docs/how-to/campaigns.md`` shows it. Every duration is in human units.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import FieldInfo

from rebat.campaign.grid_tables import (
    CheckpointIn,
    FailuresIn,
    GridIn,
    SilentErrorsIn,
)
from rebat.campaign.sources import Named, check_source, sources
from rebat.core.errors import InputError, unknown_name
from rebat.core.sizes import check_machine
from rebat.core.units import parse_duration
from rebat.models.failures.correlated import Correlation, correlated
from rebat.models.failures.law import Law
from rebat.models.failures.laws import law_named, make_law, parameters, read
from rebat.models.operations import read_operations
from rebat.papers.common.kind import Document
from rebat.runs.reading import check_seeds, convert, distinct, known_keys, seconds, some
from rebat.runs.spec import (
    CheckpointModel,
    FailureScenario,
    OperationFile,
    PerfectCheckpoints,
    RunSpec,
    Scenario,
    SilentErrors,
    Source,
)

_FAILURES = FailuresIn.__struct_fields__


def runs(document: Document) -> list[RunSpec]:
    """Every run of every grid, in the order of the file; every name in it is checked.

    Runs of two grids may be the same but for the grid's name; they have one key (`keys`) and are
    run once.

    Raises
    ------
    InputError
        With the key in the file.
    """
    workloads = sources(document.tables, document.path.parent, document.trace)
    folder = document.path.parent.absolute()
    report = document.tables.get("report", "")
    specs = [
        msgspec.structs.replace(spec, report=report)
        for where, table in document.grids
        for spec in _expand(_grid(table, where, workloads), where, workloads, folder)
    ]
    for spec in specs:
        _check_names(spec)
    return specs


def _grid(table: dict[str, Any], where: str, workloads: Named) -> GridIn:
    table = _with_cores(table, where)
    known_keys(table, GridIn.__struct_fields__, where)
    inner = {"checkpoint": CheckpointIn, "silent_errors": SilentErrorsIn}
    for key, kind in inner.items():
        if isinstance(table.get(key), dict):
            known_keys(table[key], kind.__struct_fields__, f"{where}.{key}")
    grid = convert(table, GridIn, where)
    for key in ("workloads", "policies", "failure_free"):
        distinct(getattr(grid, key), f"{where}.{key}")
    for name in grid.workloads:
        if name not in workloads:
            raise unknown_name("workload", name, workloads).at(f"{where}.workloads")
    if not grid.workloads or not (grid.policies or grid.failure_free):
        raise InputError("has nothing to run", where, "workloads and policies")
    for key, count in (("nodes", grid.nodes), ("cores_per_node", grid.cores_per_node)):
        if count is not None and count < 1:
            raise InputError(f"is {count}", f"{where}.{key}", "at least 1")
        check_machine(count or 1, f"{where}.{key}")
    return grid


def _with_cores(table: dict[str, Any], where: str) -> dict[str, Any]:
    """Cores of a node may stand with the failures, as they once did."""
    failures = table.get("failures")
    if not isinstance(failures, dict) or "cores_per_node" not in failures:
        return table
    rest = {key: value for key, value in failures.items() if key != "cores_per_node"}
    if "cores_per_node" in table:
        raise InputError("is told twice", f"{where}.failures.cores_per_node", "beside nodes only")
    return {**table, "cores_per_node": failures["cores_per_node"], "failures": rest}


def _expand(grid: GridIn, where: str, workloads: Named, folder: Path) -> Iterator[RunSpec]:
    free = Scenario(
        nodes=grid.nodes,
        cores_per_node=grid.cores_per_node,
        operations=_operations(grid.operations, folder, f"{where}.operations"),
        window=grid.window,
        select=grid.select,
        walltime_kills=grid.walltime_kills,
        max_attempts=grid.max_attempts,
        accounting=grid.accounting,
    )
    made = [one for name in grid.workloads for one in workloads[name].items()]
    for workload, source in made:
        scenarios = list(_scenarios(grid, free, where, folder, source))
        base = RunSpec(
            grid=grid.name, workload=workload, policy="", source=source, folder=str(folder)
        )
        for scenario, policy in itertools.product(_calm(grid, free, scenarios), grid.failure_free):
            yield msgspec.structs.replace(base, policy=policy, scenario=scenario)
        for scenario, policy in itertools.product(scenarios, grid.policies):
            yield msgspec.structs.replace(base, policy=policy, scenario=scenario)


def _calm(grid: GridIn, free: Scenario, scenarios: Sequence[Scenario]) -> list[Scenario]:
    """What ``failure_free`` policies meet: nothing that fails, with each kind of checkpoints."""
    if not grid.failure_free_checkpoints:
        return [free]
    kinds = dict.fromkeys(scenario.checkpoint for scenario in scenarios)
    return [msgspec.structs.replace(free, checkpoint=checkpoint) for checkpoint in kinds]


def _operations(file: str | None, folder: Path, where: str) -> OperationFile | None:
    if file is None:
        return None
    try:
        return OperationFile(Path(file).name, tuple(read_operations(folder / file)))
    except InputError as error:
        raise error.at(where) from None


def _scenarios(
    grid: GridIn, free: Scenario, where: str, folder: Path, source: Source
) -> Iterator[Scenario]:
    """What each policy meets: every failure scenario with every kind of silent errors."""
    silent = grid.silent_errors
    for failures in _failures(grid.failures, f"{where}.failures", folder, source):
        seeds = [failures.seed] if failures and failures.law.drawn else None
        if silent and silent.seeds is not None and seeds is not None:
            what = "has no effect: silent errors have the seeds of the failures"
            raise InputError(what, f"{where}.silent_errors.seeds")
        checkpoint = _checkpoint(grid.checkpoint, failures, f"{where}.checkpoint")
        for errors in _silent_errors(silent, seeds, f"{where}.silent_errors"):
            yield msgspec.structs.replace(
                free, failures=failures, checkpoint=checkpoint, silent_errors=errors
            )


def _silent_errors(
    silent: SilentErrorsIn | None, seeds: list[int] | None, where: str
) -> list[SilentErrors | None]:
    if silent is None:
        return [None]
    named = {"rate": silent.rate, "probability": silent.probability}
    given = {name: value for name, value in named.items() if value is not None}
    if len(given) != 1:
        raise InputError("is not one thing", where, "either rate or probability")
    ((name, value),) = given.items()
    values = value if isinstance(value, list) else [value]
    some(values, f"{where}.{name}")
    below = 1.0 if name == "probability" else math.inf
    for one in values:
        if not 0 <= one < below:
            raise InputError(f"is {one}", f"{where}.{name}", f"at least 0 and below {below:g}")
    if seeds is None:
        seeds = [0] if silent.seeds is None else silent.seeds
    check_seeds(seeds, f"{where}.seeds")
    distinct(seeds, f"{where}.seeds")
    return [SilentErrors(**{name: float(one)}, seed=seed) for one in values for seed in seeds]


def _failures(
    table: dict[str, Any] | None, where: str, folder: Path, source: Source
) -> list[FailureScenario | None]:
    """Every combination of the values of a law's parameters, with every seed, or the workload's."""
    if table is None:
        return [None]
    told = convert({key: table[key] for key in table if key in _FAILURES}, FailuresIn, where)
    name = _law_name(told, where)
    known = parameters(name)
    known_keys(table, [*(key for key in _FAILURES if key != "file"), *known], where)
    files = law_named(name).paths
    values = {key: _each(field, table[key], f"{where}.{key}", folder if key in files else None)
              for key, field in known.items() if key in table}  # fmt: skip
    correlation = _correlation(told, table, where)
    laws = [_law(name, dict(zip(values, chosen, strict=True)), correlation, where)
            for chosen in itertools.product(*values.values())]  # fmt: skip
    if not all(law.drawn for law in laws):
        for key in {"seeds", "horizon"} & {*table}:
            raise InputError("has no effect", f"{where}.{key}", "failures that are drawn")
    seeds = _seeds(told, source, f"{where}.seeds")
    horizon = told.horizon
    horizon_s = None if horizon is None else seconds(horizon, f"{where}.horizon")
    begin_s = parse_duration(told.begin)
    return [FailureScenario(law, seed, horizon_s, begin_s) for law in laws for seed in seeds]


def _seeds(told: FailuresIn, source: Source, where: str) -> list[int]:
    if told.seeds == "workload":
        if source.generator is None:
            raise InputError("is 'workload'", where, "workloads that are generated, or seeds")
        return [source.seed]
    seeds = [0] if told.seeds is None else told.seeds
    distinct(seeds, where)
    check_seeds(seeds, where)
    return seeds


def _law_name(told: FailuresIn, where: str) -> str:
    if told.law is not None and told.model is not None:
        raise InputError("has no effect", f"{where}.model", "no law beside it")
    name = told.law or told.model
    if name is None:
        return "authors" if told.file is None else "trace"
    try:
        law_named(name)
    except InputError as error:
        raise error.at(f"{where}.{'law' if told.law else 'model'}") from None
    return name


def _correlation(told: FailuresIn, table: dict[str, Any], where: str) -> Correlation:
    if not told.cascade:
        for key in {"cascade_window", "cascade_within"} & {*table}:
            raise InputError("has no effect", f"{where}.{key}", "cascade beside it")
    try:
        return Correlation(
            group=told.group,
            cascade=told.cascade,
            cascade_window_s=seconds(told.cascade_window, "cascade_window"),
            cascade_within=told.cascade_within,
        )
    except InputError as error:
        raise error.at(where) from None


def _law(name: str, values: Mapping[str, Any], correlation: Correlation, where: str) -> Law:
    try:
        return correlated(make_law(name, values), correlation)
    except InputError as error:
        raise error.at(where) from None


def _each(field: FieldInfo, value: Any, where: str, folder: Path | None) -> list[Any]:
    """One or more values of a parameter; files are looked for from a folder on."""
    values = value if isinstance(value, list) else [value]
    found = [read(field, one, where) for one in values]
    some(found, where)
    return found if folder is None else [str(folder / one) for one in found]


def _checkpoint(
    checkpoint: CheckpointIn | None, scenario: FailureScenario | None, where: str
) -> CheckpointModel | PerfectCheckpoints | None:
    if checkpoint is None or checkpoint.model == "none":
        return None
    if checkpoint.model == "perfect":
        if checkpoint != CheckpointIn(model="perfect"):
            raise InputError("perfect checkpoints have no parameters", where, 'model = "perfect"')
        return PerfectCheckpoints()
    mtbf = checkpoint.mtbf
    if mtbf is None:
        mtbf = scenario.mtbf_s if scenario else None
    if mtbf is None:
        raise InputError("the Young/Daly period needs an MTBF", where, "mtbf, or failures with one")
    return CheckpointModel(
        seconds(mtbf, f"{where}.mtbf"),
        seconds(checkpoint.cost, f"{where}.cost"),
        seconds(checkpoint.recovery, f"{where}.recovery"),
        checkpoint.rounding,
    )


def _check_names(spec: RunSpec) -> None:
    """Everything that is looked up by name or parsed later must be there now."""
    from rebat.results.measures.summary import parse_selection, parse_window

    place = f"grid {spec.grid!r}"
    for where, check in (
        (f"{place}: policies", lambda: _check_policy(spec)),
        (f"{place}: window", lambda: parse_window(spec.scenario.window)),
        (f"{place}: select", lambda: parse_selection(spec.scenario.select)),
        (f"workloads.{spec.workload}", lambda: check_source(spec.source)),
    ):
        try:
            check()
        except InputError as error:
            raise error.at(where) from None


def _check_policy(spec: RunSpec) -> None:
    from rebat.policies.presets import Preset, scheduler
    from rebat.runs.staging import check_foresight

    chosen = scheduler(spec.policy, Path(spec.folder))
    if isinstance(chosen, Preset) and chosen.foresees:
        check_foresight(spec.scenario)
