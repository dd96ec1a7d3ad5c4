# SPDX-License-Identifier: Apache-2.0
"""Commands from functions: the signature of a function is its command line.

A positional parameter is an argument, a keyword-only parameter is an option. Its annotation
contains the help text and the flags (see `rebat.core.declared`), its default is that of the option.
The docstring is the help of the command::

    @command()
    def describe(file: Workload, *, nodes: Annotated[Machine | None, "Number of nodes."] = None):

A parameter whose type is a struct, or whose annotation contains `options_of`, stands for several
options.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec
from click.core import ParameterSource

from rebat.core.declared import Declared, declaration, declared, hints_of
from rebat.core.errors import InputError
from rebat.core.numbers import exact
from rebat.core.units import parse_duration

Values = dict[str, Any]
"""The values of several options by name."""

Epilog = Callable[[click.HelpFormatter], None]
"""Function that writes the end of a help text."""


class Options(NamedTuple):
    """The options for which a parameter stands."""

    rows: tuple[Declared, ...]
    make: Callable[..., Any] | None = dict
    """Function of the values by name, or None for a parameter that is a single option."""


def options_of(source: Any, *only: str, **helps: str) -> Options:
    """Return options that a struct or a function declares. The parameter receives a dictionary.

    ``only`` contains their names in order (default: all). ``helps`` replaces help texts of options
    whose meaning is narrower in this command.
    """
    rows = declared(source)
    return Options(
        tuple(
            msgspec.structs.replace(rows[name], help=helps.get(name, rows[name].help))
            for name in only or rows
        )
    )


class Command(click.Command):
    """A command that keeps its arguments as the user wrote them, and can list values in its help."""

    epilog_writer: Epilog | None = None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_GIVEN] = list(args)
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.epilog_writer is not None:
            self.epilog_writer(formatter)


def command(
    epilog: Epilog | None = None, name: str | None = None
) -> Callable[[Callable[..., None]], Command]:
    """Make a command from a function. ``epilog`` writes the end of its help text.

    The default name is that of the function.
    """

    def decorated(function: Callable[..., None]) -> Command:
        parts = _parts(function)
        rows = [row for part in parts.values() for row in part.rows]
        files = [row.name for row in rows if row.extra.get("new")]
        params = []
        for row in rows:
            params.append(_parameter(row))
            if row.name == "out" and files and "force" not in parts:
                params.append(_parameter(_FORCE))

        def called(**values: Any) -> None:
            for file in files:
                _check_absent(values[file], values["force"])
            given = {}
            for parameter, part in parts.items():
                own = {row.name: values[row.name] for row in part.rows}
                given[parameter] = part.make(**own) if part.make else own[parameter]
            function(**given)

        made = Command(
            name or function.__name__.replace("_", "-"),
            callback=called,
            params=params,
            help=inspect.getdoc(function),
        )
        made.epilog_writer = epilog
        return made

    return decorated


def group(name: str, help: str, *commands: Command) -> click.Group:
    """Return a command with subcommands."""
    return click.Group(name, {str(row.name): row for row in commands}, help=inspect.cleandoc(help))


def _parts(function: Callable[..., None]) -> dict[str, Options]:
    """Return the options of each parameter of a function."""
    parts = {}
    rows = declared(function)
    for name, hint in hints_of(function).items():
        parts[name] = next(
            (meta for meta in getattr(hint, "__metadata__", ()) if isinstance(meta, Options)),
            Options((rows[name],), None),
        )
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            parts[name] = options_of(hint)._replace(make=hint)
    return parts


def _parameter(row: Declared) -> click.Parameter:
    """Return an option or an argument of click."""
    extra, default = row.extra, row.default
    required = default is msgspec.NODEFAULT
    details: dict[str, Any] = {"metavar": extra.get("metavar")}
    if "values" in extra:
        details["shell_complete"] = _completer(extra["values"])
    if row.positional and "flags" not in extra:
        nargs = -1 if row.several else 1
        return click.Argument(
            [row.name], type=_type(row), required=required, nargs=nargs, **details
        )
    flags = extra.get("flags", (f"--{row.name.replace('_', '-')}",))
    if row.kind is bool:
        details |= {"is_flag": True, "default": default}
    else:
        details["type"] = _type(row)
    if "flag_value" in extra:
        details["flag_value"] = extra["flag_value"]
    if "without_value" in extra:
        details |= {"is_flag": False, "flag_value": extra["without_value"]}
    if not (required or default is None or (row.several and not default)):
        plain = row.kind is bool and "/" not in flags[0]
        shown = not plain and "(default" not in row.help
        details["default"] = extra.get("default", _text(row) if shown else default)
        details["show_default"] = shown
    return click.Option(
        [*flags, row.name],
        required=required,
        multiple=row.several,
        help=row.help,
        **details,
    )


def _text(row: Declared) -> Any:
    """Return a default as the user would write it."""
    if row.is_duration and isinstance(row.default, int | float):
        return exact(row.default).replace(" ", "")
    return row.default


def _completer(values: str) -> Callable[..., Any]:
    """Return the function of `rebat.cli.completion` that completes these values."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> Any:
        from rebat.cli import completion

        return getattr(completion, f"complete_{values}")(ctx, param, incomplete)

    return complete


