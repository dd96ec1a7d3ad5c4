# SPDX-License-Identifier: Apache-2.0
"""The session without an engine: messages and decisions, with minimal policies."""

from __future__ import annotations

import pytest

from rebat.contract import Answer, Move, Policy, Refusal, Reject, Start, Stop, Wait, Wake
from rebat.core import decisions as d
from rebat.core import events as e
from rebat.core.attempts import Cause
from rebat.core.errors import InputError, PolicyError
from rebat.core.nodes import NodeSet
from rebat.core.options import Dialect, SessionOptions
from rebat.core.units import to_us
from rebat.drive.ask import Session
from rebat.drive.invariants import BrokenInvariant
from rebat.policies.presets import PRESETS, preset
from tests.support.scenarios import on_ring

PROFILES = {"w0": {"d": {"type": "delay", "delay": 20}}}


def begun(
    policy, *, dynamic: bool = True, strict: bool = True, n_nodes: int = 4,
    options: SessionOptions | None = None,
) -> Session:  # fmt: skip
    """Return a session that has received SIMULATION_BEGINS."""
    session = Session(policy, options or SessionOptions(strict=strict))
    config = {"dynamic-jobs-enabled": dynamic}
    session.handle(
        e.Message(0, (e.SimulationBegan(
            at_us=0, n_nodes=n_nodes, config=config, profiles=PROFILES, workloads={},
        ),))
    )  # fmt: skip
    return session


def submitted(name: str, res: int = 2, walltime: float = 30, at: int = 0, **fields) -> e.Event:
    job = {"id": f"w0!{name}", "res": res, "walltime": walltime, "profile": "d", **fields}
    return e.JobSubmitted(at_us=at, job_id=f"w0!{name}", job=job)


def say(session: Session, at_s: float, *events: e.Event) -> tuple[d.Decision, ...]:
    decisions = session.handle(e.Message(to_us(at_s), events)).decisions
    session.validate()
    return decisions


def tick(at_s: float) -> e.Event:
    """Return an event that is reported to policies."""
    return e.Notified(at_us=to_us(at_s), kind="tick")


def kinds(decisions) -> list[str]:
    return [type(decision).__name__ for decision in decisions]


def completed(name: str, at_s: float, nodes: str, state="COMPLETED_SUCCESSFULLY") -> e.Event:
    return e.JobCompleted(
        at_us=to_us(at_s), job_id=f"w0!{name}", state=state, return_code=0,
        nodes=NodeSet.parse(nodes),
    )  # fmt: skip


def failed(at_s: float, nodes: str) -> e.Event:
    return e.NodesFailed(at_us=to_us(at_s), nodes=NodeSet.parse(nodes))


def repaired(at_s: float, nodes: str) -> e.Event:
    return e.NodesRejuvenated(at_us=to_us(at_s), nodes=NodeSet.parse(nodes))


def killed(at_s: float, *names: str, really: bool = True) -> e.Event:
    ids = tuple(f"w0!{name}" for name in names)
    return e.JobsKilled(
        at_us=to_us(at_s), job_ids=ids, progress={key: {} for key in ids} if really else {}
    )


class Proposes(Policy):
    """A policy that makes the given proposals once."""

    def __init__(self, *proposals, reactions=()) -> None:
        self.proposals, self.reactions = list(proposals), list(reactions)

    def plan(self, view, changes):
        now, self.proposals = self.proposals, []
        return now

    def react(self, view, news):
        now, self.reactions = self.reactions, []
        return now


def test_a_failure_kills_what_runs_there_and_resubmits_it_when_the_kill_is_told() -> None:
    session = begun(preset("baseline").make())
    assert kinds(say(session, 0, submitted("1"))) == ["ExecuteJob"]
    kill = say(session, 5, failed(5, "1"))
    assert kinds(kill) == ["KillJobs"]
    assert kill[0].job_ids == ("w0!1",)
    again = say(session, 5, completed("1", 5, "0-1", "COMPLETED_KILLED"), killed(5, "1"))
    assert kinds(again) == ["RegisterProfile", "RegisterJob", "ExecuteJob"]
    assert again[1].job_id == again[2].job_id == "w0!1#1"
    assert again[2].nodes == NodeSet.parse("0 2")


