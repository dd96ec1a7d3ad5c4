# SPDX-License-Identifier: Apache-2.0
"""The first different decision of two policies, compared with the decisions of their sessions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebat.core.attempts import split_attempt
from rebat.core.decisions import ExecuteJob, Reply
from rebat.core.errors import InputError
from rebat.core.events import Message
from rebat.core.jobs import Workload
from rebat.drive.ask import Session
from rebat.engine.engine import Engine
from rebat.models.failures.events import MachineEvent
from rebat.policies.presets import preset
from rebat.results.compare.parting import Ends, Knowledge, PolicyChoice, ends, parting
from rebat.results.measures.timeline import Timeline, timeline_of
from tests.policies.test_toy_example import FAILURE, TOY
from tests.support.amount import few
from tests.support.scenarios import fails, machine, run

pytestmark = pytest.mark.usefixtures("both_ways")

Starts = dict[int, set[tuple[str, int, str]]]


def played(policy: str, workload: Workload, events: list[MachineEvent]) -> tuple[Timeline, Starts]:
    """Return the run of a policy, and the starts that it sends."""
    session = Session(preset(policy).make(), preset(policy).session)
    starts: Starts = {}

    def scheduler(message: Message) -> Reply:
        reply = session.handle(message)
        for decision in reply.decisions:
            if isinstance(decision, ExecuteJob):
                job, attempt = split_attempt(decision.job_id)
                place = job.removeprefix("w0!"), attempt, str(decision.nodes)
                starts.setdefault(message.now_us, set()).add(place)
        return reply

    Engine(workload, events=events).run(scheduler)
    return timeline_of(policy, session.ledger, workload.n_nodes), starts


JOBS = st.lists(
    st.tuples(st.integers(1, 6), st.integers(1, 30), st.integers(0, 20), st.integers(30, 60)),
    min_size=1,
    max_size=12,
)


@settings(max_examples=few(60))
@given(
    jobs=JOBS, at=st.integers(1, 40), nodes=st.booleans(),
    pair=st.permutations(["easy", "baseline", "greedy", "easy:order=shortest"]),
)  # fmt: skip
def test_the_first_start_that_differs(
    jobs: list[tuple[int, int, int, int]], at: int, nodes: bool, pair: list[str]
) -> None:
    """These policies never stop a job, so all their decisions are starts."""
    workload, events = machine(6, *jobs), fails(0, at, at + 7)
    (a, ours), (b, theirs) = (played(policy, workload, events) for policy in pair[:2])
    if not nodes:
        ours, theirs = (
            {t: {(*start[:2], "") for start in starts} for t, starts in each.items()}
            for each in (ours, theirs)
        )
    different = [t for t in ours.keys() | theirs.keys() if ours.get(t) != theirs.get(t)]
    parted = parting(a, b, nodes)
    assert (None if parted is None else parted.at_us) == min(different, default=None)
    if parted is None:
        assert ends(a, b) == Ends(0, 0, len(jobs))
        return
    for only, mine, others in zip(parted.only, (ours, theirs), (theirs, ours), strict=True):
        expected = mine.get(parted.at_us, set()) - others.get(parted.at_us, set())
        assert {(c.job, c.attempt) for c in only} == {start[:2] for start in expected}
        assert {c.verb for c in only} <= {"start"}
    assert parted.n_equal == sum(len(s) for t, s in ours.items() if t < parted.at_us)


def test_what_both_knew() -> None:
    """Job 2 needs all nodes and waits for job 1; meanwhile EASY starts job 3."""
    jobs = machine(4, (3, 10), (4, 10, 1), (1, 5, 2))
    a, b = (
        timeline_of(p, run(p, jobs, fails(3, 30, 31)).ledger, 4) for p in ("batsched-fcfs", "easy")
    )
    parted = parting(a, b)
    assert parted is not None
    assert (parted.at_us, parted.n_equal) == (2 * 10**6, 1)
    assert parted.only == ([], [PolicyChoice("3", 0, "start", 1)])
    assert parted.knew == Knowledge(["2", "3"], ["1"], free=1, down=0, held=0)
    start, end = (getattr(parted.outcomes["3"][1], name) for name in ("first_start_us", "end_us"))
    assert (start, end) == (2 * 10**6, 7 * 10**6)
    assert ends(a, b) == Ends(earlier=1, later=0, same=2)


def test_a_steal_is_a_decision_of_its_policy() -> None:
    """Figure 2 of the node-stealing paper: job 3 takes the node of a victim."""
    a, b = (
        timeline_of(policy, run(policy, TOY, FAILURE).ledger, TOY.n_nodes)
        for policy in ("baseline", "sfsj")
    )
    parted = parting(a, b)
    assert parted is not None
    stops = [choice for choice in parted.only[1] if choice.verb == "stop"]
    assert stops
    assert all(choice.why.startswith("stolen") for choice in stops)
    assert "3" in parted.outcomes


def test_runs_of_other_workloads_cannot_be_compared() -> None:
    a = timeline_of("a", run("easy", machine(2, (1, 5))).ledger, 2)
    b = timeline_of("b", run("easy", machine(2, (1, 5), (1, 5))).ledger, 2)
    with pytest.raises(
        InputError, match="job 2 is missing or has another submission time in a or b"
    ):
        parting(a, b)
    with pytest.raises(InputError, match="the machine has 2 nodes in a, but 3 nodes in c"):
        parting(a, timeline_of("c", run("easy", machine(3, (1, 5))).ledger, 3))
