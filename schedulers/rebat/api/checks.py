# SPDX-License-Identifier: Apache-2.0
"""Checks of the arguments of functions and commands, and their displayed signatures.

Functions like `rebat.run` receive options as ``**options``, because the options are declared in
structs. The displayed signature lists these options, for completion and help in notebooks. It has
no effect on calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from inspect import Parameter, signature
from typing import Any, Literal, TypeVar

import msgspec

from rebat.api.failures import Duration
from rebat.core.declared import Declared, declared
from rebat.core.errors import InputError, RebatError
from rebat.models.failures.laws import law_named
from rebat.runs.scenario import OPTIONS, ScenarioOptions

T = TypeVar("T", bound=msgspec.Struct)

SHORTEST_S = 1e-6
"""Minimum duration, which is the resolution of simulated time (one microsecond)."""

UsedOptions = Mapping[str, str]
"""Options that the user set: each name with its spelling on the command line."""


@contextmanager
def error_at(option: str) -> Iterator[None]:
    """Add the name of an option to errors raised in the block."""
    try:
        yield
    except InputError as error:
        raise error.at(option) from None


@contextmanager
def in_python() -> Iterator[None]:
    """Spell options as in Python (``checkpoint_cost``) in errors raised in the block."""
    try:
        yield
    except RebatError as error:
        raise type(error)(python_spelling(str(error))) from None


def python_spelling(text: str) -> str:
    """Replace the command-line options in a text by Python arguments.

    >>> python_spelling("--checkpoint-cost: has no effect")
    'checkpoint_cost: has no effect'
    """
    return re.sub(r"(?<![\w/.-])--([a-z][a-z-]*)", lambda option: option[1].replace("-", "_"), text)


def check_options(options: ScenarioOptions, used: UsedOptions, preparing: bool = False) -> None:
    """Reject options that have no effect, and durations below a microsecond.

    With ``preparing``, the workload is only prepared with these options, and not run.
    """
    for name in (name for name in OPTIONS if name in used):
        extra = OPTIONS[name].extra
        for need in (*extra["needs"], *(extra["prepares"] if preparing else ())):
            if not need.holds(options):
                raise InputError("has no effect", used[name], need.expected)
    with error_at("--failure-model"):
        law_named(options.model)
    for name in ("mtbf", "downtime"):
        seconds = getattr(options, name)
        if seconds is not None and seconds < SHORTEST_S:
            raise InputError(f"is {seconds:g} s", used[name], "a microsecond or longer")
    with error_at("--failure-model"):
        options.single_law()
    options.failure_law()


def options_of_call(failures: ScenarioOptions | None, options: Mapping[str, object]) -> UsedOptions:
    """Return the options that a Python caller set: ``options`` and all non-default failures."""
    changed = [
        field.name
        for field in (msgspec.structs.fields(failures) if failures else ())
        if getattr(failures, field.name) != field.default
    ]
    return {name: f"--{name.replace('_', '-')}" for name in (*changed, *options)}


Function = TypeVar("Function", bound=Callable[..., Any])


def lists(parameters: Iterable[Parameter], others: bool = False) -> Callable[[Function], Function]:
    """Replace ``**options`` in the displayed signature of a function with parameters.

    Parameters
    ----------
    parameters : iterable of Parameter
        Keyword-only parameters. Parameters that the function itself declares are ignored.
    others : bool
        Whether the function accepts further options, so that ``**options`` remains.
    """

    def decorated(function: Function) -> Function:
        shown = signature(function)
        own = [p for p in shown.parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
        rest = [p for p in shown.parameters.values() if p.kind is Parameter.VAR_KEYWORD]
        more = [p for p in parameters if p.name not in shown.parameters]
        listed = shown.replace(parameters=[*own, *more, *(rest if others else ())])
        function.__signature__ = listed  # type: ignore[attr-defined]
        return function

    return decorated


def options_in(struct: type[msgspec.Struct], *names: str) -> list[Parameter]:
    """Return options of a struct as parameters, with their types and defaults."""
    options = declared(struct)
    return [keyword(name, options[name].default, _type(options[name])) for name in names]


def _type(option: Declared) -> Any:
    kind = Literal[option.choices] if option.choices else option.kind
    kind = Duration if option.is_duration else kind
    return kind | None if option.default is None else kind


def keyword(name: str, default: Any, annotation: Any = Any) -> Parameter:
    """Return a keyword-only parameter. If the default is `msgspec.NODEFAULT`, it becomes None."""
    default = None if default is msgspec.NODEFAULT else default
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