def test_nothing_starts_while_a_kill_is_pending() -> None:
    session = begun(preset("baseline").make())
    say(session, 0, submitted("1", 3))
    assert kinds(say(session, 5, failed(5, "0"), submitted("2", 1, at=to_us(5)))) == ["KillJobs"]


def test_an_attempt_that_ended_at_the_instant_of_its_kill_is_not_resubmitted() -> None:
    session = begun(preset("baseline").make())
    say(session, 0, submitted("1"))
    say(session, 20, failed(20, "1"))
    after = say(session, 20, completed("1", 20, "0-1"), killed(20, "1", really=False))
    assert kinds(after) == []
    assert [record.cause for record in session.ledger.attempts] == [Cause.COMPLETED]


def test_a_completion_in_the_message_of_the_failure_is_not_killed() -> None:
    """Batsim aborts on the kill of a job whose completion it has reported."""
    session = begun(preset("baseline").make())
    say(session, 0, submitted("1"))
    assert kinds(say(session, 20, failed(20, "1"), completed("1", 20, "0-1"))) == []


def test_registration_is_finished_once_everything_ended() -> None:
    session = begun(preset("baseline").make())
    say(session, 0, submitted("1"))
    assert kinds(say(session, 0, e.NoMoreStaticJobs(at_us=0))) == []
    assert kinds(say(session, 20, completed("1", 20, "0-1"))) == ["FinishRegistration"]


def test_without_dynamic_jobs_a_failure_names_the_missing_flag() -> None:
    session = begun(preset("baseline").make(), dynamic=False)
    say(session, 0, submitted("1"))
    with pytest.raises(InputError, match="--enable-dynamic-jobs"):
        say(session, 5, failed(5, "1"))


@pytest.mark.parametrize(
    ("proposal", "reason"),
    [
        (Start("w0!9"), "not in the queue"),
        (Start("w0!1", NodeSet.parse("0")), "cannot run on 1 node: it requested 2"),
        (Start("w0!1", NodeSet.parse("3-4")), "cannot start: node 4 is not up and free"),
        (Start("w0!2"), "needs 5 nodes, but the number of free nodes is 4"),
        (Reject("w0!9", "why not"), "not in the queue"),
    ],
)
def test_unsafe_proposals_are_refused_with_a_reason(proposal, reason) -> None:
    jobs = (submitted("1"), submitted("2", 5))
    session = begun(Proposes(proposal), strict=False)
    assert say(session, 0, *jobs) == ()
    ((date, _, told),) = session.ledger.refusals
    assert (date, reason in told) == (0, True)
    with pytest.raises(PolicyError, match=reason):
        say(begun(Proposes(proposal)), 0, *jobs)


def test_two_attempts_never_get_the_same_node() -> None:
    both = Proposes(Start("w0!1", NodeSet.parse("0-1")), Start("w0!2", NodeSet.parse("1-2")))
    session = begun(both, strict=False)
    assert kinds(say(session, 0, submitted("1"), submitted("2"))) == ["ExecuteJob"]
    assert "node 1" in session.ledger.refusals[0][2]


def test_a_stop_of_what_does_not_run_is_refused() -> None:
    session = begun(Proposes(reactions=[Stop("w0!7", Cause.STOLEN)]), strict=False)
    assert say(session, 1, failed(1, "0")) == ()
    assert "not running" in session.ledger.refusals[0][2]


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (submitted("1", res=0), "res is 0"),
        (submitted("1", res="many"), "res is 'many'"),
        (submitted("1", walltime=-7), "walltime is -7"),
        (completed("8", 0, "0"), "but was not started"),
    ],
)
def test_nonsense_from_the_peer_names_the_job(event, told) -> None:
    with pytest.raises(InputError, match=told) as error:
        say(begun(preset("baseline").make()), 0, event)
    assert "job w0!" in str(error.value)


