# SPDX-License-Identifier: Apache-2.0
"""Expansion of the grids in a campaign file to runs.

The file defines workloads (a generator or a file), and combines them with policies and failures in
grids. In the name of a policy, ``{spares}`` is replaced by each value of ``spares`` in the table
``[grid.sweep]``. See ``docs/how-to/campaigns.md``. Durations are texts like "5min".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from rebat.core.errors import InputError, check_keys, error_at, short, unknown_name
from rebat.models.failures.laws import parameters
from rebat.report.kind import Document
from rebat.runs.case import Case, Door, case_of, expand
from rebat.runs.reading import check_seeds, convert, distinct, required
from rebat.runs.scenario import OPTIONS
from rebat.runs.unit import RunSpec, Source
from rebat.workloads.trace import TraceOptions, trace_options

# ---- grids


class GridIn(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of ``[[grid]]`` besides the options of `rebat run`.

    All combinations of workloads, policies and values of options are simulated.
    """

    name: str
    workloads: list[str]
    policies: list[str]
    failure_free: list[str] = []
    """Policies to run without failures and silent errors, once with each checkpoint model."""
    failure_free_checkpoints: bool = True
    """Whether the runs of ``failure_free`` policies have checkpoints."""
    seeds: int | list[int] | Literal["workload"] | None = None
    """Number of seeds, or a list. If 'workload', each workload's own seed is used."""
    sweep: dict[str, list[Any]] = {}
    """Values for the names in braces in policies."""


_OF_CHECKPOINTS = {
    option.extra["key"]: name for name, option in OPTIONS.items() if "key" in option.extra
}

ALIASES = {
    "failures": {
        "model": "law",
        "horizon": "horizon",
        "begin": "begin",
        "group": "failure_group",
        **{name: name for name in ("cascade", "cascade_window", "cascade_within")},
        "cores_per_node": "cores_per_node",
    },
    "checkpoint": {"model": "checkpoint", "tiers": "tiers", **_OF_CHECKPOINTS},
    "silent_errors": {"rate": "silent_errors", "probability": "silent_error_probability"},
}
"""Keys of the tables within a grid, with the options for which they stand. The table ``failures``
also contains the parameters of the law."""

KEYS = (*GridIn.__struct_fields__, *(name for name in OPTIONS if name != "seed"))
"""All keys of a grid. Those of `ALIASES` may be tables."""

TABLE_KEYS = {
    "failures": ("law", "file", *ALIASES["failures"], "seeds"),
    "checkpoint": (*ALIASES["checkpoint"],),
    "silent_errors": (*ALIASES["silent_errors"], "seeds"),
}
"""The keys of the tables within a grid."""


def runs(document: Document) -> list[RunSpec]:
    """Check all names, and return the runs of all grids in the order of the file.

    If a run is in several grids, it has the same key in each (see `unit`) and is executed once.
    """
    workloads = sources(document.tables, document.path.parent, document.trace)
    folder = document.path.parent.absolute()
    specs = [
        spec
        for where, table in document.grids
        for spec in expand(case_in(table, where, workloads, folder))
    ]
    for spec in specs:
        check_names(spec, f"grid {spec.grid!r}: policies")
    return specs


def case_in(table: dict[str, Any], where: str, workloads: Named, folder: Path) -> Case:
    """Return the case that a grid describes. ``where`` is its place in the file."""
    check_keys(table, KEYS, where)
    grid = convert(
        {key: table[key] for key in table if key in GridIn.__struct_fields__}, GridIn, where
    )
    for key in ("workloads", "policies", "failure_free"):
        distinct(getattr(grid, key), f"{where}.{key}")
    for name in grid.workloads:
        if name not in workloads:
            raise unknown_name("workload", name, workloads).at(f"{where}.workloads")
    if not grid.workloads or not (grid.policies or grid.failure_free):
        raise InputError("has no runs", where, "workloads and policies")
    given, places = _options(table, where)
    for name, values in grid.sweep.items():
        if not any(f"{{{name}}}" in policy for policy in (*grid.policies, *grid.failure_free)):
            expected = f"a policy that contains {{{name}}}"
            raise InputError("has no effect", f"{where}.sweep.{name}", expected)
        given[name], places[name] = values, f"{where}.sweep.{name}"
    seeds, of_seeds = _seeds(table, grid, where)
    named = {name: source for key in grid.workloads for name, source in workloads[key].items()}
    if seeds == "workload":
        if any(source.generator is None for source in named.values()):
            expected = "a list of seeds, because the workload has no seed"
            raise InputError("is 'workload'", of_seeds, expected)
    elif seeds is not None:
        given["seed"], places["seeds"] = seeds, of_seeds
    return case_of(
        given,
        grid.policies,
        Door(places, f"{where}."),
        folder=folder,
        grid=grid.name,
        workloads=named,
        own_seeds=seeds == "workload",
        failure_free=grid.failure_free,
        failure_free_checkpoints=grid.failure_free_checkpoints,
    )


