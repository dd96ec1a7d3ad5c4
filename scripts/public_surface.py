# SPDX-License-Identifier: Apache-2.0
"""The public surface of rebat, one line for each name, and the Python page of the documentation.

`docs/reference/public.md` states what these names promise. A test compares the lines with the list
in `tests/data/public-surface.txt`. After an intended change, write this list again::

    python scripts/public_surface.py > tests/data/public-surface.txt
"""

from __future__ import annotations

import csv
import importlib
import inspect
import json
import re
import tempfile
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

import click

MODULES = {
    "rebat": "Functions and results",
    "rebat.contract": "For policies",
    "rebat.env": "Train an agent",
}
"""The public modules and the titles of their sections. Their `__all__` lists the public names."""


INTERNAL = {
    "rebat.Result": ("of_runs", "of_seeds", "rows", "run_of", "sheet", "write_into"),
    "rebat.Calibration": ("json", "site_text"),
    "rebat.Goodput": ("case", "json", "record"),
    "rebat.Page": ("HEIGHT",),
    "rebat.Plot": ("html",),
    "rebat.contract.Changes": ("leave", "withdraw"),
    "rebat.contract.Machine": ("drained_for",),
    "rebat.contract.View": ("obstacle", "part"),
}
"""Members of public classes that only rebat itself uses. They can change in each version."""


def public_names(module: str) -> dict[str, Any]:
    """Return the public objects of a module by name, in the order of its `__all__`."""
    loaded = importlib.import_module(module)
    return {name: getattr(loaded, name) for name in loaded.__all__}


def lines() -> Iterator[str]:
    """Yield the public surface: Python, command line, options, names, campaign keys, files."""
    for module in MODULES:
        for name, value in public_names(module).items():
            yield from _of_object(f"{module}.{name}", value)
    yield from _of_commands()
    yield from _of_options()
    yield from _of_campaigns()
    yield from _of_files()


def _of_object(path: str, value: Any) -> Iterator[str]:
    if isinstance(value, ModuleType):  # rebat.policies, which is callable
        yield f"python {path}()"
    elif inspect.isclass(value):
        yield f"python {path}"
        for name in sorted(_members(path, value)):
            member = inspect.getattr_static(value, name, None)
            call = _signature(getattr(value, name)) if inspect.isroutine(member) else ""
            yield f"python {path}.{name}{call}"
    elif callable(value):
        yield f"python {path}{_signature(value)}"
    else:
        yield f"python {path}"


def _members(path: str, kind: type) -> set[str]:
    """Return the public members that a class itself defines."""
    if issubclass(kind, Enum):
        return set(kind.__members__)
    names = {*vars(kind), *inspect.get_annotations(kind)}
    return {name for name in names if not name.startswith("_")} - {*INTERNAL.get(path, ())}


def _signature(function: Any) -> str:
    """Return the names of the parameters. Parameters with a default end in ``=``."""
    words = []
    keyword_only = False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            words.append("*")
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        default = "" if parameter.default is parameter.empty else "="
        words.append(f"{star}{parameter.name}{default}")
    return f"({', '.join(words)})"


def commands() -> Iterator[click.Context]:
    """Yield a context of every command and group of rebat, a group before its commands."""
    from rebat.cli.main import cli

    def below(ctx: click.Context) -> Iterator[click.Context]:
        group = ctx.command
        for name in group.list_commands(ctx) if isinstance(group, click.Group) else ():
            command = group.get_command(ctx, name)
            if command is not None:
                inner = click.Context(command, ctx, name)
                yield inner
                yield from below(inner)

    root = click.Context(cli, info_name="rebat", max_content_width=100)
    yield root
    yield from below(root)


def _of_commands() -> Iterator[str]:
    for ctx in commands():
        for parameter in ctx.command.params:
            names = [*parameter.opts, *parameter.secondary_opts]
            if isinstance(parameter, click.Argument):
                names = [str(parameter.human_readable_name)]
            yield f"command {ctx.command_path} {' '.join(sorted(names))}"


def _of_options() -> Iterator[str]:
    from rebat.models.failures.laws import LAWS, prefabs
    from rebat.policies.choosing import KINDS, OPTIONS
    from rebat.policies.presets import ALIASES, PRESETS
    from rebat.policies.queue_order import QUEUE_ORDERS
    from rebat.policies.variants import fields
    from rebat.results.catalogue import CATALOGUE, FURTHER

    choices = {
        row.name: row.extra.get("choices") or () for kind in KINDS for row in fields(kind).values()
    }
    for name in OPTIONS:
        yield " ".join(["axis", name, *map(str, choices.get(name, ()))])
    yield from (f"policy {name}" for name in (*PRESETS, *ALIASES))
    yield from (f"order {name}" for name in QUEUE_ORDERS)
    yield from (f"law {name}" for name in (*LAWS, *prefabs()))
    yield from (f"metric {row.name}" for row in (*CATALOGUE, *FURTHER))


def _of_campaigns() -> Iterator[str]:
    from rebat.campaign import grid, opening

    tables = {
        "": opening._TOP,
        "grid.": grid.KEYS,
        **{f"grid.{name}.": keys for name, keys in grid.TABLE_KEYS.items()},
        "workloads.NAME.": (*grid._GENERATED, *grid._TRACE),
    }
    for table, keys in tables.items():
        yield from (f"campaign {table}{key}" for key in keys)


def _of_files() -> Iterator[str]:
    """Yield the files of a small run with their columns and keys."""
    import rebat

    result = rebat.run("toy", ["sfsj"], failures=rebat.failures(file="toy"))
    with tempfile.TemporaryDirectory() as folder:
        result.write(Path(folder) / "out")
        for path in sorted(Path(folder).rglob("*")):
            where = path.relative_to(Path(folder, "out")).as_posix().replace("sfsj/", "POLICY/")
            if path.suffix == ".csv":
                with path.open(newline="") as file:
                    yield " ".join(["file", where, *next(csv.reader(file))])
            elif path.suffix == ".json":
                yield " ".join(["file", where, *json.loads(path.read_text())])
            elif path.is_file():
                yield f"file {where}"


def python_page(module: str) -> str:
    """Return the entries of a public module for mkdocstrings, in Markdown."""
    entries = {}
    for name, value in public_names(module).items():
        if isinstance(value, ModuleType):
            entries[f"::: {value.__name__}.table"] = ""
        elif hasattr(value, "__qualname__"):
            hidden = [
                "!^_",
                *(f"!^{internal}$" for internal in INTERNAL.get(f"{module}.{name}", ())),
            ]
            options = f"    options:\n      filters: {json.dumps(hidden)}"
            entries[f"::: {value.__module__}.{value.__qualname__}"] = options
        else:
            entries[f"::: {_place(module, name)}.{name}"] = ""
    return "\n\n".join(f"{entry}\n{options}".rstrip() for entry, options in entries.items()) + "\n"


def _place(module: str, name: str) -> str:
    """Return the module from which a public module imports a union or a table."""
    text = inspect.getsource(importlib.import_module(module))
    match = re.search(rf"from (\S+) import (?:{name}\b|\([^)]*\b{name}\b)", text)
    assert match, name
    return match[1]


if __name__ == "__main__":
    print("\n".join(lines()))