# ---- types of options


class DurationType(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4
    """A duration in seconds, from texts like '300', '5min', '1h30min', '2d'."""

    name = "duration"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        if isinstance(value, int | float):
            return float(value)
        try:
            seconds = parse_duration(value)
        except InputError as error:
            self.fail(str(error), param, ctx)
        if seconds <= 0:
            self.fail(f"must be above 0, not {value!r}", param, ctx)
        return seconds


class FiniteRange(click.FloatRange):
    """A finite number in a range. NaN is rejected, although it would pass the range check."""

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"must be a finite number, not {value!r}", param, ctx)
        return number


class Input(click.Path):
    """A file to read, or the name of a file included in rebat."""

    def __init__(self, kind: str, *endings: str, folders: bool = False) -> None:
        super().__init__(path_type=Path, dir_okay=False)
        self._kind, self._endings, self._folders = kind, endings, folders

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[Any]:
        """Complete the names of included files, and files."""
        from rebat.cli.completion import items_of
        from rebat.core.files import names

        included = dict.fromkeys(names(self._kind, *self._endings), "")
        return items_of(included, "", incomplete) + super().shell_complete(ctx, param, incomplete)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        from rebat.core.files import located

        if self._folders and Path(value).is_dir():
            return Path(value)
        path = located(Path(value), self._kind, *self._endings)
        return super().convert(path, param, ctx)


class WorkloadOut(click.Path):
    """A workload file to write.

    The name must end in .json, .json.gz or .parquet, unless the path is a pipe or a device.
    """

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        path = Path(str(super().convert(value, param, ctx)))
        special = path.exists() and not path.is_file()
        if not special and not path.name.lower().endswith((".json", ".json.gz", ".parquet")):
            self.fail(f"{path.name!r} must end in .json, .json.gz or .parquet", param, ctx)
        return path


class MachineSize(click.IntRange):
    """The number of nodes of a machine."""

    def __init__(self) -> None:
        super().__init__(min=1)

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        from rebat.core.cores import check_machine

        try:
            return check_machine(int(super().convert(value, param, ctx)))
        except InputError as error:
            self.fail(str(error), param, ctx)


class LawType(click.ParamType):  # type: ignore[type-arg]
    """A failure law, like 'authors:mtbf=1h,downtime=1h'."""

    name = "law"

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[Any]:
        """Complete the name of a law, then its parameters."""
        from rebat.cli.completion import complete_law

        return complete_law(ctx, param, incomplete)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        from rebat.models.failures.laws import parse_law

        try:
            return parse_law(str(value))
        except InputError as error:
            raise error.at("--law") from None


class CheckedText(click.ParamType):  # type: ignore[type-arg]
    """A text that a function accepts or refuses with an InputError."""

    name = "text"

    def __init__(self, check: Callable[[str], Any]) -> None:
        self._check = check

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        try:
            self._check(value)
        except InputError as error:
            self.fail(str(error), param, ctx)
        return str(value)


