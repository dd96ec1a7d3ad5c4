# SPDX-License-Identifier: Apache-2.0
"""Runs of several policies on one scenario."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

import msgspec

from rebat.core.errors import InputError, PolicyError, RebatError
from rebat.policies.own import OwnCode
from rebat.runs.single import Runnable, RunResult


class PolicyRuns(msgspec.Struct):
    """The results of several policies."""

    results: list[RunResult] = []
    """Completed runs."""
    failures: dict[str, str] = {}
    """Error message of each failed policy."""
    sources: list[tuple[OwnCode, ...]] = []
    """Files with user-defined code of each completed run."""


class Sourced(Runnable, Protocol):
    """A policy that can run, with its source files."""

    @property
    def sources(self) -> tuple[OwnCode, ...]: ...


def run_each(policies: Iterable[Sourced], run: Callable[[Runnable], RunResult]) -> PolicyRuns:
    """Run all policies. If a policy fails, the other policies still run."""
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
    """Return a line for each failed policy."""
    return [f"policy {name}: {reason}" for name, reason in failures.items()]


def folder_of(policy: str) -> str:
    """Return the name of a policy's folder."""
    return policy.replace(":", "+").replace("/", "+")
