# SPDX-License-Identifier: Apache-2.0
"""Several policies on one scenario: run each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

import msgspec

from rebat.core.errors import InputError, PolicyError, RebatError
from rebat.policies.own import OwnCode
from rebat.runs.single import Runnable, RunResult


class PolicyRuns(msgspec.Struct):
    """The runs that ended, and why each of the other policies failed, by its name.

    ``sources`` are the files behind the runs that ended, where there are any.
    """

    results: list[RunResult] = []
    failures: dict[str, str] = {}
    sources: list[tuple[OwnCode, ...]] = []


class Sourced(Runnable, Protocol):
    """Something runnable that can say which files it comes from."""

    @property
    def sources(self) -> tuple[OwnCode, ...]: ...


def run_each(policies: Iterable[Sourced], run: Callable[[Runnable], RunResult]) -> PolicyRuns:
    """Run every policy; one that fails costs the others nothing.

    Raises
    ------
    InputError
        When the input is at fault: no policy can run it.
    PolicyError
        When all failed, with why the first did.
    """
    done, first = PolicyRuns(), ""
    for policy in policies:
        first = first or policy.name
        try:
            done.results.append(run(policy))
            done.sources.append(policy.sources)
        except RebatError as error:
            if isinstance(error, InputError) and not done.results:
                raise
            done.failures[policy.name] = str(error)
    if not done.results:
        raise PolicyError("; ".join(failure_lines(done.failures)))
    if first in done.failures:
        done.failures[first] += f"; ratios are to {done.results[0].policy}"
    return done


def failure_lines(failures: Mapping[str, str]) -> list[str]:
    """A line for each policy that failed."""
    return [f"policy {name}: {why}" for name, why in failures.items()]


def folder_of(policy: str) -> str:
    """What a policy's folder is called."""
    return policy.replace(":", "+").replace("/", "+")
