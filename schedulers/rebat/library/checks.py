# SPDX-License-Identifier: Apache-2.0
"""Checks that reject options without effect, on the command line and in Python."""

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
WITH_MTBF = ("young-daly", "tiers:auto")
"""Kinds of checkpoints whose periods depend on the MTBF."""

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


def check_options(options: ScenarioOptions, used: UsedOptions) -> None:
    """Reject options that have no effect, and durations below a microsecond."""
    if options.law is not None:
        _check_with_law(options, options.law, used)
    elif options.mtbf is None:
        _reject(OF_DRAWN_FAILURES, used, "--mtbf as well")
    elif options.failures is not None:
        expected = "no --failures, because its file sets the downtimes"
        _reject(OF_DRAWN_FAILURES, used, expected)
        if options.checkpoint not in WITH_MTBF:
            _reject(["mtbf"], used, "no --failures, or --checkpoint young-daly as well")
    if options.checkpoint != "young-daly":
        _reject(OF_CHECKPOINTS, used, "--checkpoint young-daly as well")
    if options.checkpoint != "tiers:auto":
        _reject(["tiers"], used, "--checkpoint tiers:auto as well")
    with error_at("--failure-model"):
        law_named(options.model)
    for name in ("mtbf", "downtime"):
        seconds = getattr(options, name)
        if seconds is not None and seconds < SHORTEST_S:
            raise InputError(f"is {seconds:g} s", used[name], "a microsecond or longer")
    if not options.cascade:
        _reject(OF_CASCADES, used, "--cascade as well")
    with error_at("--failure-model"):
        law = options.single_law()
    if law is None:
        expected = "--law, --failures or --mtbf as well"
        _reject(["begin", *OF_CORRELATIONS], used, expected)
    options.failure_law()


def check_preparation(options: ScenarioOptions, used: UsedOptions) -> None:
    """Reject options that have no effect if a workload is prepared, but not run."""
    check_options(options, used)
    if options.checkpoint not in WITH_MTBF:
        _reject(["mtbf"], used, "--checkpoint young-daly as well")
    if options.silent_errors is None and options.silent_error_probability is None:
        _reject(["seed"], used, "--silent-errors or --silent-error-probability as well")


def _check_with_law(options: ScenarioOptions, law: Law, used: UsedOptions) -> None:
    """Reject options that set a value which the failure law already contains."""
    _reject(("failures", *OF_SHORT_LAWS), used, "no --law")
    if not law.drawn:
        _reject(["horizon"], used, "a --law that draws failures")
    if hasattr(law, "mtbf_s") or options.checkpoint not in WITH_MTBF:
        _reject(["mtbf"], used, "no --law, or a law without MTBF and --checkpoint young-daly")


def _reject(names: Iterable[str], used: UsedOptions, expected: str) -> None:
    for name in names:
        if name in used:
            raise InputError("has no effect", used[name], expected)


def options_of_call(failures: FailureOptions | None, options: Mapping[str, object]) -> UsedOptions:
    """Return the options that a Python caller set: ``options`` and all non-default failures."""
    changed = [
        field.name
        for field in (msgspec.structs.fields(failures) if failures else ())
        if getattr(failures, field.name) != field.default
    ]
    return {name: f"--{name.replace('_', '-')}" for name in (*changed, *options)}
