# SPDX-License-Identifier: Apache-2.0
"""Expansion of the grids in a campaign file to runs.

The file defines workloads (a generator or a file), and combines them with policies and failures in
grids. In the name of a policy, ``{spares}`` is replaced by each value of ``spares`` in the table
``[grid.sweep]``. See ``docs/how-to/campaigns.md``. Durations are texts like "5min".
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import FieldInfo

from rebat.core.cores import check_machine
from rebat.core.errors import InputError, check_keys, unknown_name
from rebat.core.units import parse_duration
from rebat.models.checkpoint import Rounding
from rebat.models.failures.correlated import Correlation, correlated
from rebat.models.failures.law import Law
from rebat.models.failures.laws import law_named, make_law, parameters, read
from rebat.models.operations import read_operations
from rebat.report.kind import Document
from rebat.runs.reading import (
    Duration,
    check_seeds,
    convert,
    distinct,
    nonempty,
    required,
    seconds,
)
from rebat.runs.scenario import (
    MOST_LOAD,
    OPTIONS,
    CheckpointModel,
    Checkpoints,
    Conditions,
    FailureScenario,
    OperationFile,
    PerfectCheckpoints,
    Scenario,
    ScenarioOptions,
    SilentErrors,
    TierCheckpoints,
)
from rebat.runs.unit import RunSpec, Source
from rebat.workloads.trace import TraceOptions, trace_options

# ---- the tables of a grid

_DEFAULTS = ScenarioOptions()
"""The same defaults as on the command line."""


class FailuresIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table ``[grid.failures]``. It also contains the parameters of the law.

    For ``group`` and the cascade options, see `Correlation`.
    """

    law: str | None = None
    model: str | None = None
    """Alternative name of ``law``."""
    file: str | None = None
    """Event file, for the law ``trace``."""
    seeds: list[int] | Literal["workload"] | None = None
    """Seeds of the failures. If 'workload', each workload's own seed is used."""
    horizon: Duration | None = None
    begin: Duration = 0
    group: int = _DEFAULTS.failure_group
    cascade: float = _DEFAULTS.cascade
    cascade_window: Duration = _DEFAULTS.cascade_window
    cascade_within: int = 0


class CheckpointIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table ``[grid.checkpoint]``. The default MTBF is the MTBF of the failures.

    Durations and tiers can have several values. The model 'perfect' has no other parameters.
    """

    model: Literal["none", "young-daly", "perfect", "tiers:auto"] = "young-daly"
    tiers: str | list[str] = _DEFAULTS.tiers
    cost: Duration | list[Duration] = _DEFAULTS.checkpoint_cost
    recovery: Duration | list[Duration] = _DEFAULTS.recovery_cost
    rounding: Rounding = _DEFAULTS.checkpoint_rounding
    mtbf: Duration | list[Duration] | None = None


class SilentErrorsIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table ``[grid.silent_errors]``. Each rate or probability runs with each failure seed.

    ``seeds`` is used only if no failures are drawn at random.
    """

    rate: float | list[float] | None = None
    probability: float | list[float] | None = None
    seeds: list[int] | None = None


