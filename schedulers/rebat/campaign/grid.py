"""Grids of simulations: the runs that their tables in a campaign file stand for.

The file names workloads, then says which policies meet them under which failures;
``campaigns/README.md`` shows it. Every duration is in human units.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from rebat.campaign.reading import (
    check_seeds,
    convert,
    distinct,
    known_keys,
    required,
    seconds,
    seconds_each,
    some,
)
from rebat.campaign.spec import (
    CheckpointIn,
    CheckpointModel,
    FailureScenario,
    FailuresIn,
    GridIn,
    RunSpec,
    Scenario,
    SilentErrors,
    SilentErrorsIn,
    Source,
)
from rebat.campaign.unit import Document
from rebat.core.errors import InputError, unknown_name
from rebat.workloads.trace import TraceOptions, trace_options

_GENERATED = ("generator", "seed")
_TRACE = ("file", *TraceOptions.__struct_fields__)
_TRACE_KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("n_nodes", "cap", "max_jobs"), (int,)),
    **dict.fromkeys(("first_s", "last_s"), (float, int)),
    "months": (str, list),
}
"""TOML types of trace options; the others are texts."""


def runs(document: Document) -> list[RunSpec]:
    """Every run of every grid, in the order of the file; every name in it is checked.

    Runs of two grids may be the same but for the grid's name; they have one key (`keys`) and are
    run once.

    Raises
    ------
    InputError
        With the key in the file.
    """
    tables = required(document.tables, "workloads", dict, "a table [workloads.NAME] per workload")
    workloads = {
        name: _source(table, f"workloads.{name}", document.path.parent, document.trace)
        for name, table in tables.items()
    }
    specs = [
        spec
        for where, table in document.grids
        for spec in _expand(_grid(table, where, workloads), where, workloads)
    ]
    folder = str(document.path.parent.absolute())
    placed = [msgspec.structs.replace(spec, folder=folder) for spec in specs]
    for spec in placed:
        _check_names(spec)
    return placed


def _source(table: Any, where: str, folder: Path, trace: Path | None) -> Source:
    if not isinstance(table, dict) or ("generator" in table) == ("file" in table):
        raise InputError("is no workload", where, "a table with either generator or file")
    if "generator" in table:
        known_keys(table, _GENERATED, where)
        made = convert(table, Source, where)
        check_seeds([made.seed], f"{where}.seed")
        return made
    known_keys(table, _TRACE, where)
    options = {key: value for key, value in table.items() if key != "file"}
    for key, value in options.items():
        kinds = _TRACE_KINDS.get(key, (str,))
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise InputError(f"is {value!r}", f"{where}.{key}", kinds[0].__name__)
    file = convert({"file": table["file"]}, Source, where).file or ""
    path = trace.absolute() if trace else folder.absolute() / file
    if not path.is_file():
        raise InputError(f"no file {path.name!r}", f"{where}.file", f"a file in {path.parent}")
    return Source(file=str(path), options=options)


def _grid(table: dict[str, Any], where: str, workloads: Mapping[str, Source]) -> GridIn:
    known_keys(table, GridIn.__struct_fields__, where)
    inner = {"failures": FailuresIn, "checkpoint": CheckpointIn, "silent_errors": SilentErrorsIn}
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
    if grid.nodes is not None and grid.nodes < 1:
        raise InputError(f"is {grid.nodes}", f"{where}.nodes", "at least 1")
    return grid


def _expand(grid: GridIn, where: str, workloads: Mapping[str, Source]) -> Iterator[RunSpec]:
    free = Scenario(nodes=grid.nodes, window=grid.window, select=grid.select)
    scenarios = list(_scenarios(grid, free, where))
    for workload in grid.workloads:
        base = RunSpec(grid=grid.name, workload=workload, policy="", source=workloads[workload])
        for policy in grid.failure_free:
            yield msgspec.structs.replace(base, policy=policy, scenario=free)
        for scenario, policy in itertools.product(scenarios, grid.policies):
            yield msgspec.structs.replace(base, policy=policy, scenario=scenario)


def _scenarios(grid: GridIn, free: Scenario, where: str) -> Iterator[Scenario]:
    """What each policy meets: every failure scenario with every kind of silent errors."""
    silent = grid.silent_errors
    if silent and silent.seeds is not None and grid.failures is not None:
        what = "has no effect: silent errors have the seeds of the failures"
        raise InputError(what, f"{where}.silent_errors.seeds")
    for failures in _failures(grid.failures, f"{where}.failures"):
        seeds = [failures.seed] if failures else None
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


def _failures(failures: FailuresIn | None, where: str) -> list[FailureScenario | None]:
    if failures is None:
        return [None]
    distinct(failures.seeds, f"{where}.seeds")
    check_seeds(failures.seeds, f"{where}.seeds")
    horizon = failures.horizon
    horizon_s = None if horizon is None else seconds(horizon, f"{where}.horizon")
    return [
        FailureScenario(failures.model, mtbf_s, downtime_s, seed, horizon_s)
        for mtbf_s in seconds_each(failures.mtbf, f"{where}.mtbf")
        for downtime_s in seconds_each(failures.downtime, f"{where}.downtime")
        for seed in failures.seeds
    ]


def _checkpoint(
    checkpoint: CheckpointIn | None, scenario: FailureScenario | None, where: str
) -> CheckpointModel | None:
    if checkpoint is None or checkpoint.model == "none":
        return None
    if checkpoint.mtbf is None and scenario is None:
        raise InputError("the Young/Daly period needs an MTBF", where, "mtbf, or failures")
    mtbf = checkpoint.mtbf if checkpoint.mtbf is not None else scenario and scenario.mtbf_s
    return CheckpointModel(
        seconds(mtbf or 0.0, f"{where}.mtbf"),
        seconds(checkpoint.cost, f"{where}.cost"),
        seconds(checkpoint.recovery, f"{where}.recovery"),
        checkpoint.rounding,
    )


def _check_names(spec: RunSpec) -> None:
    """Everything that is looked up by name or parsed later must be there now."""
    from rebat.metrics.summary import parse_selection, parse_window
    from rebat.policies.presets import scheduler
    from rebat.workloads.generate import GENERATORS

    place = f"grid {spec.grid!r}"
    generator = spec.source.generator
    if generator is not None and generator not in GENERATORS:
        raise unknown_name("generator", generator, GENERATORS).at(f"workloads.{spec.workload}")
    for where, check in (
        (f"{place}: policies", lambda: scheduler(spec.policy, Path(spec.folder))),
        (f"{place}: window", lambda: parse_window(spec.scenario.window)),
        (f"{place}: select", lambda: parse_selection(spec.scenario.select)),
        (f"{place}: failures.model", lambda: _check_failures(spec.scenario)),
        (f"workloads.{spec.workload}", lambda: _check_import(spec.source)),
    ):
        try:
            check()
        except InputError as error:
            raise error.at(where) from None


def _check_failures(scenario: Scenario) -> None:
    from rebat.models.failures import failure_model

    if isinstance(scenario.failures, FailureScenario):
        failure_model(scenario.failures.model)


def _check_import(source: Source) -> None:
    """A file's ending must be known, and its options fit it."""
    from rebat.workloads.load import READERS

    if source.file is None:
        return
    ending = Path(Path(source.file).name.removesuffix(".gz")).suffix.lower()
    if ending not in READERS:
        raise unknown_name("kind of workload", ending, READERS)
    if ending == ".json" and source.options:
        raise InputError(f"{', '.join(source.options)}: for .swf and .csv traces only")
    trace_options(dict(source.options))
