# SPDX-License-Identifier: Apache-2.0
"""Lemon nodes: exclude a node whose failures hit jobs several times.

Source: lemon node detection of Kokolis et al., "Revisiting Reliability in Large-Scale Machine
Learning Research Clusters", HPCA 2025. Their detection also uses other signals. This rule only
counts the failures that hit jobs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Annotated

from rebat.contract import Drain, News, Undrain, View, Wake
from rebat.core.nodes import NodeSet
from rebat.core.units import to_us
from rebat.policies.context import Context, ReactionOptions
from rebat.policies.variants import number

LEMON = "lemon"
"""Reason of the drains of lemon nodes."""


class Exclusion:
    """A reaction that drains lemon nodes for a time.

    A lemon node is a node whose failures have hit jobs several times.
    """

    def __init__(self, options: ExclusionOptions, context: Context) -> None:
        self._hits, self._within_us = options.hits, to_us(options.within)
        self._most, self._for_us = options.most_excluded, to_us(options.excluded_for)
        self._times_us: dict[int, list[int]] = defaultdict(list)
        self._until_us: dict[int, int] = {}

    @property
    def returning(self) -> Returning:
        """The duty that returns excluded nodes to service, before any reaction needs them."""
        return Returning(self._until_us)

    def react(self, view: View, news: News) -> Iterator[Drain | Wake]:
        """Exclude nodes with too many failures."""
        lemons = list(self._lemons(view, news)) if news.failed else []
        if lemons:
            until_us = view.now_us + self._for_us
            self._until_us |= dict.fromkeys(lemons, until_us)
            yield Drain(NodeSet.of(lemons), LEMON)
            yield Wake(until_us, LEMON)

    def _lemons(self, view: View, news: News) -> Iterator[int]:
        """Yield the nodes to exclude, and count the failures that hit jobs."""
        tags, room = view.machine.tags, int(self._most * view.n_nodes) - len(self._until_us)
        for node in dict.fromkeys(news.failed):
            if tags[node] < 0 or node in self._until_us:
                continue
            recent_us = [t for t in self._times_us[node] if t >= view.now_us - self._within_us]
            self._times_us[node] = [*recent_us, view.now_us]
            if len(recent_us) + 1 >= self._hits and room > 0:
                room -= 1
                del self._times_us[node]
                yield node


class Returning:
    """A duty that returns excluded nodes to service. ``until_us`` is the end of each exclusion."""

    def __init__(self, until_us: dict[int, int]) -> None:
        self._until_us = until_us

    def has_work(self, news: News) -> bool:
        return LEMON in news.woken

    def react(self, view: View, news: News) -> Iterator[Undrain]:
        over = [node for node, until_us in self._until_us.items() if until_us <= view.now_us]
        for node in over:
            del self._until_us[node]
        if over:
            yield Undrain(NodeSet.of(over), LEMON)


class ExclusionOptions(ReactionOptions, frozen=True, tag="exclude"):
    """Exclude lemon nodes: drain a node after several failures that hit jobs."""

    kind = Exclusion

    hits: Annotated[
        int, number(1, 10_000, "a number of failures", "Failures after which a node is excluded.")
    ] = 3
    within: Annotated[
        float, number(1e-6, 1e9, "seconds", "Period in which failures are counted, in seconds.")
    ] = 2_419_200.0  # 28 days
    most_excluded: Annotated[
        float, number(0, 1, "a share", "Maximum share of the nodes that are excluded.")
    ] = 0.05
    excluded_for: Annotated[
        float, number(1e-6, 1e9, "seconds", "Time until an excluded node returns, in seconds.")
    ] = 604_800.0  # 7 days