def test_time_never_goes_back() -> None:
    session = begun(preset("baseline").make())
    say(session, 5)
    with pytest.raises(InputError, match="follows one at 5"):
        say(session, 4)


def test_the_view_is_read_only() -> None:
    session = begun(preset("baseline").make())
    with pytest.raises(TypeError):
        session.queue["w0!1"] = None
    with pytest.raises(TypeError):
        session.running["w0!1"] = None


@pytest.mark.parametrize("placement", ["any", "named"])
def test_a_job_told_to_end_late_delays_the_reservation_behind_it(placement) -> None:
    """On a platform with latency, a completion is reported slightly after the walltime."""
    session = begun(preset(f"baseline:placement={placement}").make())
    say(session, 0, submitted("1", 4, walltime=10), submitted("2", 4))
    # Job 3 arrives between the planned end of job 1 and its completion. Nothing starts.
    assert say(session, 10.000005, submitted("3", 1, at=10_000_005)) == ()
    late = say(session, 10.00002, completed("1", 10.00002, "0-3", "COMPLETED_WALLTIME_REACHED"))
    assert kinds(late) == ["ExecuteJob"]
    assert late[0].job_id == "w0!2"


@pytest.mark.parametrize(("passes", "decided"), [("one", []), ("two", ["ExecuteJob"])])
def test_the_program_plans_while_what_is_killed_still_holds_its_nodes(passes, decided) -> None:
    """Job 3 waits for job 2, which needs the entire machine. Without node 0, job 3 can start
    first."""
    session = Session(preset("baseline").make(), preset(f"baseline:passes={passes}").session)
    config = {"dynamic-jobs-enabled": True}
    say(session, 0, e.SimulationBegan(
        at_us=0, n_nodes=4, config=config, profiles=PROFILES, workloads={},
    ))  # fmt: skip
    say(session, 0, submitted("1", 3), submitted("2", 4), submitted("3", 1, walltime=90))
    assert kinds(say(session, 5, failed(5, "0"))) == ["KillJobs", *decided]


COMPOSED = {"w0": {"d": {"type": "composed", "seq": ["p"]}, "p": {"type": "delay", "delay": 20}}}


def begun_composed(policy=None, strict: bool = True, **config: bool) -> Session:
    session = Session(policy or preset("baseline").make(), SessionOptions(strict=strict))
    config = {"dynamic-jobs-enabled": True} | config
    say(session, 0, e.SimulationBegan(
        at_us=0, n_nodes=4, config=config, profiles=COMPOSED, workloads={},
    ))  # fmt: skip
    say(session, 0, submitted("1"))
    return session


def test_a_composed_profile_is_resubmitted_under_the_name_that_batsim_loaded() -> None:
    """Batsim 4.2.1 accepts the registration of a composed profile, but crashes when a job runs
    it."""
    session = begun_composed(**{"profile-reuse-enabled": True})
    say(session, 5, failed(5, "1"))
    again = say(session, 5, completed("1", 5, "0-1", "COMPLETED_KILLED"), killed(5, "1"))
    assert kinds(again) == ["RegisterJob", "ExecuteJob"]
    assert again[0].job["profile"] == "d"


def test_a_composed_profile_that_batsim_forgets_is_an_error_before_its_job_is_killed() -> None:
    session = begun_composed()
    with pytest.raises(InputError, match=r"w0!1: .*composed profile d .*--enable-profile-reuse"):
        say(session, 5, failed(5, "1"))


def test_of_several_that_were_hit_each_must_be_able_to_run_again() -> None:
    session = begun_composed()
    say(session, 1, submitted("2", at=to_us(1), profile="p"))
    with pytest.raises(InputError, match=r"job w0!1: must run again"):
        say(session, 5, failed(5, "2"), failed(5, "1"))


