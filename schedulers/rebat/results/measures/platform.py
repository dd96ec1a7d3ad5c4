# SPDX-License-Identifier: Apache-2.0
"""Where the platform's time went: every node-second of a window, accounted for once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.attempts import Cause
from rebat.core.nodes import NodeSet
from rebat.core.units import FOREVER_US, US_PER_S
from rebat.models.checkpoint import Accounting, checkpoint_time_us
from rebat.results.measures.steps import Steps, steps_of
from rebat.session.ledger import AttemptRecord, Hold, Ledger

Window = tuple[int, int]
"""Half-open interval of dates, microseconds."""

DAY_US = 86_400 * US_PER_S
PAPER_WINDOW: Window = (10 * DAY_US, 30 * DAY_US)
"""Section 5.3.3: from the 11th day of the month up to the 30th."""


class PlatformTime(msgspec.Struct, frozen=True):
    """Node-seconds of a window by use (Figure 3); together they are nodes times length.

    ``held`` is the time of nodes that are up and kept for a job which does not run on them: one
    that waits for a stolen node, or moves. ``idle_share`` is the share of time with at least one
    node up and free (Tables 5a and 8); nodes that are held are not free.
    ``waste_silent`` the time of attempts that ended with an error and were run again, and of the
    checkpointed progress lost with them; ``waste_walltime`` the work, in all its attempts, of a job
    that was killed at its walltime in the end (that of a job which was given up after too many
    failures is in ``waste_failure``); ``waste_moving`` what stops for a move or for room
    have lost.
    """

    total: float
    useful: float
    checkpoint: float
    recovery: float
    waste_failure: float
    waste_stealing: float
    waste_silent: float
    waste_walltime: float
    waste_moving: float
    held: float
    downtime: float
    idle: float
    idle_share: float

    @property
    def useful_utilisation(self) -> float:
        """Useful time over the time that nodes were up (Tables 4 and 8)."""
        up = self.total - self.downtime
        return self.useful / up if up > 0 else 0.0


WalltimeKills = Literal["wasted", "useful"]
"""What the work is of a job that is killed at its walltime in the end."""


def platform_time(
    ledger: Ledger, n_nodes: int, window: Window, walltime_kills: WalltimeKills = "wasted",
    accounting: Accounting = "exact",
) -> PlatformTime:  # fmt: skip
    """Account for every node-second of a window."""
    first, last = window
    uses = (
        "useful",
        "checkpoint",
        "recovery",
        "failure",
        "stealing",
        "silent",
        "walltime",
        "moving",
    )
    parts = dict.fromkeys(uses, 0)
    in_vain = dict.fromkeys(ledger.given_up, "failure")
    if walltime_kills == "wasted":
        ended = (r for r in ledger.attempts if r.cause == Cause.WALLTIME)
        in_vain |= {record.attempt.job_id: "walltime" for record in ended}
    for record in ledger.attempts:
        if record.start_us < 0 or record.end_us <= first or record.start_us >= last:
            continue
        worked = in_vain.get(record.attempt.job_id, "useful")
        for name, us in _parts(record, first, last, accounting).items():
            parts[worked if name == "useful" else name] += us * record.attempt.n_nodes
    downtime = sum(
        min(up, last) - max(down, first)
        for _, down, up in down_intervals(ledger.node_events, last)
        if min(up, last) > max(down, first)
    )
    held = sum(
        hold.nodes.size * max(0, min(until, last) - max(hold.since_us, first))
        for hold, until in _holds(ledger)
    )
    idle, idle_share = _idle(ledger, n_nodes, window)
    return PlatformTime(
        total=n_nodes * (last - first) / US_PER_S,
        useful=parts["useful"] / US_PER_S,
        checkpoint=parts["checkpoint"] / US_PER_S,
        recovery=parts["recovery"] / US_PER_S,
        waste_failure=parts["failure"] / US_PER_S,
        waste_stealing=parts["stealing"] / US_PER_S,
        waste_silent=parts["silent"] / US_PER_S,
        waste_walltime=parts["walltime"] / US_PER_S,
        waste_moving=parts["moving"] / US_PER_S,
        held=held / US_PER_S,
        downtime=downtime / US_PER_S,
        idle=idle / US_PER_S,
        idle_share=idle_share,
    )


def _parts(record: AttemptRecord, first: int, last: int, accounting: Accounting) -> dict[str, int]:
    """Time of one attempt within the window by use, in microseconds (per node).

    An attempt is recovery, then kept progress (work and checkpoints in turn), then progress that
    was lost later, then what was lost at once; after a proactive checkpoint (timing T2) the tail is
    that checkpoint.
    """
    c = record.checkpointing
    run = record.end_us - record.start_us
    if c is None and record.useful_us == run and not record.lost_us:  # most are as simple
        return {"useful": min(record.end_us, last) - max(record.start_us, first)}
    recovery_end = min(c.first_recovery_us, run) if c else 0
    done_end = min(recovery_end + record.useful_us, run)
    kept_end = done_end - min(record.lost_us, done_end - recovery_end)
    lo, hi = max(first - record.start_us, 0), min(last - record.start_us, run)
    recovery = _overlap(0, recovery_end, lo, hi)
    kept = _overlap(recovery_end, kept_end, lo, hi)
    lost_later = _overlap(kept_end, done_end, lo, hi)
    lost = _overlap(done_end, run, lo, hi)
    into = min(max(lo, recovery_end), kept_end) - recovery_end
    progress = (done_end - recovery_end, record.cause in _OVER, accounting)
    checkpoint = checkpoint_time_us(c, into + kept, *progress)
    checkpoint -= checkpoint_time_us(c, into, *progress)
    parts = {"recovery": recovery, "checkpoint": checkpoint, "useful": kept - checkpoint}
    if record.lost_to:
        parts[_LOST[record.lost_to]] = lost_later
    parts[_LOST[record.cause]] = parts.get(_LOST[record.cause], 0) + lost
    return parts


def work_done_us(
    record: AttemptRecord, window: Window, accounting: Accounting
) -> tuple[int, int, int]:
    """Useful node-microseconds of an attempt before, within and after a window."""
    if record.start_us < 0:
        return 0, 0, 0
    (first, last), size = window, record.attempt.n_nodes
    stretches = ((0, first), (first, last), (last, FOREVER_US))
    before, within, after = (
        _parts(record, low, high, accounting)["useful"] * size
        if record.end_us > low and record.start_us < high
        else 0
        for low, high in stretches
    )
    return before, within, after


_OVER = frozenset({Cause.COMPLETED, Cause.JOB_FAILED})
"""Causes with which a job did all that it had to do, closing checkpoint included."""

_LOST = {
    Cause.NODE_FAILURE: "failure",
    Cause.STOLEN: "stealing",
    Cause.SILENT_ERROR: "silent",
    Cause.MOVED: "moving",
    Cause.PREEMPTED: "moving",
    Cause.HORIZON: "useful",
    Cause.COMPLETED: "useful",
    Cause.WALLTIME: "useful",
    Cause.JOB_FAILED: "useful",
}
"""Where the tail of an attempt goes; one that ended by itself has none."""


def _overlap(a: int, b: int, lo: int, hi: int) -> int:
    return max(0, min(b, hi) - max(a, lo))


def down_intervals(
    events: Sequence[tuple[int, bool, NodeSet]], horizon_us: int
) -> list[tuple[int, int, int]]:
    """(node, down from, up again) of every outage; one without an end lasts to the horizon."""
    since: dict[int, int] = {}
    intervals = []
    for at, up, nodes in events:
        for node in nodes:
            if up and node in since:
                intervals.append((node, since.pop(node), at))
            elif not up:
                since.setdefault(node, at)
    intervals += [(node, start, max(start, horizon_us)) for node, start in since.items()]
    return intervals


def _holds(ledger: Ledger) -> Iterator[tuple[Hold, int]]:
    """Nodes held, and until when."""
    for hold in ledger.holds:
        yield hold, FOREVER_US if hold.until_us is None else hold.until_us


def free_steps(ledger: Ledger, n_nodes: int) -> Steps:
    """Times, ascending and distinct, and the number of nodes up and free from each on.

    A node that is held for a job is not free.
    """
    ran = [record for record in ledger.attempts if record.start_us >= 0]
    size, events = column(ran, "attempt.n_nodes"), ledger.node_events
    told = [(at, nodes.size if up else -nodes.size) for at, up, nodes in events]
    for hold, until in _holds(ledger):
        told += [(hold.since_us, -hold.nodes.size), (until, hold.nodes.size)]
    at, by = np.array([(0, n_nodes), *told], dtype=np.int64).T
    dates = np.concatenate([column(ran, "start_us"), column(ran, "end_us"), at])
    return steps_of(dates, np.concatenate([-size, size, by]))


def column(records: Sequence[AttemptRecord | Hold], name: str) -> npt.NDArray[np.int64]:
    """A number of each record, by the dotted name of its field."""
    return np.fromiter(map(attrgetter(name), records), dtype=np.int64, count=len(records))


def _idle(ledger: Ledger, n_nodes: int, window: Window) -> tuple[int, float]:
    """Idle node-microseconds of the window; share of time with an idle node."""
    first, last = window
    at, free = free_steps(ledger, n_nodes)
    lengths = np.diff(np.append(np.clip(at, first, last), last))
    idle = int((free * lengths).sum())
    share = float(lengths[free > 0].sum()) / (last - first) if last > first else 0.0
    return idle, share
