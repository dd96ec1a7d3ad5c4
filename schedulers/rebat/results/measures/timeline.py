# SPDX-License-Identifier: Apache-2.0
"""An entire run as arrays, for figures: attempts with their nodes and times, and outages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rebat.core.attempts import Cause, job_name
from rebat.core.node_events import NodeEvents
from rebat.core.table import Ragged, Table
from rebat.models.checkpoint import Checkpointing
from rebat.results.measures.nodetime import Steps, from_to, holds_of_attempts, repeats, steps_of
from rebat.state.ledger import AttemptRecord, Ledger

Int = npt.NDArray[np.int64]

CAUSES = tuple(Cause)
"""The causes to which the numbers in ``Timeline.cause`` refer."""

"""Events in order of time: time, whether the nodes are up after the event, and the nodes."""


class Pattern(NamedTuple):
    """The checkpoint times of attempts.

    The first checkpoint begins after the recovery and the first period. Each later checkpoint
    begins a period after the previous checkpoint. A checkpoint takes ``cost_us``. Periods and cost
    are -1 for attempts without checkpoints.
    """

    recovery_us: Int
    first_us: Int
    period_us: Int
    cost_us: Int


class Blocks(NamedTuple):
    """Ranges of consecutive nodes, ``first`` to ``last``, each with its owner (an index)."""

    owner: Int
    first: Int
    last: Int

    def of_each(self, n: int) -> Ragged:
        """Return the nodes of the owners 0 to n - 1. The owners of the blocks are ascending."""
        first, after = (np.searchsorted(self.owner, np.arange(n) + k) for k in (0, 1))
        return Ragged(np.stack([self.first, self.last], axis=1), first, after - first)


class Spans(NamedTuple):
    """Ranges of nodes, ``first`` to ``last``, each with begin and end of its outage or hold."""

    begin_us: Int
    end_us: Int
    first: Int
    last: Int

    @property
    def sizes(self) -> Int:
        """The number of nodes of each span."""
        return self.last - self.first + 1


class Timeline(NamedTuple):
    """The attempts of a run, one row each, in the order of their ends. Times are in microseconds.

    Attributes
    ----------
    name : str
        The policy.
    n_nodes : int
        Number of nodes of the machine.
    job_id : list of str
        The original job of each attempt.
    why : list of str
        The reason that the policy stated for a stop.
    number, submit_us, queued_us, start_us, end_us : int arrays
        ``start_us`` is -1 if the attempt never ran. ``end_us`` is -1 if it was rejected.
    kept_us, lost_us : int arrays
        The progress that was kept when the attempt ended, and the part of it that was lost later.
    cause : int array
        Index into ``CAUSES``.
    blocks : Blocks
        The nodes of all attempts. The owner of a block is the row of its attempt. Blocks are sorted
        by owner.
    outages : Spans
        The nodes that are down.
    failures : (times, nodes)
        Every failure of a node.
    pattern : Pattern
        The checkpoint times.
    held : Spans
        Nodes that were held for a job that did not run on them.
    held_for : list of str
        The job of each hold.
    repeats : (times, changes)
        The number of surplus nodes in a sum over attempts, because attempts share nodes (see
        `measures.nodetime`).
    """

    name: str
    n_nodes: int
    job_id: list[str]
    number: Int
    submit_us: Int
    queued_us: Int
    start_us: Int
    end_us: Int
    cause: Int
    why: list[str]
    kept_us: Int
    lost_us: Int
    blocks: Blocks
    outages: Spans
    failures: tuple[Int, Int]
    pattern: Pattern
    held: Spans
    held_for: list[str]
    repeats: tuple[Int, Int] = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))

    @property
    def ran(self) -> npt.NDArray[np.bool_]:
        """A mask of the attempts that ran."""
        return self.start_us >= 0

    @property
    def sizes(self) -> Int:
        """The number of nodes of each attempt."""
        sizes = np.zeros(len(self.job_id), dtype=np.int64)
        np.add.at(sizes, self.blocks.owner, self.blocks.last - self.blocks.first + 1)
        return sizes

    @property
    def makespan_us(self) -> int:
        """The last end of an attempt."""
        return int(self.end_us.max(initial=0))


class Series(NamedTuple):
    """Numbers of busy nodes, queued attempts and free nodes, each as a step function of time."""

    busy: Steps
    queued: Steps
    free: Steps


def series_of(timeline: Timeline) -> Series:
    """Return the numbers of nodes in use, waiting attempts, and nodes up and free over time.

    Nodes that are held for a job are neither in use nor free. An attempt waits from its entry into
    the queue to its start, or to its end if it never ran.
    """
    ran, sizes, down, held = timeline.ran, timeline.sizes, timeline.outages, timeline.held
    zero = np.zeros(1, dtype=np.int64)
    held_twice_at, held_twice = timeline.repeats
    starts_and_ends, by = from_to(timeline.start_us[ran], timeline.end_us[ran], sizes[ran])
    use = np.concatenate([starts_and_ends, held_twice_at]), np.concatenate([by, -held_twice])
    out = from_to(down.begin_us, down.end_us, down.sizes)
    holds = from_to(held.begin_us, held.end_us, held.sizes)
    left_us = np.where(ran, timeline.start_us, timeline.end_us)
    waits = from_to(timeline.queued_us, np.maximum(left_us, timeline.queued_us))
    busy, queued = (
        steps_of(np.concatenate([zero, times_us]), np.concatenate([zero, by]))
        for times_us, by in (use, waits)
    )
    times_us = np.concatenate([zero, use[0], out[0], holds[0]])
    changes = np.concatenate([zero + timeline.n_nodes, -use[1], -out[1], -holds[1]])
    free = steps_of(times_us, changes)
    return Series(busy, queued, free)


def outages_of(events: NodeEvents, until_us: int) -> tuple[Spans, tuple[Int, Int]]:
    """Return all outages up to a time (joined over consecutive nodes), and all failures."""
    outages = events.outages(until_us)
    node, down, up = outages.at(outages.down_us < until_us)
    up = np.minimum(up, until_us)
    order = np.lexsort((node, up, down))
    node, down, up = node[order], down[order], up[order]
    apart = (np.diff(down) != 0) | (np.diff(up) != 0) | (np.diff(node) != 1)
    begins = np.flatnonzero(np.concatenate([[True], apart])) if len(node) else np.arange(0)
    ends = np.append(begins[1:], len(node)) - 1 if len(node) else begins
    return Spans(down[begins], up[begins], node[begins], node[ends]), (down, node)


def spans_of(begin_us: Int, end_us: Int, blocks: Blocks) -> Spans:
    """Combine blocks of nodes with the begin and end times of their owners to spans."""
    owner = blocks.owner
    return Spans(begin_us[owner], end_us[owner], blocks.first, blocks.last)


def holds_of(ledger: Ledger, until_us: int) -> tuple[Spans, list[str]]:
    """Return the holds up to a time, and the job of each hold."""
    holds = [hold for hold in ledger.holds if hold.until_us != hold.since_us]
    begin_us = np.array([hold.since_us for hold in holds], dtype=np.int64)
    ends_us = [until_us if hold.until_us is None else hold.until_us for hold in holds]
    blocks = blocks_of([hold.nodes.intervals for hold in holds])
    names = [job_name(holds[at].job_id) for at in blocks.owner]
    return spans_of(begin_us, np.array(ends_us, dtype=np.int64), blocks), names


def blocks_of(sets: Sequence[Int]) -> Blocks:
    """Return the blocks of owners 0, 1, ... from their ranges of nodes (arrays k x 2)."""
    counts = np.fromiter(map(len, sets), dtype=np.int64, count=len(sets))
    pairs = np.concatenate([np.empty((0, 2), dtype=np.int64), *sets])
    return Blocks(np.repeat(np.arange(len(sets)), counts), pairs[:, 0], pairs[:, 1])


def timeline_of(name: str, ledger: Ledger, n_nodes: int) -> Timeline:
    """Return the timeline of a run from its ledger."""
    records = ledger.attempts
    end_us = int(records.column("end_us").max(initial=0))
    outages, failures = outages_of(ledger.node_events, end_us)
    sets, reasons = records.nodes(), records.values("why")
    causes = np.array([CAUSES.index(cause) for cause in records.values("cause")], dtype=np.int64)
    return Timeline(
        name,
        n_nodes,
        [*records.texts("name")],
        records.column("number"),
        records.column("submit_us"),
        records.column("queued_us"),
        records.column("start_us"),
        records.column("end_us"),
        causes[records.column("cause")],
        [reasons[code] for code in records.column("why").tolist()],
        np.maximum(records.column("useful_us"), 0),
        records.column("lost_us"),
        Blocks(np.repeat(np.arange(len(records)), sets.number), *sets.pairs().T),
        outages,
        failures,
        pattern_of(records),
        *holds_of(ledger, end_us),
        *([repeats(holds_of_attempts(ledger))] if ledger.shared else []),
    )


def pattern_of(attempts: Table[AttemptRecord]) -> Pattern:
    """Return the checkpoint times of attempts."""
    rows = []
    for checkpointing in attempts.values("checkpointing"):
        recovery_us, periods = checkpoint_times(checkpointing)
        rows.append((recovery_us, *(periods or (-1, -1, -1))))
    distinct = np.array(rows, dtype=np.int64).reshape(-1, 4)
    return Pattern(*distinct[attempts.column("checkpointing")].T)


def checkpoint_times(c: Checkpointing | None) -> tuple[int, tuple[int, int, int] | None]:
    """Return the recovery time (us), and the periodic checkpoints as three values (us).

    The three values are first period, later periods and cost. Without periodic checkpoints, None
    replaces them.
    """
    if c is None:
        return 0, None
    seldom = None if c.never or c.perfect else (c.first_period_us, c.period_us, c.cost_us)
    return c.first_recovery_us, seldom
