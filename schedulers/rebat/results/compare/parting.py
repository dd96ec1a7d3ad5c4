# SPDX-License-Identifier: Apache-2.0
"""The first decision at which two policies differ, from their runs of the same workload.

Before this decision both runs are equal. Therefore, both policies decided with the same
information. A *decision* is a start, or a stop that the policy proposed (a steal, a move or a
preemption). Ends and failures are not decisions. Runs do not record when a job was rejected, so a
rejection counts as a decision at the time at which the job entered the queue.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.attempts import Cause
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.numbers import counted, duration
from rebat.core.units import to_s
from rebat.results.measures.timeline import CAUSES, Timeline

Mask = npt.NDArray[np.bool_]

STOPPED = (Cause.STOLEN, Cause.MOVED, Cause.PREEMPTED, Cause.HORIZON)
"""Causes with which attempts end if the policy stops them."""

AROUND = 0.05
"""Time shown before and after the decision, as a share of the length of the longer run."""


class PolicyChoice(msgspec.Struct, frozen=True, order=True):
    """A decision about a job.

    Attributes
    ----------
    job, attempt
        The job, and the number of its attempt (0 for the first).
    verb : str
        'start', 'stop' or 'reject'.
    nodes
        Number of nodes of the attempt, or 0 if it never ran.
    why
        For a stop, the cause and the reason that the policy stated. Empty for other decisions.
    places
        For a start, the nodes. Empty if nodes are not compared.
    """

    job: str
    attempt: int
    verb: str
    nodes: int
    why: str = ""
    places: tuple[tuple[int, int], ...] = ()


class Knowledge(msgspec.Struct, frozen=True):
    """The state before the decision, which is the same for both policies.

    Attributes
    ----------
    queue : list of str
        Jobs that wait, in order of their entry into the queue.
    running : list of str
        Jobs that run.
    free, down, held
        Numbers of nodes that are free, down, and held for a job.
    """

    queue: list[str]
    running: list[str]
    free: int
    down: int
    held: int


class JobOutcome(msgspec.Struct, frozen=True):
    """The final outcome of a job. Times are in microseconds, or None if the job did not run."""

    first_start_us: int | None
    end_us: int | None
    attempts: int


class Parting(msgspec.Struct, frozen=True):
    """The *parting* of two runs: the first time at which their decisions differ.

    Attributes
    ----------
    at_us
        The time in microseconds.
    n_equal
        Number of equal decisions before this time.
    only
        Two lists of decisions at this time: those of the first policy only, and those of the second
        only.
    knew : Knowledge
        The state before these decisions.
    outcomes
        For each job in ``only`` (by id), its outcomes under both policies.
    """

    at_us: int
    n_equal: int
    only: tuple[list[PolicyChoice], list[PolicyChoice]]
    knew: Knowledge
    outcomes: dict[str, tuple[JobOutcome, JobOutcome]]


class Ends(msgspec.Struct, frozen=True):
    """Numbers of jobs that end earlier, later and at the same time in the second run."""

    earlier: int
    later: int
    same: int


def parting(a: Timeline, b: Timeline, nodes: bool = False) -> Parting | None:
    """Return the first difference of two runs, or None if all decisions are equal.

    Parameters
    ----------
    a, b : Timeline
        Runs of the same workload.
    nodes : bool
        Whether it counts as a difference if a job starts at the same time on different nodes.
    """
    if a.n_nodes != b.n_nodes:
        sizes = f"{a.n_nodes} nodes in {a.name}, but {b.n_nodes} nodes in {b.name}"
        raise InputError(f"the machine has {sizes}", expected="two runs on the same machine")
    jobs_a, jobs_b = (set(zip(run.job_id, run.submit_us.tolist(), strict=True)) for run in (a, b))
    if jobs_a != jobs_b:
        job = min(jobs_a ^ jobs_b)[0]
        problem = f"job {job} is missing or has another submission time in {a.name} or {b.name}"
        raise InputError(problem, expected="two runs of the same workload")
    ours, theirs = _choices(a, nodes), _choices(b, nodes)
    n_equal = 0
    for at_us in sorted(ours.keys() | theirs.keys()):
        mine, others = ours.get(at_us, set()), theirs.get(at_us, set())
        if mine != others:
            only = sorted(mine - others), sorted(others - mine)
            jobs = dict.fromkeys(choice.job for choices in only for choice in choices)
            outcomes = {job: (_outcome(a, job), _outcome(b, job)) for job in jobs}
            return Parting(at_us, n_equal, only, _knowledge(a, at_us), outcomes)
        n_equal += len(mine)
    return None


def around_us(a: Timeline, b: Timeline) -> float:
    """Return the time shown before and after the decision, in microseconds."""
    return AROUND * max(a.makespan_us, b.makespan_us)


def ends(a: Timeline, b: Timeline) -> Ends:
    """Return the numbers of jobs that end earlier, later and at the same time in the second run."""
    ours, theirs = _ends_us(a), _ends_us(b)
    pairs = [(ours[job], theirs[job]) for job in ours.keys() & theirs.keys()]
    earlier, later = sum(y < x for x, y in pairs), sum(y > x for x, y in pairs)
    return Ends(earlier, later, len(pairs) - earlier - later)


def _choices(run: Timeline, nodes: bool) -> dict[int, set[PolicyChoice]]:
    choices: dict[int, set[PolicyChoice]] = defaultdict(set)
    places: dict[int, list[tuple[int, int]]] = defaultdict(list)
    if nodes:
        for owner, *pair in zip(*(part.tolist() for part in run.blocks), strict=True):
            places[owner].append((pair[0], pair[1]))
    rows = zip(
        run.job_id,
        run.number.tolist(),
        run.sizes.tolist(),
        run.queued_us.tolist(),
        run.start_us.tolist(),
        run.end_us.tolist(),
        (CAUSES[code] for code in run.cause.tolist()),
        run.why,
        strict=True,
    )
    for row, (job, number, size, queued_us, start_us, end_us, cause, why) in enumerate(rows):
        if start_us >= 0:
            at = tuple(sorted(places[row])) if nodes else ()
            choices[start_us].add(PolicyChoice(job, number, "start", size, places=at))
        if cause in STOPPED:
            reason = f"{cause}: {why}" if why else str(cause)
            choices[end_us].add(PolicyChoice(job, number, "stop", size, reason))
        if cause == Cause.REJECTED:
            choices[queued_us].add(PolicyChoice(job, number, "reject", 0))
    return choices


def _knowledge(run: Timeline, at_us: int) -> Knowledge:
    stopped = np.isin(run.cause, [CAUSES.index(cause) for cause in STOPPED])
    ends_later = (run.end_us > at_us) | (stopped & (run.end_us == at_us))
    running = run.ran & (run.start_us < at_us) & ends_later
    waiting = run.ran & (run.queued_us <= at_us) & (run.start_us >= at_us)
    down, held = (
        int(spans.sizes[(spans.begin_us <= at_us) & (at_us < spans.end_us)].sum())
        for spans in (run.outages, run.held)
    )
    busy = int(run.sizes[running].sum())
    order = np.flatnonzero(waiting)[np.argsort(run.queued_us[waiting], kind="stable")]
    return Knowledge(
        [run.job_id[row] for row in order.tolist()],
        [run.job_id[row] for row in np.flatnonzero(running).tolist()],
        max(0, run.n_nodes - busy - down - held),
        down,
        held,
    )


def _outcome(run: Timeline, job: str) -> JobOutcome:
    rows = [row for row, name in enumerate(run.job_id) if name == job and run.start_us[row] >= 0]
    if not rows:
        return JobOutcome(None, None, 0)
    return JobOutcome(int(run.start_us[rows].min()), int(run.end_us[rows].max()), len(rows))


def _ends_us(run: Timeline) -> dict[str, int]:
    ends_us: dict[str, int] = {}
    for job, end_us in zip(run.job_id, run.end_us.tolist(), strict=True):
        ends_us[job] = max(end_us, ends_us.get(job, end_us))
    return ends_us


MOST_NAMED = 5
"""Maximum number of waiting jobs in a sentence."""

SAME = "{} and {} make the same decisions in the entire run"


class DifferenceText(NamedTuple):
    """Sentences about both policies' decisions, the state before them, and the ends of jobs."""

    decisions: list[str]
    knowledge: str
    end: str