FILES: dict[str, click.Path] = {
    "file": click.Path(path_type=Path, dir_okay=False),
    "folder": click.Path(path_type=Path, file_okay=False),
    "any": click.Path(path_type=Path),
    "workloads": Input("workloads", ".json"),
    "workload or run": Input("workloads", ".json", folders=True),
    "failure_events": Input("failure_events", ".events"),
    "campaigns": Input("campaigns", ".toml"),
    "platforms": Input("platforms", ".xml"),
    "workload out": WorkloadOut(path_type=Path, dir_okay=False),
}
"""Type of each kind of file (the property ``file`` of an option)."""


def _type(row: Declared) -> Any:
    """Return the click type of an option."""
    if "check" in row.extra:
        return CheckedText(row.extra["check"])
    if row.choices:
        return click.Choice(row.choices)
    types: dict[str, Callable[[Declared], Any]] = {
        "Path": lambda row: FILES[row.extra.get("file", "file")],
        "float": lambda row: DurationType() if row.is_duration else FiniteRange(**_range(row)),
        "int": _whole_number,
        "str": lambda row: str,
        "Law": lambda row: LawType(),
    }
    return types[row.kind.__name__](row)


def _whole_number(row: Declared) -> Any:
    if row.extra.get("machine"):
        return MachineSize()
    if row.extra.get("seed"):
        from rebat.core.durations import LARGEST_SEED

        return click.IntRange(min=0, max=LARGEST_SEED)
    return click.IntRange(**_range(row)) if row.limits else int


def _range(row: Declared) -> dict[str, Any]:
    """Return the limits of an option in the form of click."""
    limits: dict[str, Any] = row.limits
    if row.kind is int:
        limits = {name: int(value) for name, value in limits.items()}
    return {
        "min": limits.get("ge", limits.get("gt")),
        "max": limits.get("le", limits.get("lt")),
        "min_open": "gt" in limits,
        "max_open": "lt" in limits,
    }


# ---- files that are replaced only with --force

_FORCE = declaration("force", bool, False)
_FORCE = msgspec.structs.replace(_FORCE, help="Replace an existing file.")


def _check_absent(path: Path | None, force: bool) -> None:
    if path is not None and path.is_file() and not force:
        raise InputError("exists", str(path), "a new file, or --force to replace it")


# ---- the command line as the user wrote it

_GIVEN = "rebat.given"

WITHOUT_EFFECT = {"out", "force", "as_json", "columns", "all_metrics", "table", "workers"}
"""Parameters that affect neither the files of a result nor their content."""


def used_options() -> dict[str, str]:
    """Return the long spelling of each option on this command line, by parameter name."""
    context = click.get_current_context()
    return {
        option.name: next(text for text in reversed(option.opts) if text.startswith("--"))
        for option in context.command.params
        if isinstance(option, click.Option)
        and option.name
        and any(text.startswith("--") for text in option.opts)
        and context.get_parameter_source(option.name) == ParameterSource.COMMANDLINE
    }


def given_options() -> dict[str, list[Any]]:
    """Return the values on the command line as texts, by long option or name of an argument.

    A flag, or an option without its value, has an empty list of texts. Parameters in `WITHOUT_EFFECT` are omitted.
    """
    ctx = click.get_current_context()
    blank = click.Context(ctx.command, parent=ctx.parent, resilient_parsing=True)
    values, _, _ = ctx.command.make_parser(blank).parse_args(list(ctx.meta[_GIVEN]))
    given: dict[str, list[Any]] = {}
    for option in ctx.command.params:
        if option.name in WITHOUT_EFFECT or option.name not in values:
            continue
        value = values[option.name]
        if isinstance(option, click.Option):
            name = max(option.opts, key=len)
            texts = value if option.multiple else [value]
            plain = option.is_flag or not isinstance(texts[0], str)
            given[name] = [] if plain else list(texts)
        else:
            given[str(option.name).upper()] = [value]
    return given


def arguments_of(command: str, given: dict[str, list[Any]]) -> list[str]:
    """Return a command as a list of arguments. ``given`` is the result of `given_options`."""
    arguments = [command]
    for name, texts in given.items():
        if not name.startswith("-"):
            arguments += texts
        elif not texts:
            arguments.append(name)
        else:
            arguments += [word for text in texts for word in (name, text)]
    return arguments
