# SPDX-License-Identifier: Apache-2.0
"""The workloads of a campaign file (``[workloads.NAME]``), each a generator or a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rebat.core.errors import InputError
from rebat.runs.reading import check_keys, check_seeds, convert, distinct, required
from rebat.runs.unit import Source
from rebat.workloads.trace import TraceOptions, trace_options

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
