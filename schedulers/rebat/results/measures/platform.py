# SPDX-License-Identifier: Apache-2.0
"""The use of node time. Every node-second of a window is counted exactly once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.attempts import OVER, Cause
from rebat.core.units import FOREVER_US, US_PER_S
from rebat.models.checkpoint import Accounting, Patterns, checkpoint_times_us
from rebat.results.measures.recoveries import hung_on_dead
from rebat.results.measures.sharing import Widths, holds_of_attempts, node_us, repeats, widths
from rebat.results.measures.steps import Steps, lengths_within, steps_of
from rebat.session.ledger import Hold, Ledger

Ints = npt.NDArray[np.int64]

USES = ("useful", "checkpoint", "recovery", "failure", "stealing", "silent", "walltime", "moving")
"""Uses of the time of attempts. All other uses concern nodes without an attempt."""

_CHUNK = 2**16
"""Number of attempts whose uses are computed in one step."""

Window = tuple[int, int]
"""Half-open interval of times in microseconds."""

DAY_US = 86_400 * US_PER_S
PAPER_WINDOW: Window = (10 * DAY_US, 30 * DAY_US)
"""The window of section 5.3.3, from the 11th to the 30th day of the month (microseconds)."""


class PlatformTime(msgspec.Struct, frozen=True):
    """Node-seconds of a window by use (Figure 3). Their sum is ``total``.

    Attributes
    ----------
    total
        Number of nodes, multiplied by the length of the window.
    useful, checkpoint, recovery
        Time of useful work, of checkpoints, and of recovery. Recovery includes the
        reading of checkpoints, and the stages before a job starts again.
    waste_failure
        Time lost to failures. It includes all work of jobs that failed because failures interrupted
        too many of their attempts.
    waste_stealing
        Time lost to steals.
    waste_silent
        Time of attempts that ended with a silent error. It includes checkpointed progress of
        earlier attempts that was lost because of the error.
    waste_walltime
        Work of all attempts of jobs that were killed at their walltime.
    waste_moving
        Time lost because attempts were stopped to move a job, or to make room for another job.
    held
        Time of nodes that are up and held for a job that does not run on them, because the job
        waits for a stolen node or moves.
    downtime, idle
        Time of nodes that are down, and of nodes that are up, free and not held.
    idle_share
        Share of the time in which at least one node is up and free (Tables 5a and 8). Held nodes
        are not free.
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
        """Useful time divided by the node time of nodes that were up (Tables 4 and 8)."""
        up = self.total - self.downtime
        return self.useful / up if up > 0 else 0.0


WalltimeKills = Literal["wasted", "useful"]
"""Whether the work of a job that is killed at its walltime counts as wasted or useful."""


def platform_time(
    ledger: Ledger,
    n_nodes: int,
    window: Window,
    walltime_kills: WalltimeKills = "wasted",
    accounting: Accounting = "exact",
    uses: Uses | None = None,
    idle: tuple[int, float] | None = None,
) -> PlatformTime:
    """Return the use of node time in a window.

    ``uses`` and ``idle`` may be the results of earlier calls of `uses_of` and `idle_time`.
    """
    first, last = window
    uses = uses or uses_of(ledger, window, accounting)
    parts = _node_us(uses, ledger, walltime_kills)
    _, down_us, up_us = ledger.node_events.outages(last)
    down_for_us = np.minimum(up_us, last) - np.minimum(np.maximum(down_us, first), last)
    downtime = int(np.maximum(down_for_us, 0).sum())
    held = sum(
        hold.nodes.size * max(0, min(until, last) - max(hold.since_us, first))
        for hold, until in _holds(ledger)
    )
    dead = sum(_overlap(down, up, first, last) for down, up in hung_on_dead(ledger))
    idle_us, idle_share = idle or idle_time(free_steps(ledger, n_nodes), window)
    return PlatformTime(
        total=n_nodes * (last - first) / US_PER_S,
        useful=parts["useful"] / US_PER_S,
        checkpoint=parts["checkpoint"] / US_PER_S,
        recovery=(parts["recovery"] - dead) / US_PER_S,
        waste_failure=parts["failure"] / US_PER_S,
        waste_stealing=parts["stealing"] / US_PER_S,
        waste_silent=parts["silent"] / US_PER_S,
        waste_walltime=parts["walltime"] / US_PER_S,
        waste_moving=parts["moving"] / US_PER_S,
        held=held / US_PER_S,
        downtime=downtime / US_PER_S,
        idle=idle_us / US_PER_S,
        idle_share=idle_share,
    )