def test_a_policys_own_stop_of_what_batsim_forgets_is_refused() -> None:
    """The job continues to run. If it were stopped, it could not run again."""
    policy = Proposes(Start("w0!1"))
    session = begun_composed(policy, strict=False)
    policy.reactions = [Stop("w0!1", Cause.PREEMPTED)]
    assert say(session, 5, tick(5)) == ()
    reason = (
        "cannot be stopped, because its job could not continue: "
        "Batsim has deleted its composed profile d"
    )
    assert session.ledger.refusals == [(to_us(5), "w0!1", reason)]


def test_what_runs_again_must_have_a_known_profile() -> None:
    session = begun(preset("baseline").make())
    say(session, 0, submitted("1", profile="nobody's"))
    with pytest.raises(InputError, match=r"w0!1: unknown profile \"nobody's\""):
        say(session, 5, failed(5, "1"))


def test_what_is_stopped_in_the_message_of_its_start_is_killed_after_it() -> None:
    """Batsim aborts on the kill of a job that has not started."""
    policy = Proposes()
    session = begun(policy)
    policy.reactions = [Start("w0!1"), Stop("w0!1", Cause.PREEMPTED)]
    assert kinds(say(session, 0, submitted("1"))) == ["ExecuteJob", "KillJobs"]
    again = say(session, 0, completed("1", 0, "0-1", "COMPLETED_KILLED"), killed(0, "1"))
    assert kinds(again) == ["RegisterProfile", "RegisterJob"]
    assert [*session.queue] == ["w0!1#1"]


@pytest.mark.parametrize("policy", sorted(PRESETS.keys() - {"priorities"}))  # needs all nodes
def test_a_node_repaired_and_failed_again_at_one_date_is_down(policy) -> None:
    """Batsim reports the repair first. No job may start on the node."""
    session = begun(on_ring(policy, 2).make(), n_nodes=2)
    say(session, 0, submitted("1"))
    say(session, 1, failed(1, "0"))
    say(session, 1, completed("1", 1, "0-1", "COMPLETED_KILLED"), killed(1, "1"))
    assert say(session, 4, repaired(4, "0"), failed(4, "0")) == ()
    assert kinds(say(session, 30, repaired(30, "0"))) == ["ExecuteJob"]


@pytest.mark.parametrize("most", [1, 3])
def test_a_job_that_failures_interrupt_too_often_ends_as_failed(most: int) -> None:
    """The nodes of job 1 fail repeatedly. Job 2 runs afterwards."""
    options = SessionOptions(max_attempts=most)
    session = begun(preset("baseline").make(), options=options)
    say(session, 0, submitted("1", res=4), submitted("2", res=4))
    for attempt in range(most):
        name, at_s = f"1#{attempt}" if attempt else "1", 1 + 2 * attempt
        say(session, at_s, failed(at_s, "0"))
        over = completed(name, at_s, "0-3", "COMPLETED_KILLED"), killed(at_s, name)
        assert kinds(say(session, at_s, *over)) == (
            ["RegisterProfile", "RegisterJob"] if attempt < most - 1 else []
        )
        started = say(session, at_s + 1, repaired(at_s + 1, "0"))
    assert [d.job_id for d in started] == ["w0!2"]
    assert session.ledger.given_up == ["w0!1"]
    assert [*session.running] == ["w0!2"]


def test_a_message_without_news_changes_nothing() -> None:
    """The policy neither reacts nor plans at messages without news."""
    policy = Proposes(Start("w0!1", NodeSet.parse("0-1")))
    session = begun(policy)
    say(session, 0, submitted("1"))
    policy.reactions = [Stop("w0!1", Cause.PREEMPTED)]
    for nothing in ((), (e.CallRequested(at_us=to_us(5)),)):
        assert say(session, 5, *nothing) == ()
    assert kinds(say(session, 5, tick(5))) == ["KillJobs"]


class Holds(Policy):
    """A policy that starts jobs on nodes 1 to 3. Failed jobs wait for five seconds."""

    def plan(self, view, changes):
        return [Start(attempt.id, NodeSet.parse("1-3")) for attempt in changes.arrived]

    def react(self, view, news):
        then = Wait(until_us=view.now_us + to_us(5))
        return [Stop(r.attempt.id, Cause.NODE_FAILURE, then=then) for r in news.hit]