class GridIn(Conditions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table ``[[grid]]``: all combinations of workloads, policies and failures."""

    name: str
    workloads: list[str]
    policies: list[str]
    failure_free: list[str] = []  # noqa: RUF012
    """Policies to run without failures and silent errors, once with each checkpoint model."""
    failure_free_checkpoints: bool = True
    """Whether the runs of ``failure_free`` policies have checkpoints."""
    sweep: dict[str, list[Any]] = {}  # noqa: RUF012
    """Values for the names in braces in policies (see `swept`)."""
    failures: dict[str, Any] | None = None
    checkpoint: CheckpointIn | None = None
    silent_errors: SilentErrorsIn | None = None
    operations: str | None = None
    nodes: int | list[int] | None = None  # type: ignore[assignment]
    load: float | list[float] = 1.0  # type: ignore[assignment]


_FAILURES = FailuresIn.__struct_fields__


# ---- expansion


def runs(document: Document) -> list[RunSpec]:
    """Check all names, and return the runs of all grids in the order of the file.

    If a run is in several grids, it has the same key in each (see `unit`) and is executed once.
    """
    workloads = sources(document.tables, document.path.parent, document.trace)
    folder = document.path.parent.absolute()
    specs = [
        spec
        for where, table in document.grids
        for spec in _expand(_grid(table, where, workloads), where, workloads, folder)
    ]
    for spec in specs:
        _check_names(spec)
    return specs


def _grid(table: dict[str, Any], where: str, workloads: Named) -> GridIn:
    table = _with_cores(table, where)
    if "seeds" in table:
        problem = "is not a key of [[grid]]"
        raise InputError(problem, f"{where}.seeds", "seeds in [grid.failures]")
    check_keys(table, GridIn.__struct_fields__, where)
    inner = {"checkpoint": CheckpointIn, "silent_errors": SilentErrorsIn}
    for key, kind in inner.items():
        if isinstance(table.get(key), dict):
            check_keys(table[key], kind.__struct_fields__, f"{where}.{key}")
    for key in ("nodes", "cores_per_node"):
        for count in _several(table.get(key)):
            if isinstance(count, int) and count < 1:
                raise InputError(f"is {count}", f"{where}.{key}", "at least 1")
    grid = convert(table, GridIn, where)
    for key in ("workloads", "policies", "failure_free"):
        distinct(getattr(grid, key), f"{where}.{key}")
    for name in grid.workloads:
        if name not in workloads:
            raise unknown_name("workload", name, workloads).at(f"{where}.workloads")
    if not grid.workloads or not (grid.policies or grid.failure_free):
        raise InputError("has no runs", where, "workloads and policies")
    _check_machines(grid, where)
    return _swept(grid, where)


def _check_machines(grid: GridIn, where: str) -> None:
    """Check the numbers of nodes and cores, and the loads."""
    for key in ("nodes", "cores_per_node"):
        counts = _several(getattr(grid, key))
        nonempty(counts, f"{where}.{key}")
        for count in counts:
            check_machine(count or 1, f"{where}.{key}")
    nonempty(_several(grid.load), f"{where}.load")
    for load in _several(grid.load):
        if not 0 < load <= MOST_LOAD:
            raise InputError(f"is {load:g}", f"{where}.load", f"above 0, at most {MOST_LOAD:g}")


def _several(value: Any) -> list[Any]:
    """Return the values of a parameter as a list. A single value becomes a list."""
    return value if isinstance(value, list) else [value]


def _swept(grid: GridIn, where: str) -> GridIn:
    """Return the grid with a copy of each policy for each value in ``[grid.sweep]``."""
    check_values([*grid.policies, *grid.failure_free], grid.sweep, f"{where}.sweep")
    named = {
        key: swept(getattr(grid, key), grid.sweep, f"{where}.{key}")
        for key in ("policies", "failure_free")
    }
    return msgspec.structs.replace(grid, **named)


def _with_cores(table: dict[str, Any], where: str) -> dict[str, Any]:
    """Move ``cores_per_node`` from the failures (its place in older files) to the grid."""
    failures = table.get("failures")
    if not isinstance(failures, dict) or "cores_per_node" not in failures:
        return table
    others = {key: value for key, value in failures.items() if key != "cores_per_node"}
    if "cores_per_node" in table:
        place = f"{where}.failures.cores_per_node"
        raise InputError("is a duplicate", place, "cores_per_node only in the grid")
    return {**table, "cores_per_node": failures["cores_per_node"], "failures": others}


def _expand(grid: GridIn, where: str, workloads: Named, folder: Path) -> Iterator[RunSpec]:
    free = Scenario(
        **grid.conditions, operations=_operations(grid.operations, folder, f"{where}.operations")
    )
    named = [item for name in grid.workloads for item in workloads[name].items()]
    loads = _several(grid.load)
    for (workload, source), nodes, load in itertools.product(named, _several(grid.nodes), loads):
        free = msgspec.structs.replace(free, nodes=nodes, load=float(load))
        scenarios = list(_scenarios(grid, free, where, folder, source))
        base = RunSpec(
            grid=grid.name, workload=workload, policy="", source=source, folder=str(folder)
        )
        for scenario, policy in itertools.product(
            _without_failures(grid, free, scenarios), grid.failure_free
        ):
            yield msgspec.structs.replace(base, policy=policy, scenario=scenario)
        for scenario, policy in itertools.product(scenarios, grid.policies):
            yield msgspec.structs.replace(base, policy=policy, scenario=scenario)


def _without_failures(
    grid: GridIn, free: Scenario, scenarios: Sequence[Scenario]
) -> list[Scenario]:
    """Return the scenarios of the ``failure_free`` policies, one for each checkpoint model."""
    if not grid.failure_free_checkpoints:
        return [free]
    kinds = dict.fromkeys(scenario.checkpoint for scenario in scenarios)
    return [msgspec.structs.replace(free, checkpoint=checkpoint) for checkpoint in kinds]


def _operations(file: str | None, folder: Path, where: str) -> OperationFile | None:
    if file is None:
        return None
    try:
        return OperationFile(file, tuple(read_operations(folder / file)))
    except InputError as error:
        raise error.at(where) from None


def _scenarios(
    grid: GridIn, free: Scenario, where: str, folder: Path, source: Source
) -> Iterator[Scenario]:
    """Yield all combinations of failure scenarios and silent errors."""
    silent = grid.silent_errors
    for failures in _failures(grid.failures, f"{where}.failures", folder, source):
        seeds = [failures.seed] if failures and failures.law.drawn else None
        if silent and silent.seeds is not None and seeds is not None:
            problem = "has no effect: silent errors use the seeds of the failures"
            raise InputError(problem, f"{where}.silent_errors.seeds")
        for checkpoint, errors in itertools.product(
            _checkpoints(grid.checkpoint, failures, free.nodes, f"{where}.checkpoint"),
            _silent_errors(silent, seeds, f"{where}.silent_errors"),
        ):
            yield msgspec.structs.replace(
                free, failures=failures, checkpoint=checkpoint, silent_errors=errors
            )


def _silent_errors(
    silent: SilentErrorsIn | None, seeds: list[int] | None, where: str
) -> list[SilentErrors | None]:
    if silent is None:
        return [None]
    options = {"rate": silent.rate, "probability": silent.probability}
    used = {name: value for name, value in options.items() if value is not None}
    if len(used) != 1:
        raise InputError("needs either rate or probability", where, "one of the two")
    ((name, value),) = used.items()
    values = _several(value)
    nonempty(values, f"{where}.{name}")
    below = 1.0 if name == "probability" else math.inf
    for number in values:
        if not 0 <= number < below:
            raise InputError(f"is {number}", f"{where}.{name}", f"at least 0 and below {below:g}")
    if seeds is None:
        seeds = [0] if silent.seeds is None else silent.seeds
    check_seeds(seeds, f"{where}.seeds")
    distinct(seeds, f"{where}.seeds")
    return [SilentErrors(**{name: float(v)}, seed=seed) for v in values for seed in seeds]


def _failures(
    table: dict[str, Any] | None, where: str, folder: Path, source: Source
) -> list[FailureScenario | None]:
    """Return all combinations of parameter values and seeds.

    If ``seeds`` is 'workload', use the seed of the workload.
    """
    if table is None:
        return [None]
    options = convert({key: table[key] for key in table if key in _FAILURES}, FailuresIn, where)
    name = _law_name(options, where)
    fields = parameters(name)
    check_keys(table, [*(key for key in _FAILURES if key != "file"), *fields], where)
    files = law_named(name).paths
    values = {key: _each(field, table[key], f"{where}.{key}", folder if key in files else None)
              for key, field in fields.items() if key in table}  # fmt: skip
    correlation = _correlation(options, table, where)
    laws = [_law(name, dict(zip(values, chosen, strict=True)), correlation, where)
            for chosen in itertools.product(*values.values())]  # fmt: skip
    if not all(law.drawn for law in laws):
        for key in {"seeds", "horizon"} & {*table}:
            raise InputError("has no effect", f"{where}.{key}", "a law that draws failures")
    seeds = _seeds(options, source, f"{where}.seeds")
    horizon = options.horizon
    horizon_s = None if horizon is None else seconds(horizon, f"{where}.horizon")
    begin_s = parse_duration(options.begin)
    return [FailureScenario(law, seed, horizon_s, begin_s) for law in laws for seed in seeds]


def _seeds(options: FailuresIn, source: Source, where: str) -> list[int]:
    if options.seeds == "workload":
        if source.generator is None:
            raise InputError(
                "is 'workload'", where, "a list of seeds, because the workload has no seed"
            )
        return [source.seed]
    seeds = [0] if options.seeds is None else options.seeds
    distinct(seeds, where)
    check_seeds(seeds, where)
    return seeds


def _law_name(options: FailuresIn, where: str) -> str:
    if options.law is not None and options.model is not None:
        raise InputError("has no effect", f"{where}.model", "only one of law and model")
    name = options.law or options.model
    if name is None:
        return "authors" if options.file is None else "trace"
    try:
        law_named(name)
    except InputError as error:
        raise error.at(f"{where}.{'law' if options.law else 'model'}") from None
    return name


def _correlation(options: FailuresIn, table: dict[str, Any], where: str) -> Correlation:
    if not options.cascade:
        for key in {"cascade_window", "cascade_within"} & {*table}:
            raise InputError("has no effect", f"{where}.{key}", "a value above 0 for cascade")
    try:
        return Correlation(
            group=options.group,
            cascade=options.cascade,
            cascade_window_s=seconds(options.cascade_window, "cascade_window"),
            cascade_within=options.cascade_within,
        )
    except InputError as error:
        raise error.at(where) from None


def _law(name: str, values: Mapping[str, Any], correlation: Correlation, where: str) -> Law:
    try:
        return correlated(make_law(name, values), correlation)
    except InputError as error:
        raise error.at(where) from None


def _each(field: FieldInfo, value: Any, where: str, folder: Path | None) -> list[Any]:
    """Return the values of a parameter. File names are relative to the folder."""
    parsed = [read(field, each, where) for each in _several(value)]
    nonempty(parsed, where)
    return parsed if folder is None else [str(folder / file) for file in parsed]


def _checkpoints(
    checkpoint: CheckpointIn | None, scenario: FailureScenario | None, n_nodes: int | None,
    where: str,
) -> Sequence[Checkpoints | None]:  # fmt: skip
    """Return the checkpoint models for all combinations of MTBF, cost and recovery.

    With storage tiers, return all combinations of MTBF and tiers.

    Parameters
    ----------
    scenario : FailureScenario, optional
        Failures. Their MTBF is the default MTBF of the checkpoints.
    n_nodes : int, optional
        Number of nodes in the grid. It is needed for laws with a rate per node.
    where : str
        Place in the file, for errors.
    """
    if checkpoint is None or checkpoint.model == "none":
        return [None]
    _check_parameters(checkpoint, where)
    if checkpoint.model == "perfect":
        return [PerfectCheckpoints()]
    mtbfs = _seconds(_mtbf(checkpoint, scenario, n_nodes, where), f"{where}.mtbf")
    if checkpoint.model == "tiers:auto":
        return list(_in_tiers(checkpoint, scenario, mtbfs, f"{where}.tiers"))
    costs = _seconds(checkpoint.cost, f"{where}.cost")
    recoveries = _seconds(checkpoint.recovery, f"{where}.recovery")
    return [
        CheckpointModel(mtbf_s, cost_s, recovery_s, checkpoint.rounding)
        for mtbf_s, cost_s, recovery_s in itertools.product(mtbfs, costs, recoveries)
    ]


def _check_parameters(checkpoint: CheckpointIn, where: str) -> None:
    """Raise InputError if a parameter is set, but has no effect."""
    model, default = ScenarioOptions(checkpoint=checkpoint.model), CheckpointIn()
    options = {option.extra.get("key", name): option.extra for name, option in OPTIONS.items()}
    names = [name for name in CheckpointIn.__struct_fields__ if name != "model"]
    needs = {name: (*options[name]["needs"], *options[name]["prepares"]) for name in names}
    used = [name for name in names if all(need.holds(model) for need in needs[name])]
    for name in (name for name in names if name not in used):
        if getattr(checkpoint, name) == getattr(default, name):
            continue
        if not used:
            problem = f"{checkpoint.model} checkpoints have no parameters"
            raise InputError(problem, where, f'only model = "{checkpoint.model}"')
        problem = f"has no effect on {checkpoint.model} checkpoints"
        raise InputError(problem, f"{where}.{name}", f"only {', '.join(used)}")


def _mtbf(
    checkpoint: CheckpointIn, scenario: FailureScenario | None, n_nodes: int | None, where: str
) -> Any:
    """Return the MTBF of the machine.

    The MTBF is set for the checkpoints or for the failures, or is computed from a law per node.
    """
    if checkpoint.mtbf is not None:
        return checkpoint.mtbf
    mtbf_s = scenario.mtbf_s if scenario else None
    if mtbf_s is None and scenario and n_nodes is not None:
        mtbf_s = scenario.law.mtbf_on(n_nodes)
    if mtbf_s is None:
        expected = "mtbf in checkpoint or failures; or nodes in the grid, and a law with an MTBF"
        raise InputError(f"the {_PERIODS[checkpoint.model]} needs an MTBF", where, expected)
    return mtbf_s


_PERIODS = {"young-daly": "Young/Daly period", "tiers:auto": "interval of tiers"}


def _seconds(values: Any, where: str) -> list[float]:
    listed = [seconds(value, where) for value in _several(values)]
    nonempty(listed, where)
    return listed


def _in_tiers(
    checkpoint: CheckpointIn, scenario: FailureScenario | None, mtbfs: Sequence[float], where: str
) -> Iterator[Checkpoints]:
    law, texts = scenario.law if scenario else None, _several(checkpoint.tiers)
    nonempty(texts, where)
    for mtbf_s, text in itertools.product(mtbfs, texts):
        try:
            yield TierCheckpoints.under(law, text, mtbf_s)
        except InputError as error:
            raise error.at(where) from None


# ---- names


def _check_names(spec: RunSpec) -> None:
    """Check the names and texts that are otherwise resolved and parsed only during runs."""
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


_PLACE = re.compile(r"\{(\w+)\}")


def swept(policies: Sequence[str], values: Mapping[str, Sequence[Any]], where: str) -> list[str]:
    """Return a policy for each combination of the values of the names in braces."""
    texts = (text for policy in policies for text in _each_policy(policy, values, where))
    return list(dict.fromkeys(texts))


def check_values(policies: Sequence[str], values: Mapping[str, Sequence[Any]], where: str) -> None:
    """Raise InputError for empty lists, duplicate values, and values that no policy uses."""
    used = {name for policy in policies for name in _PLACE.findall(policy)}
    for name, listed in values.items():
        nonempty(listed, f"{where}.{name}")
        distinct([str(value) for value in listed], f"{where}.{name}")
        if name not in used:
            raise InputError(
                "has no effect", f"{where}.{name}", f"a policy that contains {{{name}}}"
            )


def _each_policy(policy: str, values: Mapping[str, Sequence[Any]], where: str) -> list[str]:
    names = list(dict.fromkeys(_PLACE.findall(policy)))
    for name in names:
        if name not in values:
            if not values:
                expected = f"{name} = [...] in [grid.sweep]"
                raise InputError(f"{name!r} has no values", where, expected)
            raise unknown_name("swept parameter", name, values).at(where)
    combinations = itertools.product(*(values[name] for name in names))
    return [_filled(policy, dict(zip(names, chosen, strict=True))) for chosen in combinations]


def _filled(policy: str, chosen: Mapping[str, Any]) -> str:
    return _PLACE.sub(lambda place: str(chosen[place[1]]), policy)


SEED = "#"
"""Text between the name and the seed of a workload that has several seeds."""

Named = Mapping[str, Mapping[str, Source]]
"""Sources (one per seed). The first key is the workload's name in grids, the second in results."""

_GENERATED = ("generator", "seed", "seeds")
_TRACE = ("file", *TraceOptions.__struct_fields__)
_TRACE_KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("n_nodes", "cap", "max_jobs"), (int,)),
    **dict.fromkeys(("first_s", "last_s"), (float, int)),
    "months": (str, list),
}
"""TOML types of the trace options whose values are not texts."""

