# SPDX-License-Identifier: Apache-2.0
"""Checks that reject options without effect, on the command line and in Python."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

import msgspec

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
