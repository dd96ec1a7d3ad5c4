# SPDX-License-Identifier: Apache-2.0
"""Several policies on one scenario: run each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from rebat.campaign.single import Runnable, RunResult
from rebat.core.errors import InputError, PolicyError, RebatError
from rebat.policies.own import OwnCode


class Compared(msgspec.Struct):
    """The runs that ended, and for each policy that failed a line that names it.

    ``sources`` are the files behind the runs that ended, where there are any.
    """

    results: list[RunResult] = []
    failures: list[str] = []
    sources: list[tuple[OwnCode, ...]] = []


class Recorded(Runnable, Protocol):
    """Something runnable that can say which files it comes from."""

    @property
    def sources(self) -> tuple[OwnCode, ...]: ...


def run_each(policies: Iterable[Recorded], run: Callable[[Runnable], RunResult]) -> Compared:
    """Run every policy; one that fails costs the others nothing.

    Raises
    ------
    InputError
        When the input is at fault: no policy can run it.
    PolicyError
        When all failed, with why the first did.
    """
    done = Compared()
    for policy in policies:
        try:
            done.results.append(run(policy))
            done.sources.append(policy.sources)
        except RebatError as error:
            if isinstance(error, InputError) and not done.results:
                raise
            done.failures.append(f"policy {policy.name}: {error}")
    if not done.results:
        raise PolicyError("; ".join(done.failures))
    return done


def folder_of(policy: str) -> str:
    """What a policy's folder is called."""
    return policy.replace(":", "+").replace("/", "+")