_KIND_NAMES = {int: "a whole number", float: "a number", str: "a text"}
"""Names of TOML types, for errors about trace options."""


def sources(tables: Mapping[str, Any], folder: Path, trace: Path | None) -> Named:
    """Return the workloads of a campaign file.

    Parameters
    ----------
    tables : mapping
        All tables of the file.
    folder : Path
        Folder to which file names are relative.
    trace : Path, optional
        File that replaces all workload files.
    """
    workloads = required(tables, "workloads", dict, "a table [workloads.NAME] per workload")
    return {
        name: dict(_sources(name, table, f"workloads.{name}", folder, trace))
        for name, table in workloads.items()
    }


def _sources(
    name: str, table: Any, where: str, folder: Path, trace: Path | None
) -> Iterator[tuple[str, Source]]:
    if not isinstance(table, dict) or ("generator" in table) == ("file" in table):
        raise InputError("is not a workload", where, "a table with either generator or file")
    if SEED in name:
        raise InputError(f"contains {SEED}", where, f"a name without {SEED}")
    if "file" in table:
        yield name, _file(table, where, folder, trace)
        return
    check_keys(table, _GENERATED, where)
    if "seeds" not in table:
        yield name, _generated(table, where)
        return
    if "seed" in table:
        raise InputError("has no effect", f"{where}.seed", "only one of seed and seeds")
    seeds = table["seeds"]
    if not isinstance(seeds, list):
        raise InputError(f"is {seeds!r}", f"{where}.seeds", "a list of whole numbers")
    for seed in seeds:
        source = _generated({"generator": table["generator"], "seed": seed}, where)
        yield f"{name}{SEED}{seed}", source
    check_seeds(seeds, f"{where}.seeds")
    distinct(seeds, f"{where}.seeds")


