"""What a scheduler is put together from, and what a scheduler by name is.

A preset says what it is and how to build it; the session options go with it because the
node-stealing paper and its authors' program differ in both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from rebat.core.options import SessionOptions
from rebat.policies.base import Changes, Failure, Interrupt, Policy, Reject, Start, View


class Planning(Protocol):
    """The planning half of a policy."""

    def plan(self, view: View, changes: Changes) -> Iterable[Start | Reject]: ...


class Recovery(Protocol):
    """The recovery half of a policy."""

    def recover(self, view: View, failure: Failure) -> Iterable[Interrupt]: ...


class Scheduler:
    """A policy put together from a planning and a recovery."""

    def __init__(self, planning: Planning, recovery: Recovery) -> None:
        self._planning, self._recovery = planning, recovery

    def plan(self, view: View, changes: Changes) -> Iterable[Start | Reject]:
        """Which queued attempts to start, or to reject, now."""
        return self._planning.plan(view, changes)

    def recover(self, view: View, failure: Failure) -> Iterable[Interrupt]:
        """What to interrupt when nodes fail."""
        return self._recovery.recover(view, failure)


class Preset(msgspec.Struct, frozen=True):
    """A named scheduler: ``make`` gives a fresh policy, to be run in a session so set up."""

    name: str
    summary: str
    source: str
    make: Callable[[], Policy]
    session: SessionOptions = SessionOptions()
