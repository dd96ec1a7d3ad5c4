# SPDX-License-Identifier: Apache-2.0
"""What a scheduler is put together from: a planning, and reactions in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from rebat.contract import Changes, News, Policy, Proposal, View


class Planning(Protocol):
    """Decides on what waits."""

    def plan(self, view: View, changes: Changes) -> Iterable[Proposal]: ...


class Reaction(Protocol):
    """Decides on what runs; see what those before it have claimed."""

    def react(self, view: View, news: News) -> Iterable[Proposal]: ...


class Duty(Reaction, Protocol):
    """A reaction that mostly has nothing to do."""

    def has_work(self, news: News) -> bool: ...


class Scheduler(Policy):
    """A policy put together from a planning and reactions; duties come before those."""

    def __init__(
        self,
        planning: Planning,
        reactions: Sequence[Reaction] = (),
        duties: Sequence[Duty] = (),
    ) -> None:
        self._planning, self._reactions = planning, tuple(reactions)
        self._duties = tuple(duties)

    def react(self, view: View, news: News) -> Iterable[Proposal]:
        """What each reaction wants, one after the other."""
        due = [duty for duty in self._duties if duty.has_work(news)]
        reactions = (*due, *self._reactions) if due else self._reactions
        return self._chain(view, news, reactions) if reactions else ()

    def _chain(self, view: View, news: News, reactions: Sequence[Reaction]) -> Iterator[Proposal]:
        for reaction in reactions:
            yield from reaction.react(view, news)

    def plan(self, view: View, changes: Changes) -> Iterable[Proposal]:
        """Which queued attempts to start, or to reject, now."""
        return self._planning.plan(view, changes)
