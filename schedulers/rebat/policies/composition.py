# SPDX-License-Identifier: Apache-2.0
"""A scheduler composed of a planning and a sequence of reactions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from rebat.contract import Changes, News, PlannedStarts, Policy, Proposal, View


class Planning(Protocol):
    """The part of a scheduler that decides on queued jobs."""

    def plan(self, view: View, changes: Changes) -> Iterable[Proposal]: ...

    def planned(self, view: View) -> PlannedStarts | None:
        """Return the starts in the most recent plan.

        Return None if the planning makes no reservations.
        """
        return None

    def reasons(self, view: View) -> Mapping[str, str]:
        """Return, by attempt id, a sentence that explains why a queued attempt waits."""
        return {}


class Wrapping(Planning):
    """A planning that passes changes to another one. The other one reports its plan."""

    def __init__(self, planning: Planning) -> None:
        self._planning = planning

    def planned(self, view: View) -> PlannedStarts | None:
        """Return the planned starts of the other planning."""
        return self._planning.planned(view)

    def reasons(self, view: View) -> Mapping[str, str]:
        """Return the reasons of the other planning."""
        return self._planning.reasons(view)


class Reaction(Protocol):
    """A part of a scheduler that decides on running jobs.

    A reaction is called after all earlier reactions have made their proposals.
    """

    def react(self, view: View, news: News) -> Iterable[Proposal]: ...


class Duty(Reaction, Protocol):
    """A reaction that is called only if ``has_work`` returns True."""

    def has_work(self, news: News) -> bool: ...


class Scheduler(Policy):
    """A policy composed of a planning and reactions."""

    def __init__(
        self,
        planning: Planning,
        reactions: Sequence[Reaction] = (),
        duties: Sequence[Duty] = (),
    ) -> None:
        self._planning, self._reactions = planning, tuple(reactions)
        self._duties = tuple(duties)

    def react(self, view: View, news: News) -> Iterable[Proposal]:
        """Yield the proposals of each reaction in order."""
        due = [duty for duty in self._duties if duty.has_work(news)]
        reactions = (*due, *self._reactions) if due else self._reactions
        return self._chain(view, news, reactions) if reactions else ()

    def _chain(self, view: View, news: News, reactions: Sequence[Reaction]) -> Iterator[Proposal]:
        for reaction in reactions:
            yield from reaction.react(view, news)

    def plan(self, view: View, changes: Changes) -> Iterable[Proposal]:
        """Return the queued attempts to start or to reject now."""
        return self._planning.plan(view, changes)

    def planned(self, view: View) -> PlannedStarts | None:
        """Return the planned starts of the planning."""
        return self._planning.planned(view)

    def reasons(self, view: View) -> Mapping[str, str]:
        """Return the reasons of the planning."""
        return self._planning.reasons(view)