def _options(table: dict[str, Any], where: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values of options and of parameters of the law, and their places in the file."""
    given, places = dict[str, Any](), dict[str, str]()

    def add(name: str, value: Any, place: str) -> None:
        if name in given:
            raise InputError("is a duplicate", place, f"only {places[name]}")
        given[name], places[name] = value, place

    for key, value in table.items():
        place = f"{where}.{key}"
        if isinstance(value, dict) and key in ALIASES:
            for name, inner, inner_place in _inner(key, value, place):
                add(name, inner, inner_place)
        elif key in OPTIONS:
            add(key, value, place)
    return given, places


def _inner(key: str, table: dict[str, Any], where: str) -> Iterator[tuple[str, Any, str]]:
    """Yield the options in a table of a grid: name, value and place."""
    valid, aliases = TABLE_KEYS[key], ALIASES[key]
    if key == "failures":
        if {"law", "model"} <= {*table}:
            raise InputError("has no effect", f"{where}.model", "only one of law and model")
        law = table.get("law", table.get("model", "trace" if "file" in table else "authors"))
        with error_at(f"{where}.{'model' if 'model' in table else 'law'}"):
            valid = (*(name for name in valid if name != "file"), *parameters(str(law)))
        yield "law", str(law), f"{where}.law" if "law" in table else where
    elif key == "checkpoint" and "model" not in table:
        yield "checkpoint", "young-daly", where
    elif key == "silent_errors" and not {"rate", "probability"} & {*table}:
        raise InputError("needs either rate or probability", where, "one of the two")
    check_keys(table, valid, where)
    for name, value in table.items():
        unset = name in ("begin", "cascade_within") and value == 0
        if name in ("law", "seeds") or (name == "model" and key == "failures") or unset:
            continue
        yield aliases.get(name, name), value, f"{where}.{name}"


def _seeds(table: dict[str, Any], grid: GridIn, where: str) -> tuple[Any, str]:
    """Return the seeds of a grid, or None, and their place."""
    seeds, place = grid.seeds, f"{where}.seeds"
    for key in ("failures", "silent_errors"):
        inner = table.get(key)
        if isinstance(inner, dict) and "seeds" in inner:
            if seeds is not None:
                raise InputError("is a duplicate", f"{where}.{key}.seeds", f"only {place}")
            seeds, place = inner["seeds"], f"{where}.{key}.seeds"
    if isinstance(seeds, int) and not isinstance(seeds, bool):
        seeds = list(range(seeds))
    if seeds is None or seeds == "workload":
        return seeds, place
    if not isinstance(seeds, list) or not all(type(seed) is int for seed in seeds):
        raise InputError(f"is {short(seeds)}", place, "a list of whole numbers")
    check_seeds(seeds, place)
    distinct(seeds, place)
    return seeds, place


# ---- names


def check_names(spec: RunSpec, where: str) -> None:
    """Check the policy and the workload of a run. ``where`` is the place of the policy."""
    with error_at(where):
        _check_policy(spec)
    with error_at(f"workloads.{spec.workload}"):
        check_source(spec.source)


def _check_policy(spec: RunSpec) -> None:
    from rebat.policies.presets import Preset, scheduler
    from rebat.runs.staging import check_foresight

    chosen = scheduler(spec.policy, Path(spec.folder))
    if isinstance(chosen, Preset) and chosen.foresees:
        check_foresight(spec.scenario)


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
