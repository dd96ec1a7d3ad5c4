# SPDX-License-Identifier: Apache-2.0
"""Slow, simple node time: after each message, the state of each node is read."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from rebat.drive.ask import Session
from rebat.results.measures.platform import PlatformTime, Window


class NodeTime:
    """Counts of nodes by use (down, running, held, idle) after each message."""

    def __init__(self) -> None:
        self._seen: list[tuple[int, Counter[str]]] = []

    def look(self, session: Session) -> None:
        """Count the nodes by use after a message."""
        board, claims = session, session.nodes
        found: Counter[str] = Counter()
        for node in range(claims.n_nodes):
            tag = claims.tag(node)
            if claims.down[node]:
                found["down"] += 1
            elif tag in board.by_tag:
                found["runs"] += 1
            elif tag - 1 in board.jobs.holds:
                found["held"] += 1
            else:
                found["idle"] += 1
        self._seen.append((session.now_us, found))

    def of(self, window: Window) -> tuple[Counter[str], int]:
        """Return node-microseconds of a window by use, and microseconds with an idle node."""
        first, last = window
        uses: Counter[str] = Counter()
        some_idle = 0
        ends = [*self._seen, (last, Counter())]
        for (since, counts), (until, _) in pairwise(ends):
            length = max(0, min(until, last) - max(since, first))
            uses.update({use: length * count for use, count in counts.items()})
            some_idle += length if counts["idle"] else 0
        return uses, some_idle

    def check(self, platform: PlatformTime, window: Window) -> None:
        """Assert that the measured node time equals the counted node time."""
        p, (uses, some_idle) = platform, self.of(window)
        runs = (
            p.useful + p.checkpoint + p.recovery + p.waste_failure + p.waste_stealing
            + p.waste_silent + p.waste_walltime + p.waste_moving
        )  # fmt: skip
        for what, seconds in (
            ("runs", runs), ("held", p.held), ("down", p.downtime), ("idle", p.idle),
        ):  # fmt: skip
            assert round(seconds * 1e6) == uses[what], what
        assert abs(p.idle_share * (window[1] - window[0]) - some_idle) < 1
        assert round(p.total * 1e6) == sum(uses.values())
