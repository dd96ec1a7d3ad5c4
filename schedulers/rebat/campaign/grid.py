"""A campaign file and the runs it stands for.

The file (TOML) names workloads, then says in one or more ``[[grid]]`` tables which policies meet
them under which failures; ``campaigns/README.md`` shows it. Every duration is in human units.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import FieldInfo

from rebat.campaign.spec import (
    Campaign,
    CheckpointIn,
    CheckpointModel,
    Duration,
    FailureScenario,
    FailuresIn,
    GridIn,
    RunSpec,
    Source,
)
from rebat.core.errors import InputError, unknown_name
from rebat.core.files import read_text
from rebat.core.units import parse_duration
from rebat.models.failures.law import Law
from rebat.models.failures.laws import law_named, make_law, parameters, read
from rebat.workloads.trace import TraceOptions, trace_options

_T = TypeVar("_T", bound=msgspec.Struct)

LARGEST_SEED = 2**63 - 1

_TOP = ("name", "workloads", "grid")
_FAILURES = FailuresIn.__struct_fields__
_GENERATED = ("generator", "seed")
_TRACE = ("file", *TraceOptions.__struct_fields__)
_TRACE_KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("n_nodes", "cap", "max_jobs"), (int,)),
    **dict.fromkeys(("first_s", "last_s"), (float, int)),
    "months": (str, list),
}
"""TOML types of trace options; the others are texts."""


def read_campaign(path: Path, trace: Path | None = None) -> Campaign:
    """Read a campaign file and check its form and every name in it.

    Parameters
    ----------
    path : Path
        The TOML file; files that it names are looked for from its folder on.
    trace : Path, optional
        Takes the place of the file of every workload that has one.

    Raises
    ------
    InputError
        With the file and the key, before anything runs.
    """
    try:
        document = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not TOML: {error}", str(path)) from None
    try:
        campaign = _campaign(path, document, trace)
        for spec in expand(campaign):
            _check_names(spec)
    except InputError as error:
        raise error.at(str(path)) from None
    return campaign


def expand(campaign: Campaign) -> list[RunSpec]:
    """Every run of every grid, in the order of the file.

    Runs of two grids may be the same but for the grid's name; they have one key (`keys`) and are
    run once.
    """
    return [
        spec
        for index, grid in enumerate(campaign.grids)
        for spec in _expand_grid(campaign, grid, f"grid[{index}]")
    ]


def _campaign(path: Path, document: dict[str, Any], trace: Path | None) -> Campaign:
    _known_keys(document, _TOP, "")
    tables = _required(document, "workloads", dict, "a table [workloads.NAME] per workload")
    workloads = {
        name: _source(table, f"workloads.{name}", path.parent, trace)
        for name, table in tables.items()
    }
    rows = _required(document, "grid", list, "one or more tables [[grid]]")
    grids = [_grid(row, f"grid[{index}]", workloads) for index, row in enumerate(rows)]
    _distinct([grid.name for grid in grids], "grid: name")
    name = document.get("name", path.stem)
    if not isinstance(name, str) or not name or "/" in name:
        raise InputError(f"is {name!r}", "name", "a text without '/'")
    return Campaign(path, name, workloads, grids)


def _source(table: Any, where: str, folder: Path, trace: Path | None) -> Source:
    if not isinstance(table, dict) or ("generator" in table) == ("file" in table):
        raise InputError("is no workload", where, "a table with either generator or file")
    if "generator" in table:
        _known_keys(table, _GENERATED, where)
        made = _convert(table, Source, where)
        _check_seeds([made.seed], f"{where}.seed")
        return made
    _known_keys(table, _TRACE, where)
    options = {key: value for key, value in table.items() if key != "file"}
    for key, value in options.items():
        kinds = _TRACE_KINDS.get(key, (str,))
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise InputError(f"is {value!r}", f"{where}.{key}", kinds[0].__name__)
    file = _convert({"file": table["file"]}, Source, where).file or ""
    path = trace.absolute() if trace else folder.absolute() / file
    if not path.is_file():
        raise InputError(f"no file {path.name!r}", f"{where}.file", f"a file in {path.parent}")
    return Source(file=str(path), options=options)


def _grid(table: Any, where: str, workloads: Mapping[str, Source]) -> GridIn:
    if not isinstance(table, dict):
        raise InputError("is no table", where, "[[grid]]")
    _known_keys(table, GridIn.__struct_fields__, where)
    if isinstance(table.get("checkpoint"), dict):
        _known_keys(table["checkpoint"], CheckpointIn.__struct_fields__, f"{where}.checkpoint")
    grid = _convert(table, GridIn, where)
    for key in ("workloads", "policies", "failure_free"):
        _distinct(getattr(grid, key), f"{where}.{key}")
    for name in grid.workloads:
        if name not in workloads:
            raise unknown_name("workload", name, workloads).at(f"{where}.workloads")
    if not grid.workloads or not (grid.policies or grid.failure_free):
        raise InputError("has nothing to run", where, "workloads and policies")
    if grid.nodes is not None and grid.nodes < 1:
        raise InputError(f"is {grid.nodes}", f"{where}.nodes", "at least 1")
    return grid


def _expand_grid(campaign: Campaign, grid: GridIn, where: str) -> Iterator[RunSpec]:
    folder = campaign.path.parent.absolute()
    scenarios = _scenarios(grid.failures, f"{where}.failures", folder)
    for workload in grid.workloads:
        base = RunSpec(
            grid=grid.name, workload=workload, policy="", source=campaign.workloads[workload],
            nodes=grid.nodes, window=grid.window, select=grid.select,
            folder=str(folder),
        )  # fmt: skip
        for policy in grid.failure_free:
            yield msgspec.structs.replace(base, policy=policy)
        for scenario, policy in itertools.product(scenarios, grid.policies):
            checkpoint = _checkpoint(grid.checkpoint, scenario, f"{where}.checkpoint")
            yield msgspec.structs.replace(
                base, policy=policy, failures=scenario, checkpoint=checkpoint
            )


def _scenarios(
    table: dict[str, Any] | None, where: str, folder: Path
) -> list[FailureScenario | None]:
    """Every combination of the values of a law's parameters, with every seed."""
    if table is None:
        return [None]
    told = _convert({key: table[key] for key in table if key in _FAILURES}, FailuresIn, where)
    name = _law_name(told, where)
    known = parameters(name)
    _known_keys(table, [*(key for key in _FAILURES if key != "file"), *known], where)
    values = {key: _each(field, table[key], f"{where}.{key}", folder)
              for key, field in known.items() if key in table}  # fmt: skip
    laws = [_law(name, dict(zip(values, some, strict=True)), where)
            for some in itertools.product(*values.values())]  # fmt: skip
    if not all(law.drawn for law in laws):
        for key in {"seeds", "horizon"} & {*table}:
            raise InputError("has no effect", f"{where}.{key}", "failures that are drawn")
    seeds = [0] if told.seeds is None else told.seeds
    _distinct(seeds, f"{where}.seeds")
    _check_seeds(seeds, f"{where}.seeds")
    horizon = told.horizon
    horizon_s = None if horizon is None else _seconds(horizon, f"{where}.horizon")
    return [FailureScenario(law, seed, horizon_s) for law in laws for seed in seeds]


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


