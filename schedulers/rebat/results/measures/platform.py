# SPDX-License-Identifier: Apache-2.0
"""The use of node time in a window, where every node-second counts exactly once.

- The *work at hand* is the work that remains at the start of the window, plus submitted work.
  Useful time depends not only on the scheduler but also on this work: work that was delayed before
  the window increases the useful time in the window.
- Nodes with several cores are empty, mixed or full. Section 4.4 of Rodríguez-Pascual et al., "Job
  migration in HPC clusters by means of checkpoint/restart", 2019, counts them every 5 s. rebat does
  not sample: it integrates over time exactly.
- Fragmentation: free nodes are unusable because jobs need a box or a line of nodes. The head of the
  queue is the attempt that comes first in the default order: by priority, then by time of entry
  into the queue. The machine is *blocked* while the head waits although enough nodes are free.
  There are two possible reasons: the positions of the free nodes, or a reservation of another job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Annotated, Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.arrays import Ints
from rebat.core.attempts import OVER, Cause
from rebat.core.nodes import Intervals
from rebat.core.numbers import about_percent
from rebat.core.table import Table
from rebat.core.units import FOREVER_US, US_PER_S
from rebat.models.boxes import Allotment
from rebat.models.checkpoint import Accounting, Patterns, checkpoint_times_us
from rebat.models.power import NodePower
from rebat.results.measures.nodetime import (
    Steps,
    Widths,
    from_to,
    holds_of_attempts,
    lengths_within,
    node_us,
    repeats,
    steps_of,
    widths,
)
from rebat.results.measures.recoveries import hung_on_dead
from rebat.results.metric import Metric, Values
from rebat.state.ledger import AttemptRecord, Hold, Ledger

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
    """Node-seconds of a window by use (Figure 3). Their sum is ``total``."""

    # fmt: off
    total: Annotated[float, Metric("node time", "node time", "", "", "W: nodes x length of the window", listed=False)]
    useful: Annotated[float, Metric("useful", "node time", "high", "node time", "U: nodes x progress kept within the window, summed over the attempts of completed jobs; checkpoints and recoveries do not count")]
    checkpoint: Annotated[float, Metric("checkpoints", "node time", "low", "node time", "node time of checkpoints, including closing checkpoints")]
    recovery: Annotated[float, Metric("recovery", "node time", "low", "node time", "node time of the stages of recoveries (detection to initialisation), and of reading checkpoints after an interruption")]
    waste_failure: Annotated[float, Metric("wasted by failures", "node time", "low", "node time", "node time between the last checkpoint of an attempt and the failure that interrupted it, and all work of jobs that were given up")]
    waste_stealing: Annotated[float, Metric("wasted by stealing", "node time", "low", "node time", "node time between the last checkpoint of an attempt and the steal that interrupted it")]
    waste_silent: Annotated[float, Metric("wasted by silent errors", "node time", "low", "node time", "node time of attempts that ended with a silent error and ran again, and of the checkpointed progress that was lost")]
    waste_walltime: Annotated[float, Metric("wasted at walltimes", "node time", "low", "node time", "the work, over all attempts, of jobs that were killed at their walltime")]
    waste_moving: Annotated[float, Metric("wasted by moves", "node time", "low", "node time", "node time between the last checkpoint of an attempt and the time at which the policy stopped it, to move the job or to free nodes for another job")]
    held: Annotated[float, Metric("held", "node time", "low", "node time", "nodes that are up and reserved for a job that does not run on them")]
    downtime: Annotated[float, Metric("downtime", "node time", "", "node time", "nodes that are down")]
    idle: Annotated[float, Metric("idle", "node time", "low", "node time", "nodes that are up, run nothing and are not held")]
    idle_share: Annotated[float, Metric("some node idle", "share", "low", "time", "time within the window with at least one node up and free / length of the window; a held node is not free")]
    # fmt: on

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
    dead = sum(max(0, min(up, last) - max(down, first)) for down, up in hung_on_dead(ledger))
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


_PART_OF_RUN = ("backlog_begin", "backlog_end")


class Backlog(msgspec.Struct, frozen=True):
    """Remaining work of submitted jobs, in node-seconds.

    The work done in the window is begin + submitted - end. Work includes useful time and the time
    of jobs killed at their walltime.
    """

    # fmt: off
    begin: Annotated[float, Metric("work at the beginning", "node time", "", "", "work of jobs submitted before the window that remains at the beginning of the window", listed=False)]
    submitted: Annotated[float, Metric("work submitted", "node time", "", "", "work of jobs submitted within the window", listed=False)]
    end: Annotated[float, Metric("work at the end", "node time", "", "", "work that remains at the end of the window", listed=False)]
    nothing_waits: Annotated[float, Metric("nothing waits", "share", "", "time", "time within the window during which no attempt waits / length of the window", only_with=_PART_OF_RUN)]
    # fmt: on


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
    f"than {about_percent(MOST_APART)} of the window's node time, and at times no job waited"
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


def _work_at_hand(values: Values) -> float | None:
    work = at_hand(lambda name: values.get((name, None)))
    return None if work is None else work.share


AT_HAND = Metric("work at hand", "share", "", "all node time", "(work that remains at the beginning of the window + work submitted within the window) / W", only_with=_PART_OF_RUN, of=_work_at_hand, derived=True, name="backlog_at_hand")  # fmt: skip


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
    queued_us, start_us = map(ledger.attempts.column, ("queued_us", "start_us"))
    waited = np.flatnonzero(np.maximum(start_us, 0) > queued_us)
    times_us, by = from_to(queued_us[waited], start_us[waited])
    at, queued = steps_of(np.append(times_us, 0), np.append(by, 0))
    nothing_us = float(lengths_within(at, window)[queued == 0].sum())
    nothing_waits = nothing_us / (last - first) if last > first else 0.0
    return Backlog(begin, submitted, end, nothing_waits)


ASLEEP = "sleep"
"""The reason of drains that save energy.

