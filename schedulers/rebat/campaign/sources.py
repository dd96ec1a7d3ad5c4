# SPDX-License-Identifier: Apache-2.0
"""The workloads of a campaign file: ``[workloads.NAME]``, a generator or a file each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rebat.core.errors import InputError, unknown_name
from rebat.runs.reading import check_seeds, convert, distinct, known_keys, required
from rebat.runs.spec import Source
from rebat.workloads.trace import TraceOptions, trace_options

SEED = "#"
"""Between a workload's name and its seed, where it is made with several."""

Named = Mapping[str, Mapping[str, Source]]
"""What grids call a workload -> what the results call it -> where it comes from: one for each of
its seeds."""

_GENERATED = ("generator", "seed", "seeds")
_TRACE = ("file", *TraceOptions.__struct_fields__)
_TRACE_KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("n_nodes", "cap", "max_jobs"), (int,)),
    **dict.fromkeys(("first_s", "last_s"), (float, int)),
    "months": (str, list),
}
"""TOML types of trace options; the others are texts."""


def sources(tables: Mapping[str, Any], folder: Path, trace: Path | None) -> Named:
    """Every workload of a file.

    Parameters
    ----------
    tables : mapping
        The whole file.
    folder : Path
        Files are looked for from there on.
    trace : Path, optional
        Takes the place of every file.

    Raises
    ------
    InputError
        With the key in the file.
    """
    found = required(tables, "workloads", dict, "a table [workloads.NAME] per workload")
    return {
        name: dict(_sources(name, table, f"workloads.{name}", folder, trace))
        for name, table in found.items()
    }


def _sources(
    name: str, table: Any, where: str, folder: Path, trace: Path | None
) -> Iterator[tuple[str, Source]]:
    if not isinstance(table, dict) or ("generator" in table) == ("file" in table):
        raise InputError("is no workload", where, "a table with either generator or file")
    if SEED in name:
        raise InputError(f"has a {SEED} in its name", where, f"none: {SEED}0 stands for seed 0")
    if "file" in table:
        yield name, _file(table, where, folder, trace)
        return
    known_keys(table, _GENERATED, where)
    if "seeds" not in table:
        yield name, _generated(table, where)
        return
    if "seed" in table:
        raise InputError("has no effect", f"{where}.seed", "no seeds beside it")
    seeds = table["seeds"]
    if not isinstance(seeds, list):
        raise InputError(f"is {seeds!r}", f"{where}.seeds", "a list of whole numbers")
    for seed in seeds:
        made = _generated({"generator": table["generator"], "seed": seed}, where)
        yield f"{name}{SEED}{seed}", made
    check_seeds(seeds, f"{where}.seeds")
    distinct(seeds, f"{where}.seeds")


def _generated(table: dict[str, Any], where: str) -> Source:
    made = convert(table, Source, where)
    check_seeds([made.seed], f"{where}.seed")
    return made


def _file(table: dict[str, Any], where: str, folder: Path, trace: Path | None) -> Source:
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


def check_source(source: Source) -> None:
    """A generator must be known; so must a file's ending, and its options fit it.

    Raises
    ------
    InputError
        For one that is not.
    """
    from rebat.workloads.generate import generator
    from rebat.workloads.load import READERS

    if source.file is None:
        generator(source.generator or "")
        return
    ending = Path(Path(source.file).name.removesuffix(".gz")).suffix.lower()
    if ending not in READERS:
        raise unknown_name("kind of workload", ending, READERS)
    if ending == ".json" and source.options:
        raise InputError(f"{', '.join(source.options)}: for .swf and .csv traces only")
    trace_options(dict(source.options))