def _law(name: str, values: Mapping[str, Any], where: str) -> Law:
    try:
        return make_law(name, values)
    except InputError as error:
        raise error.at(where) from None


def _each(field: FieldInfo, value: Any, where: str, folder: Path) -> list[Any]:
    """One or more values of a parameter; a file is looked for from the campaign's folder on."""
    values = value if isinstance(value, list) else [value]
    found = [read(field, one, where) for one in values]
    if not found:
        raise InputError("is empty", where, "one or more values")
    _distinct(found, where)
    return [str(folder / one) for one in found] if field.name == "file" else found


def _checkpoint(
    checkpoint: CheckpointIn | None, scenario: FailureScenario | None, where: str
) -> CheckpointModel | None:
    if checkpoint is None or checkpoint.model == "none":
        return None
    mtbf = checkpoint.mtbf
    if mtbf is None:
        mtbf = scenario.mtbf_s if scenario else None
    if mtbf is None:
        raise InputError("the Young/Daly period needs an MTBF", where, "mtbf, or failures with one")
    return CheckpointModel(
        _seconds(mtbf, f"{where}.mtbf"),
        _seconds(checkpoint.cost, f"{where}.cost"),
        _seconds(checkpoint.recovery, f"{where}.recovery"),
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
        (f"{place}: window", lambda: parse_window(spec.window)),
        (f"{place}: select", lambda: parse_selection(spec.select)),
        (f"workloads.{spec.workload}", lambda: _check_import(spec.source)),
    ):
        try:
            check()
        except InputError as error:
            raise error.at(where) from None


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


def _check_seeds(seeds: Sequence[int], where: str) -> None:
    """Seeds that the results table can hold."""
    wrong = [seed for seed in seeds if not 0 <= seed <= LARGEST_SEED]
    if wrong or not seeds:
        what = f"is {wrong[0]}" if wrong else "is empty"
        raise InputError(what, where, f"whole numbers from 0 to {LARGEST_SEED}")


def _seconds(value: Duration, where: str) -> float:
    try:
        seconds = parse_duration(value)
    except InputError as error:
        raise error.at(where) from None
    if seconds <= 0:
        raise InputError(f"is {value!r}", where, "a duration above 0")
    return seconds


def _known_keys(table: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for key in table:
        if key not in known:
            error = unknown_name("key", key, known)
            raise error.at(where) if where else error


def _required(table: Mapping[str, Any], key: str, kind: type, expected: str) -> Any:
    value = table.get(key)
    if not isinstance(value, kind) or not value:
        raise InputError("is missing" if value is None else "is wrong or empty", key, expected)
    return value


def _convert(table: Mapping[str, Any], kind: type[_T], where: str) -> _T:
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:  # "what - at `$.place`"
        what, _, place = str(error).partition(" - at ")
        inner = place.strip("`").removeprefix("$").removeprefix(".")
        raise InputError(what, f"{where}.{inner}" if inner else where) from None


def _distinct(values: Sequence[Any], where: str) -> None:
    twice = [value for value in dict.fromkeys(values) if list(values).count(value) > 1]
    if twice:
        raise InputError(f"has {twice[0]!r} twice", where)