def difference_text(names: tuple[str, str], parted: Parting, result: Ends) -> DifferenceText:
    """Return the sentences about the first difference between two policies with these names."""
    at_s, second = to_s(parted.at_us), names[1]
    decisions = [
        f"{names[0]} and {second} differ at {duration(at_s)} ({at_s:.6f} s), "
        f"after {parted.n_equal} equal decisions",
        *(
            f"  {name}: {'; '.join(map(_choice, choices)) or 'none of these decisions'}"
            for name, choices in zip(names, parted.only, strict=True)
        ),
    ]
    verb = "ends" if result.earlier == 1 else "end"
    end = (
        f"In the end: {counted(result.earlier, 'job')} {verb} earlier with {second}, "
        f"{result.later} later, "
        f"{result.same} at the same time."
    )
    return DifferenceText(decisions, f"State before, in both runs: {_state(parted.knew)}.", end)


def _choice(choice: PolicyChoice) -> str:
    again = f", attempt {choice.attempt}" if choice.attempt else ""
    size = counted(choice.nodes, "node")
    if choice.verb == "reject":
        return f"reject job {choice.job}"
    where = NodeSet.from_intervals(choice.places)
    why = f" ({choice.why})" if choice.why else ""
    on = f"nodes {where}" if choice.places else size
    return f"{choice.verb} job {choice.job}{again} on {on}{why}"


def _state(knew: Knowledge) -> str:
    first = ", ".join(knew.queue[:MOST_NAMED])
    queue = f"{counted(len(knew.queue), 'job')} in the queue"
    if first:
        more = ", ..." if len(knew.queue) > MOST_NAMED else ""
        queue += f" ({first}{more})"
    held = f", {knew.held} held" if knew.held else ""
    free = f"{counted(knew.free, 'node')} free"
    return f"{queue}, {len(knew.running)} running, {free}, {knew.down} down{held}"
