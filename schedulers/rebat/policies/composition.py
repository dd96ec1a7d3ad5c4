"""What a scheduler is put together from: a planning and a recovery."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from rebat.policies.base import Action, Changes, Failure, Reject, Start, View


class Planning(Protocol):
    """The planning half of a policy."""

    def plan(self, view: View, changes: Changes) -> Iterable[Start | Reject]: ...


class Recovery(Protocol):
    """The recovery half of a policy."""

    def recover(self, view: View, failure: Failure) -> Iterable[Action]: ...
    def review(self, view: View) -> Iterable[Action]: ...


class Scheduler:
    """A policy put together from a planning and a recovery."""

    def __init__(self, planning: Planning, recovery: Recovery) -> None:
        self._planning, self._recovery = planning, recovery

    def plan(self, view: View, changes: Changes) -> Iterable[Start | Reject]:
        """Which queued attempts to start, or to reject, now."""
        return self._planning.plan(view, changes)

    def recover(self, view: View, failure: Failure) -> Iterable[Action]:
        """What to interrupt when nodes fail."""
        return self._recovery.recover(view, failure)

    def review(self, view: View) -> Iterable[Action]:
        """What has come due or fallen through since."""
        return self._recovery.review(view)