def _generated(table: dict[str, Any], where: str) -> Source:
    source = convert(table, Source, where)
    check_seeds([source.seed], f"{where}.seed")
    return source


def _file(table: dict[str, Any], where: str, folder: Path, trace: Path | None) -> Source:
    check_keys(table, _TRACE, where)
    options = {key: value for key, value in table.items() if key != "file"}
    for key, value in options.items():
        kinds = _TRACE_KINDS.get(key, (str,))
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise InputError(f"is {value!r}", f"{where}.{key}", _KIND_NAMES[kinds[0]])
    file = convert({"file": table["file"]}, Source, where).file or ""
    path = trace.absolute() if trace else folder.absolute() / file
    if not path.is_file():
        raise InputError(
            f"there is no file {path.name!r}", f"{where}.file", f"a file in {path.parent}"
        )
    return Source(file=str(path), options=options)


def check_source(source: Source) -> None:
    """Check a generator's name and options, or a file's ending and options."""
    from rebat.workloads.generate import generator
    from rebat.workloads.load import known_ending

    if source.file is None:
        generator(source.generator or "")
        return
    if known_ending(Path(source.file)) == ".json" and source.options:
        names = ", ".join(source.options)
        raise InputError("has no effect on a workload file", names, "a trace, or no options")
    trace_options({key: value for key, value in source.options.items() if key != "mapping"})