class Uses(NamedTuple):
    """How long attempts spent on each use before, within and after a window.

    Attributes
    ----------
    us : int64 array, shape (3, len(USES) + 1, n)
        Microseconds on each node of an attempt. The last row is time lost for an unknown reason.
    width : three arrays of shape (n,)
        The number of nodes of each attempt.
    """

    us: Ints
    width: Sequence[Widths]


def uses_of(ledger: Ledger, window: Window, accounting: Accounting) -> Uses:
    """Return how long each attempt spent on each use (see `_parts`)."""
    attempts = ledger.attempts
    times = AttemptTimes(*map(attempts.column, AttemptTimes._fields))
    which, patterns = attempts.column("checkpointing"), attempts.values("checkpointing")
    over = attempts.having("cause", *OVER)
    stretches = (0, window[0]), window, (window[1], FOREVER_US)
    ran, begin_us, end_us = times.start_us >= 0, times.start_us, times.end_us
    rows = [np.flatnonzero(ran & (end_us > a) & (begin_us < b)) for a, b in stretches]
    all_places, all_stretches = np.concatenate(rows), np.repeat([0, 1, 2], [*map(len, rows)])
    us = np.zeros((3, len(USES) + 1, len(ran)), dtype=np.int64)
    flat, starts = us.reshape(-1), np.arange(3) * us[0].size
    for first in range(0, len(all_places), _CHUNK):  # to save memory
        places, stretch = (each[first : first + _CHUNK] for each in (all_places, all_stretches))
        chunk = AttemptTimes(*(column[places] for column in times))
        pattern = Patterns.of(which[places], patterns)
        spans = np.array(stretches).T.take(stretch, axis=1)
        named, lost, lost_later = _parts(chunk, pattern, over[places], spans, accounting)
        for use, part_us in enumerate(named):
            flat[starts[stretch] + use * len(ran) + places] = part_us
        for part_us, reason in ((lost, "cause"), (lost_later, "lost_to")):
            if len(rows_lost := np.flatnonzero(part_us)):
                use_of_code = np.array([_LOST.get(cause, -1) for cause in attempts.values(reason)])
                use_of_row = use_of_code[attempts.column(reason)[places[rows_lost]]]
                us[stretch[rows_lost], use_of_row, places[rows_lost]] += part_us[rows_lost]
    return Uses(us, [widths(ledger, each) for each in stretches])


def _node_us(uses: Uses, ledger: Ledger, walltime_kills: WalltimeKills) -> dict[str, float]:
    """Return the node-microseconds of each use in the window.

    If the entire work of a job is wasted, its useful time counts as waste (see `_wasted`).
    """
    amounts = dict(zip(USES, uses.us[1], strict=False))
    for name, jobs in _wasted(ledger, walltime_kills):
        amounts[name] = amounts[name] + np.where(jobs, amounts["useful"], 0)
        amounts["useful"] = np.where(jobs, 0, amounts["useful"])
    return dict(zip(USES, node_us(([*amounts.values()], uses.width[1])), strict=True))


def _wasted(
    ledger: Ledger, walltime_kills: WalltimeKills
) -> Iterator[tuple[str, npt.NDArray[np.bool_]]]:
    """For each kind of waste, yield a mask of the attempts whose jobs have only wasted work."""
    attempts = ledger.attempts
    killed = attempts.having("cause", Cause.WALLTIME)
    if walltime_kills == "wasted" and killed.any():
        yield "walltime", of_jobs(ledger, killed)
    if ledger.given_up:
        jobs = set(ledger.given_up)
        given_up = [record.attempt.job_id in jobs for record in attempts]
        yield "failure", of_jobs(ledger, np.array(given_up, dtype=np.bool_))


