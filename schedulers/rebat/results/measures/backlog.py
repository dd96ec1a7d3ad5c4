# SPDX-License-Identifier: Apache-2.0
"""The *work at hand* in a window: the work that remains at its start, plus submitted work.

In a window of a longer run, useful time depends not only on the scheduler but also on the work at
hand: work that was delayed before the window increases the useful time in the window. The module
also measures the time during which no attempt waits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec
import numpy as np

from rebat.core.units import US_PER_S
from rebat.models.checkpoint import Accounting
from rebat.results.measures.platform import Uses, Window, uses_of
from rebat.results.measures.sharing import node_us
from rebat.results.measures.steps import from_to, lengths_within, steps_of
from rebat.session.ledger import Ledger


class Backlog(msgspec.Struct, frozen=True):
    """Remaining work of submitted jobs, in node-seconds.

    The work done in the window is begin + submitted - end. Work includes useful time and the time
    of jobs killed at their walltime.

    Attributes
    ----------
    begin
        Remaining work at the start of the window.
    submitted
        Work of the jobs submitted within the window.
    end
        Remaining work at the end of the window.
    nothing_waits
        Share of time during which no attempt waits.
    """

    begin: float
    submitted: float
    end: float
    nothing_waits: float


class AtHand(NamedTuple):
    """The work at hand in a window.

    Attributes
    ----------
    share
        Remaining work at the start plus submitted work, as a share of the window's node time.
    nothing_waits
        Share of time during which no attempt waits.
    total
        Node time of the window. It differs between runs if the window ends with the run.
    """

    share: float
    nothing_waits: float
    total: float = 1.0


MOST_APART = 0.01
"""Two runs are comparable if their work at hand differs by at most this share of the window's node
time. Useful time is the work at hand minus the work that remains at the end of the window. So
useful time can differ by the same amount.
"""

NOT_COMPARABLE = "n.c."
"""The mark of utilisations and shares of node time that are not comparable."""

WHY_NOT = (
    f"{NOT_COMPARABLE}: not comparable, because the work at hand in the window differs by more "
    f"than {MOST_APART:.0%} of the window's node time, and at times no job waited"
)


def comparable(ours: AtHand, others: AtHand) -> bool:
    """Return whether shares of node time of two runs can be compared.

    They cannot be compared if two conditions hold: the work at hand differs by more than
    `MOST_APART`, and in one of the runs there are times at which no attempt waits. In this case,
    the run with more work at hand has additional useful time, because it delayed work before the
    window.

    >>> comparable(AtHand(0.72, 0.4), AtHand(0.81, 0.0))
    False
    >>> comparable(AtHand(0.97, 0.0), AtHand(1.03, 0.0))
    True
    """
    ran_dry = max(ours.nothing_waits, others.nothing_waits) > 0
    apart = abs(ours.share * ours.total - others.share * others.total)
    return not (ran_dry and apart > MOST_APART * min(ours.total, others.total))


def of_window(metric: str) -> bool:
    """Return whether a metric is a share of the window's node time, or a sum of node time."""
    return metric == "useful_utilisation" or metric.startswith("platform_")


def at_hand(mean: Callable[[str], float | None]) -> AtHand | None:
    """Return the work at hand from the mean metrics of a run, or None if metrics are missing."""
    names = ("backlog_begin", "backlog_submitted", "backlog_nothing_waits", "platform_total")
    begin, submitted, nothing_waits, total = map(mean, names)
    if begin is None or submitted is None or nothing_waits is None or not total:
        return None
    return AtHand((begin + submitted) / total, nothing_waits, total)


def are_comparable(
    ours: Callable[[str], float | None], others: Callable[[str], float | None]
) -> bool | None:
    """Return `comparable` for the mean metrics of two runs, or None if metrics are missing."""
    mine, theirs = at_hand(ours), at_hand(others)
    return None if mine is None or theirs is None else comparable(mine, theirs)


def backlog(
    ledger: Ledger, window: Window, accounting: Accounting = "exact", uses: Uses | None = None
) -> Backlog:
    """Return the backlog in a window. ``uses`` may be the result of an earlier `uses_of`."""
    first, last = window
    uses = uses or uses_of(ledger, window, accounting)
    submit_us = ledger.attempts.column("submit_us")
    old = submit_us < first
    new = ~old & (submit_us < last)
    no = np.zeros_like(old)
    jobs = (no, new, no), (old, new, no), (old, new, old | new)
    useful = ([*np.where(masks, us[0], 0)] for masks, us in zip(jobs, uses.us, strict=True))
    sums_us = node_us(*zip(useful, uses.width, strict=True))
    begin, submitted, end = (us / US_PER_S for us in sums_us)
    return Backlog(begin, submitted, end, _nothing_waits(ledger, window))


def _nothing_waits(ledger: Ledger, window: Window) -> float:
    first, last = window
    queued_us = ledger.attempts.column("queued_us")
    start_us = ledger.attempts.column("start_us")
    waited = np.flatnonzero(np.maximum(start_us, 0) > queued_us)
    times_us, by = from_to(queued_us[waited], start_us[waited])
    at, queued = steps_of(np.append(times_us, 0), np.append(by, 0))
    nothing_us = lengths_within(at, window)[queued == 0]
    return float(nothing_us.sum()) / (last - first) if last > first else 0.0