While a drained node boots, it needs the power of an empty node.
"""


class NodeStates(msgspec.Struct, frozen=True):
    """Shares of node time in which none, some or all cores of a node are in use."""

    # fmt: off
    empty: Annotated[float, Metric("nodes empty", "share", "", "node time", "node time during which no core of the node is in use")]
    mixed: Annotated[float, Metric("nodes mixed", "share", "", "node time", "node time during which some cores of the node are in use")]
    full: Annotated[float, Metric("nodes full", "share", "", "node time", "node time during which all cores of the node are in use")]
    # fmt: on


class Usage(msgspec.Struct, frozen=True):
    """Intervals of time on nodes, with the numbers of used cores. Each array has shape (n,)."""

    node: Ints
    begin_us: Ints
    end_us: Ints
    used: Ints

    @property
    def length_us(self) -> Ints:
        """The length of each interval in microseconds."""
        return self.end_us - self.begin_us


def usage(ledger: Ledger, n_nodes: int, cores: int, window: Window) -> Usage:
    """Return the number of used cores over time. The intervals of each node cover the window."""
    first, last = window
    taken = [
        (record.nodes.intervals, max(record.start_us, first), min(record.end_us, last))
        for record in ledger.attempts
        if record.nodes is not None and record.end_us > first and record.start_us < last
    ]
    on, count, number = _by_node([intervals for intervals, _, _ in taken], cores)
    begin = np.array([begin for _, begin, _ in taken], dtype=np.int64)[number]
    end = np.array([end for _, _, end in taken], dtype=np.int64)[number]
    nodes = np.arange(n_nodes)
    node = np.concatenate([nodes, np.repeat(on, 2)])
    time_us = np.concatenate([np.full(n_nodes, first), np.stack([begin, end], axis=1).ravel()])
    delta = np.concatenate([np.zeros_like(nodes), np.stack([count, -count], axis=1).ravel()])
    order = np.lexsort((time_us, node))
    node, begin_us = node[order], time_us[order]
    used = np.cumsum(delta[order])  # the changes of a node add up to 0
    ends = np.append(begin_us[1:], last)
    ends[np.append(node[1:] != node[:-1], True)] = last
    return Usage(node, begin_us, ends, used)


def _by_node(sets: list[Intervals], cores: int) -> tuple[Ints, Ints, Ints]:
    """Return the nodes to which sets of cores belong.

    The three arrays have an entry for each pair of a set and a node: the node, the number of its
    cores in the set, and the index of the set.
    """
    rows = np.concatenate([np.empty((0, 2), dtype=np.int64), *sets])
    first = rows[:, 0] // cores
    spans = rows[:, 1] // cores - first + 1
    row = np.repeat(np.arange(len(rows)), spans)
    node = np.arange(len(row)) - np.repeat(np.cumsum(spans) - spans - first, spans)
    low = np.maximum(rows[row, 0], node * cores)
    high = np.minimum(rows[row, 1], node * cores + cores - 1)
    number = np.repeat(np.arange(len(sets)), [len(intervals) for intervals in sets])[row]
    new = np.ones(len(row), dtype=np.bool_)  # a node can belong to two intervals
    new[1:] = (node[1:] != node[:-1]) | (number[1:] != number[:-1])
    n_cores = np.add.reduceat(high - low + 1, np.flatnonzero(new)) if len(row) else row
    return node[new], n_cores, number[new]


def node_states(of: Usage, cores: int, nodes: Ints | None = None) -> NodeStates:
    """Return the shares of node time by state, over all nodes or over ``nodes``."""
    lengths = of.length_us if nodes is None else np.where(np.isin(of.node, nodes), of.length_us, 0)
    total = int(lengths.sum())
    if not total:
        return NodeStates(0.0, 0.0, 0.0)
    empty = int(lengths[of.used == 0].sum())
    full = int(lengths[of.used == cores].sum())
    return NodeStates(empty / total, (total - empty - full) / total, full / total)


class Energy(msgspec.Struct, frozen=True):
    """Energy of the nodes in a window.

    ``kwh`` is None if the power of a node is unknown. ``asleep`` is the share of node time in which
    nodes sleep, from 0 to 1.
    """

    # fmt: off
    kwh: Annotated[float | None, Metric("energy, kWh", "count", "low", "", "energy of the nodes; requires the policy option `power`, the watts of a node")]
    asleep: Annotated[float, Metric("  nodes asleep", "share", "", "node time", "node time asleep / W", of=lambda v: v.get(("energy_asleep", None), 0.0))]
    # fmt: on


def energy(
    of: Usage, ledger: Ledger, cores: int, window: Window, power: NodePower | None
) -> Energy:
    """Return the energy of the machine. The power of a node depends on its number of used cores."""
    lengths_s = of.length_us / US_PER_S
    asleep_us = 0
    for drain in ledger.drained:
        if drain.why == ASLEEP:
            until = window[1] if drain.until_us is None else min(drain.until_us, window[1])
            asleep_us += max(0, until - max(drain.since_us, window[0])) * drain.nodes.size // cores
    asleep_s, total_s = asleep_us / US_PER_S, float(lengths_s.sum())
    asleep = asleep_s / total_s if total_s else 0.0
    if power is None:
        return Energy(None, asleep)
    watts = power.empty_w + (power.full_w - power.empty_w) * of.used / cores
    joules = float(lengths_s @ watts) - asleep_s * (power.empty_w - power.asleep_w)
    return Energy(joules / 3.6e6, asleep)


Head = tuple[Ints, Ints, Ints]
"""Attempts at the head of the queue, as three arrays.