def of_jobs(ledger: Ledger, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return a mask of all attempts of the jobs that have an attempt in ``mask``."""
    serials = ledger.attempts.column("job_serial")
    jobs = np.zeros(int(serials.max(initial=-1)) + 1, dtype=np.bool_)
    jobs[serials[mask]] = True
    return jobs[serials]


class AttemptTimes(NamedTuple):
    """Times of attempts in microseconds, as int64 arrays; see `AttemptRecord`."""

    start_us: Ints
    end_us: Ints
    useful_us: Ints
    lost_us: Ints
    hung_us: Ints


def _parts(
    times: AttemptTimes,
    c: Patterns,
    over: npt.NDArray[np.bool_],
    window: Ints,
    accounting: Accounting,
) -> tuple[tuple[Ints, Ints, Ints], Ints, Ints]:
    """Return the time of attempts by use, each within its window, in microseconds on each node.

    The first three arrays are the first three of `USES`. The others are the time that was lost at
    the end of an attempt, and the time that was lost later.

    An attempt consists of its recovery, the kept progress (alternating work and checkpoints), the
    progress that was lost later, the time lost at its end, and the time for which it hung after a
    failure. After a proactive checkpoint (timing T2) the last part is this checkpoint. ``over`` is
    a mask of the attempts that completed the work of their jobs.
    """
    run = times.end_us - times.start_us
    recovery_end = np.minimum(c.first_recovery_us, run)
    done_end = np.minimum(recovery_end + times.useful_us, run)
    kept_end = done_end - np.minimum(times.lost_us, done_end - recovery_end)
    hung_from = np.maximum(done_end, run - times.hung_us)
    lo = np.maximum(window[0] - times.start_us, 0)
    hi = np.minimum(window[1] - times.start_us, run)

    def within(begin: Ints | int, end: Ints) -> Ints:
        part: Ints = np.maximum(0, np.minimum(end, hi) - np.maximum(begin, lo))
        return part

    progress_us = within(recovery_end, kept_end)
    into = np.minimum(np.maximum(lo, recovery_end), kept_end) - recovery_end
    length = done_end - recovery_end
    checkpoint = checkpoint_times_us(c, into + progress_us, length, over, accounting)
    if len(begun := np.flatnonzero(into)):
        of_begun = into[begun], length[begun], over[begun]
        checkpoint[begun] -= checkpoint_times_us(c.take(begun), *of_begun, accounting)
    recovery = within(0, recovery_end) + within(hung_from, run)
    named = progress_us - checkpoint, checkpoint, recovery
    return named, within(done_end, hung_from), within(kept_end, done_end)


_LOST: dict[Cause | None, int] = {
    Cause.NODE_FAILURE: USES.index("failure"),
    Cause.STOLEN: USES.index("stealing"),
    Cause.SILENT_ERROR: USES.index("silent"),
    Cause.MOVED: USES.index("moving"),
    Cause.PREEMPTED: USES.index("moving"),
    Cause.HORIZON: USES.index("useful"),
    Cause.COMPLETED: USES.index("useful"),
    Cause.WALLTIME: USES.index("useful"),
    Cause.JOB_FAILED: USES.index("useful"),
    Cause.CANCELLED: USES.index("useful"),
}
"""Use that the last part of an attempt counts as, for each cause of its end.

Attempts that completed have no last part.
"""


def _overlap(a: int, b: int, lo: int, hi: int) -> int:
    return max(0, min(b, hi) - max(a, lo))


def _holds(ledger: Ledger) -> Iterator[tuple[Hold, int]]:
    """Yield each hold with its end."""
    for hold in ledger.holds:
        yield hold, FOREVER_US if hold.until_us is None else hold.until_us


def free_steps(ledger: Ledger, n_nodes: int) -> Steps:
    """Return the number of nodes that are up and free as a step function of time.

    A node that is held for a job is not free.
    """
    column = ledger.attempts.column
    ran = np.flatnonzero(column("start_us") >= 0)
    start_us, end_us, size = (column(name)[ran] for name in ("start_us", "end_us", "n_nodes"))
    at_us, comes_up, nodes = ledger.node_events.columns()
    changed = np.where(comes_up, nodes.sizes(), -nodes.sizes())
    changes: list[tuple[int, int]] = []
    for hold, until in _holds(ledger):
        changes += [(hold.since_us, -hold.nodes.size), (until, hold.nodes.size)]
    for down, up in hung_on_dead(ledger):  # a node in use that is down was subtracted two times
        changes += [(down, 1), (up, -1)]
    if ledger.shared:
        changes += zip(*(part.tolist() for part in repeats(holds_of_attempts(ledger))), strict=True)
    at, by = np.array([(0, n_nodes), *changes], dtype=np.int64).T
    times_us = np.concatenate([start_us, end_us, at_us, at])
    return steps_of(times_us, np.concatenate([-size, size, changed, by]))


def idle_time(steps: Steps, window: Window) -> tuple[int, float]:
    """Return the idle node time (us) in the window, and the share of time with an idle node."""
    first, last = window
    at, free = steps
    lengths = lengths_within(at, window)
    idle = int((free * lengths).sum())
    share = float(lengths[free > 0].sum()) / (last - first) if last > first else 0.0
    return idle, share
