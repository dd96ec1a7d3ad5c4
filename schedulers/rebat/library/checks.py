# SPDX-License-Identifier: Apache-2.0
"""What was asked for and has no effect is refused, on the command line as in Python."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from rebat.core.errors import InputError, RebatError
from rebat.models.failures.law import Law
from rebat.models.failures.laws import law_named
from rebat.runs.options import FailureOptions, ScenarioOptions

T = TypeVar("T", bound=msgspec.Struct)

OF_SHORT_LAWS = ("downtime", "model")
OF_DRAWN_FAILURES = (*OF_SHORT_LAWS, "horizon")
OF_CASCADES = ("cascade_window", "cascade_within")
OF_CORRELATIONS = ("failure_group", "cascade", *OF_CASCADES)
OF_CHECKPOINTS = ("checkpoint_cost", "recovery_cost", "checkpoint_rounding")
SHORTEST_S = 1e-6
"""Times are counted in microseconds."""

Given = Mapping[str, str]
"""The options that were given: name -> how it is spelt on the command line."""


@contextmanager
def given_by(option: str) -> Iterator[None]:
    """Errors within are told with the option that they come from."""
    try:
        yield
    except InputError as error:
        raise error.at(option) from None


@contextmanager
def in_python() -> Iterator[None]:
    """Errors within name options as Python spells them: ``checkpoint_cost``."""
    try:
        yield
    except RebatError as error:
        raise type(error)(python_spelling(str(error))) from None


def python_spelling(text: str) -> str:
    """A text in which options stand as arguments.

    >>> python_spelling("--checkpoint-cost: has no effect")
    'checkpoint_cost: has no effect'
    """
    return re.sub(r"(?<![\w/.-])--([a-z][a-z-]*)", lambda found: found[1].replace("-", "_"), text)


def check_options(options: ScenarioOptions, given: Given) -> None:
    """Refuse what was asked for and would change nothing, or is too short to be counted.

    Raises
    ------
    InputError
        With the option as it is spelt on the command line.
    """
    if options.law is not None:
        _check_beside_law(options, options.law, given)
    elif options.mtbf is None:
        _refuse(OF_DRAWN_FAILURES, given, "--mtbf beside it")
    elif options.failures is not None:
        expected = "no --failures beside it: its file says when nodes are down"
        _refuse(OF_DRAWN_FAILURES, given, expected)
        if options.checkpoint != "young-daly":
            _refuse(["mtbf"], given, "no --failures beside it, or --checkpoint young-daly")
    if options.checkpoint != "young-daly":
        _refuse(OF_CHECKPOINTS, given, "--checkpoint young-daly beside it")
    with given_by("--failure-model"):
        law_named(options.model)
    for name in ("mtbf", "downtime"):
        seconds = getattr(options, name)
        if seconds is not None and seconds < SHORTEST_S:
            raise InputError(f"is {seconds:g} s", given[name], "a microsecond or longer")
    if not options.cascade:
        _refuse(OF_CASCADES, given, "--cascade beside it")
    with given_by("--failure-model"):
        law = options.single_law()
    if law is None:
        expected = "--law, --failures or --mtbf beside it"
        _refuse(["begin", *OF_CORRELATIONS], given, expected)
    options.failure_law()


def _check_beside_law(options: ScenarioOptions, law: Law, given: Given) -> None:
    """What a law says itself is not said beside it."""
    _refuse(("failures", *OF_SHORT_LAWS), given, "no --law beside it")
    if not law.drawn:
        _refuse(["horizon"], given, "a law that failures are drawn from")
    if hasattr(law, "mtbf_s") or options.checkpoint != "young-daly":
        _refuse(
            ["mtbf"], given, "no --law beside it, or one without it and --checkpoint young-daly"
        )


def _refuse(names: Iterable[str], given: Given, expected: str) -> None:
    for name in names:
        if name in given:
            raise InputError("has no effect", given[name], expected)


def given_of(failures: FailureOptions | None, options: Mapping[str, object]) -> Given:
    """What a caller of Python gave: of the failures what is not their default, and the options."""
    changed = [
        field.name
        for field in (msgspec.structs.fields(failures) if failures else ())
        if getattr(failures, field.name) != field.default
    ]
    return {name: f"--{name.replace('_', '-')}" for name in (*changed, *options)}