Each array has an entry per attempt: when the attempt becomes the head, when it stops being the head
(times in microseconds), and how many nodes it requests.
"""


class Fragmentation(msgspec.Struct, frozen=True):
    """Fragmentation of the nodes in a window."""

    # fmt: off
    blocked_share: Annotated[float, Metric("head of the queue blocked", "share", "low", "time", "time during which the first attempt of the queue waits although enough nodes are up and free / length of the window")]
    blocked_free_nodes: Annotated[float, Metric("  free nodes while blocked, mean", "count", "low", "", "the mean number of free nodes while the head of the queue is blocked")]
    blocked: Annotated[float, Metric("blocked nodes", "node time", "low", "", "free nodes x time while the head of the queue is blocked", listed=False)]
    box_waste: Annotated[float, Metric("box waste (within idle)", "node time", "low", "all node time", "node time of nodes in the box of an attempt that the attempt did not request")]
    # fmt: on


def fragmentation(
    ledger: Ledger,
    n_nodes: int,
    window: Window,
    allotted: Allotment | None = None,
    free: Steps | None = None,
) -> Fragmentation:
    """Return the fragmentation in a window of a run.

    Parameters
    ----------
    n_nodes : int
        Number of nodes of the machine.
    allotted : Allotment, optional
        Function that maps the requested to the allocated number of nodes (default: both are equal).
    free : Steps, optional
        The result of `free_steps` if it is already computed.
    """
    first, last = window
    at, n_free = free or free_steps(ledger, n_nodes)
    heads = list(_heads(ledger))
    times = np.concatenate([at, *(t for head in heads for t in head[:2]), [first]])
    order = np.argsort(times, kind="stable")  # fast, because the times consist of sorted parts
    times, place = times[order], np.cumsum(order < len(at)) - 1
    of_step = np.flatnonzero(np.append(times[1:] != times[:-1], True))
    lengths = lengths_within(times[of_step], window)
    unused = n_free[place[of_step]]
    wanted = _wanted(heads, len(at), order)[of_step]
    blocked = np.where((wanted > 0) & (wanted <= unused), lengths, 0)
    blocked_us, node_us = int(blocked.sum()), int((blocked * unused).sum())
    return Fragmentation(
        blocked_share=blocked_us / (last - first) if last > first else 0.0,
        blocked_free_nodes=node_us / blocked_us if blocked_us else 0.0,
        blocked=node_us / US_PER_S,
        box_waste=_box_waste_us(ledger.attempts, window, allotted) / US_PER_S,
    )


def _heads(ledger: Ledger) -> Iterator[Head]:
    """Yield the heads of the queue for each priority, starting with the highest priority.

    For each priority, only its attempts are considered. An attempt is the head from the start of
    its predecessor until its own start.
    """
    column = ledger.attempts.column
    waited = np.flatnonzero(column("start_us") > column("queued_us"))
    names = ("priority", "queued_us", "serial", "n_nodes")
    priority, queued_at, serial, size = (column(name)[waited] for name in names)
    order = np.lexsort((serial, queued_at, -priority))
    table, of = np.array([queued_at, column("start_us")[waited], size])[:, order], priority[order]
    bounds = [0, *(np.flatnonzero(of[1:] != of[:-1]) + 1).tolist(), len(order)]
    for begin, end in pairwise(bounds):
        queued, start, requested = table[:, begin:end]
        before = np.maximum.accumulate(np.append(np.zeros(1, dtype=np.int64), start[:-1]))
        since = np.maximum(queued, before[: len(start)])
        leads = since < start
        yield since[leads], start[leads], requested[leads]


def _wanted(heads: Iterable[Head], before: int, order: Ints) -> Ints:
    """Return the number of nodes that the head requests at each time, or 0 if no attempt waits.

    ``order`` sorts the times, which are ``before`` other times and the times of the heads.
    """
    wanted = np.zeros(len(order), dtype=np.int64)
    for since, _, requested in heads:
        changes = np.zeros(len(order), dtype=np.int64)
        changes[before : before + len(since)] = requested
        changes[before + len(since) : before + 2 * len(since)] = -requested
        wanted = np.where(wanted == 0, np.cumsum(changes[order]), wanted)
        before += 2 * len(since)
    return wanted


def _box_waste_us(
    attempts: Table[AttemptRecord], window: Window, allotted: Allotment | None
) -> int:
    if allotted is None:
        return 0
    ran = attempts.column("start_us") >= 0
    names = ("n_nodes", "start_us", "end_us")
    requested, start, end = (attempts.column(name)[ran] for name in names)
    lengths = np.maximum(np.minimum(end, window[1]) - np.maximum(start, window[0]), 0)
    sizes, which = np.unique(requested, return_inverse=True)
    spare = np.array([allotted(size) - size for size in sizes.tolist()], dtype=np.int64)
    return int((spare[which] * lengths).sum())
