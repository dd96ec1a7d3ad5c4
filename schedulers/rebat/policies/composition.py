"""What a scheduler is put together from: a planning, and reactions in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from rebat.core.proposals import Proposal
from rebat.policies.base import Changes, News, Policy, View


class Planning(Protocol):
    """Decides on what waits."""

    def plan(self, view: View, changes: Changes) -> Iterable[Proposal]: ...


class Reaction(Protocol):
    """Decides on what runs; see what those before it have claimed."""

    def react(self, view: View, news: News) -> Iterable[Proposal]: ...


class Orders(Reaction, Protocol):
    """A reaction to what an administrator asks for: it has nothing to do while none does."""

    @property
    def busy(self) -> bool: ...


class Scheduler(Policy):
    """A policy put together from a planning and reactions, which carries ``orders`` out first."""

    def __init__(
        self, planning: Planning, reactions: Sequence[Reaction] = (), orders: Orders | None = None
    ) -> None:
        self._planning, self._reactions, self._orders = planning, tuple(reactions), orders

    def react(self, view: View, news: News) -> Iterable[Proposal]:
        """What each reaction wants, one after the other."""
        if self._orders and (news.notices or self._orders.busy):
            return self._chain(view, news, (self._orders, *self._reactions))
        return self._chain(view, news, self._reactions) if self._reactions else ()

    def _chain(self, view: View, news: News, reactions: Sequence[Reaction]) -> Iterator[Proposal]:
        for reaction in reactions:
            yield from reaction.react(view, news)

    def plan(self, view: View, changes: Changes) -> Iterable[Proposal]:
        """Which queued attempts to start, or to reject, now."""
        return self._planning.plan(view, changes)