@pytest.mark.parametrize(("lowest", "expected"), [(False, "2-3"), (True, "0 2")])
def test_which_nodes_are_held_is_an_option(lowest: bool, expected: str) -> None:
    """The job ran on nodes 1-3 and lost node 1. Node 0 is free."""
    session = Session(
        Holds(), SessionOptions(dialect=Dialect(held="lowest" if lowest else "surviving"))
    )
    config = {"dynamic-jobs-enabled": True}
    say(session, 0, e.SimulationBegan(
        at_us=0, n_nodes=4, config=config, profiles=PROFILES, workloads={},
    ))  # fmt: skip
    say(session, 0, submitted("1", 3))
    say(session, 5, failed(5, "1"))
    told = say(session, 5, completed("1", 5, "1-3", "COMPLETED_KILLED"), killed(5, "1"))
    assert [(d.when_us, str(session.view.waiting["w0!1"].held.nodes)) for d in told] == [
        (to_us(10), expected)
    ]
    assert kinds(say(session, 10)) == ["RegisterProfile", "RegisterJob"]
    assert session.view.n_free == 3


def test_a_move_whose_target_fails_after_the_kill_was_sent_goes_back_to_the_queue() -> None:
    policy = Proposes(Start("w0!1", NodeSet.parse("0-1")))
    session = begun(policy)
    say(session, 0, submitted("1"))
    policy.reactions = [Stop("w0!1", Cause.MOVED, then=Move(NodeSet.parse("2-3")))]
    assert kinds(say(session, 5, tick(5))) == ["KillJobs"]
    acknowledged = completed("1", 5, "0-1", "COMPLETED_KILLED"), killed(5, "1")
    assert kinds(say(session, 5, failed(5, "3"), *acknowledged)) == [
        "RegisterProfile", "RegisterJob",
    ]  # fmt: skip
    assert [*session.queue] == ["w0!1#1"]
    assert session.ledger.refusals == [
        (to_us(5), "w0!1", "cannot complete its move: node 3 is not up and free")
    ]
    assert session.view.n_free == 3


def test_what_is_over_is_let_go_and_cannot_come_again() -> None:
    session = begun(preset("greedy").make())
    say(session, 0, submitted("1"))
    assert session.view.job("w0!1").n_nodes == 2
    say(session, 5, completed("1", 5, "0-1"))
    with pytest.raises(KeyError):
        session.view.job("w0!1")
    with pytest.raises(InputError, match="already submitted"):
        say(session, 6, submitted("1", at=6))


class Asks(Policy):
    """A policy that reacts with these proposals and stores the answers."""

    def __init__(self, *proposals) -> None:
        self.proposals, self.answers = [*proposals], []

    def react(self, view, news):
        self.answers += news.answers
        while self.proposals:
            yield self.proposals.pop()

    def plan(self, view, changes):
        return ()


def test_a_reaction_learns_what_became_of_its_proposals() -> None:
    good, bad = Wake(to_us(9), "later"), Stop("w0!none", Cause.STOLEN)
    policy = Asks(good, bad)
    session = begun(policy, strict=False)
    assert policy.answers == []
    say(session, 1, tick(1))
    reason = "cannot be stopped: it is not running"
    assert policy.answers == [Answer(bad, Refusal("w0!none", reason)), Answer(good)]


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (
            lambda session: session.jobs.queue.update(session.jobs.running),
            "is queued and running",
        ),
        (
            lambda session: session.state.owner.put(0, -1),
            "node 0 has the wrong tag -1",
        ),
        (lambda session: session.state.failed.put(1, True), "nodes are free, not"),
    ],
)
def test_a_session_that_cannot_be_is_seen(damage, expected: str) -> None:
    session = begun(preset("baseline").make())
    say(session, 0, submitted("1"))
    damage(session)
    with pytest.raises(BrokenInvariant, match=expected):
        session.validate()
