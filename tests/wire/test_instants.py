# SPDX-License-Identifier: Apache-2.0
"""After a node event, decisions are made when all messages of the same time have arrived."""

from __future__ import annotations

import json

import msgspec
import pytest

from rebat.core import events as e
from rebat.core.decisions import FinishRegistration, RegisterJob, RejectJob, Reply
from rebat.core.errors import BatsimAbort
from rebat.core.events import Message
from rebat.core.nodes import NodeSet
from rebat.wire.conversation import Conversation, session_for
from rebat.wire.instants import WholeInstants
from tests.support.coincidences import Case, schedule, session
from tests.support.recordings import DATA

NODE = NodeSet.of([0])
REPAIR = e.NodesRejuvenated(at_us=5, nodes=NODE)
FAILURE = e.NodesFailed(at_us=5, nodes=NODE)


def begins(dynamic: bool = True, acknowledged: bool = True) -> Message:
    config = {"dynamic-jobs-enabled": dynamic, "dynamic-jobs-acknowledged": acknowledged}
    return Message(0, (e.SimulationBegan(
        at_us=0, n_nodes=2, config=config, profiles={}, workloads={},
    ),))  # fmt: skip


def acknowledgement(number: int = 1) -> e.Event:
    return e.JobSubmitted(
        at_us=5, job_id=f"rebat!instant-{number}", job={"id": f"rebat!instant-{number}"}
    )


class Session:
    """A session that records messages and answers each with the same decisions."""

    def __init__(self, *decisions) -> None:
        self.heard: list[Message] = []
        self.decisions = decisions

    def handle(self, message: Message) -> Reply:
        self.heard.append(message)
        return Reply(message.now_us, self.decisions)


OTHER = e.NodesFailed(at_us=5, nodes=NodeSet.of([1]))
DRAIN = e.Notified(at_us=5, kind="drain", data={"type": "drain", "nodes": "1"})


def kinds(reply: Reply) -> list[str]:
    return [type(decision).__name__ for decision in reply.decisions]


PROBE, REJECTION = ["RegisterProfile", "RegisterJob"], ["RejectJob"]


@pytest.mark.parametrize("first", [FAILURE, DRAIN])
def test_events_of_a_file_are_held_until_the_probe_is_answered(first) -> None:
    session = Session()
    instants = WholeInstants(session.handle)
    instants(begins())
    assert kinds(instants(Message(5, (first,)))) == PROBE
    answered = instants(Message(5, (acknowledgement(),)))
    assert answered.decisions == (RejectJob(at_us=5, job_id="rebat!instant-1"),)
    assert session.heard[1:] == [Message(5, (first,))]


def test_further_events_need_another_probe() -> None:
    """A rack of three nodes, in a message per node: the answer comes with the second node."""
    session = Session()
    instants = WholeInstants(session.handle)
    instants(begins())
    third = e.NodesFailed(at_us=5, nodes=NodeSet.of([2]))
    assert kinds(instants(Message(5, (FAILURE,)))) == PROBE
    assert kinds(instants(Message(5, (OTHER, acknowledgement())))) == REJECTION + PROBE
    assert instants(Message(5, (third,))) == Reply(5)
    assert kinds(instants(Message(5, (acknowledgement(2),)))) == REJECTION + PROBE
    assert session.heard[1:] == []
    assert kinds(instants(Message(5, (acknowledgement(3),)))) == REJECTION
    assert session.heard[1:] == [Message(5, (FAILURE, OTHER, third))]
    assert instants.n_probes == 3


def test_the_answer_must_arrive_alone() -> None:
    session = Session()
    instants = WholeInstants(session.handle)
    instants(begins())
    end = e.JobCompleted(
        at_us=5, job_id="w0!1", state="COMPLETED_SUCCESSFULLY", return_code=0, nodes=NODE
    )
    assert kinds(instants(Message(5, (FAILURE,)))) == PROBE
    assert kinds(instants(Message(5, (acknowledgement(), end)))) == REJECTION + PROBE
    assert kinds(instants(Message(5, (acknowledgement(2),)))) == REJECTION
    assert session.heard[1:] == [Message(5, (FAILURE, end))]


@pytest.mark.parametrize("protocol", [4, 5])
def test_an_answer_at_a_later_time_ends_the_instant(protocol) -> None:
    """On a platform with latency, each probe delays the decisions. A new instant needs a probe."""
    session = Session()
    instants = WholeInstants(session.handle, protocol=protocol)
    instants(begins())
    answer = [acknowledgement, call][protocol - 4]
    answers = (lambda n: (answer(n),)) if protocol == 4 else (lambda n: (answer(n), answer(n)))
    end, over = e.NoMoreStaticJobs(at_us=6), e.NoMoreExternalEvents(at_us=8)
    later = msgspec.structs.replace(OTHER, at_us=7)
    instants(Message(5, (FAILURE,)))
    probe, rejection = (PROBE, REJECTION) if protocol == 4 else (["CallMeLater"] * 2, [])
    assert kinds(instants(Message(6, (*answers(1), end)))) == rejection
    assert kinds(instants(Message(7, (later,)))) == probe
    assert kinds(instants(Message(8, (*answers(2), REPAIR)))) == rejection + probe
    assert kinds(instants(Message(9, (*answers(3), over)))) == rejection
    assert session.heard[1:] == [Message(6, (FAILURE, end)), Message(9, (REPAIR, later, over))]


def test_the_beginning_is_heard_alone() -> None:
    session = Session(RejectJob(at_us=0, job_id="w0!1"))
    instants = WholeInstants(session.handle, protocol=5)
    (began,) = begins().events
    job = e.JobSubmitted(at_us=0, job_id="w0!1", job={"id": "w0!1"})
    assert len(instants(Message(0, (began, job))).decisions) == 2
    assert session.heard == [Message(0, (began,)), Message(0, (job,))]


def call(number: int = 1) -> e.Event:
    return e.CallRequested(at_us=5, name=f"rebat!instant-{number}")


def test_the_probe_of_batsim_5_is_two_calls() -> None:
    session = Session()
    instants = WholeInstants(session.handle, protocol=5)
    instants(begins(dynamic=False, acknowledged=False))
    asked = instants(Message(1234, (FAILURE,))).decisions
    assert [decision.when_us for decision in asked] == [0, 0]
    assert instants(Message(1234, (OTHER, call()))) == Reply(1234)
    assert kinds(instants(Message(1234, (call(),)))) == ["CallMeLater"] * 2
    assert instants(Message(1234, (call(2), call(2)))) == Reply(1234)
    assert session.heard[1:] == [Message(1234, (FAILURE, OTHER))]


@pytest.mark.parametrize(
    ("now_us", "asked_us"), [(0, 0), (999, 0), (1000, 0), (110_000_000, 109_999_000)]
)
def test_the_calls_of_a_probe_are_in_the_past_of_a_clock_that_is_slightly_early(
    now_us, asked_us
) -> None:
    """Batsim 5 waits at least 10 us for a call that its clock has not reached: 110 - 1e-14 s."""
    instants = WholeInstants(Session().handle, protocol=5)
    instants(begins())
    asked = instants(Message(now_us, (FAILURE,))).decisions
    assert [decision.when_us for decision in asked] == [asked_us, asked_us]


def failure_of(line: str, node: int) -> e.Event:
    return e.NodesFailed(at_us=5, line=line, nodes=NodeSet.of([node]))


def test_failures_of_an_instant_have_the_order_of_their_lines() -> None:
    """Lines are numbers: 10 follows 9. Events of other kinds keep their places."""
    session = Session()
    instants = WholeInstants(session.handle, protocol=5)
    instants(begins())
    tenth, ninth, other = map(failure_of, ("ee0!10", "ee0!9", "ee1!0"), (3, 2, 1))
    end = e.NoMoreExternalEvents(at_us=5)
    instants(Message(5, (other, tenth)))
    instants(Message(5, (end, ninth, call(), call())))
    instants(Message(5, (call(2), call(2))))
    assert session.heard[1:] == [Message(5, (ninth, tenth, end, other))]


def submitted(name: str, at_us: int, subtime: float) -> Message:
    fields = {"id": name, "subtime": subtime, "res": 1, "profile": "d"}
    return Message(at_us, (e.JobSubmitted(at_us=at_us, job_id=name, job=fields),))


@pytest.mark.parametrize("protocol", [4, 5])
def test_submissions_of_a_fractional_time_are_held(protocol) -> None:
    """Batsim reports two jobs of 0.045 s in two messages: its clock is slightly early."""
    session = Session()
    instants = WholeInstants(session.handle, protocol=protocol)
    instants(begins())
    first, second = submitted("w0!19", 45_000, 0.045), submitted("w0!22", 45_000, 0.045)
    assert kinds(instants(first)) == (PROBE if protocol == 4 else ["CallMeLater"] * 2)
    answers = (acknowledgement(),) if protocol == 4 else (call(), call())
    instants(Message(45_000, (*second.events, *answers)))
    answers = (acknowledgement(2),) if protocol == 4 else (call(2), call(2))
    instants(Message(45_000, answers))
    assert session.heard[1:] == [Message(45_000, (*first.events, *second.events))]


def test_submissions_that_no_other_message_can_follow_are_forwarded() -> None:
    """Times are whole; the job is the last; the platform has latency; rebat registered it."""
    again = RegisterJob(at_us=1_500_000, job_id="w0!1#1", job={"id": "w0!1#1"})
    last = e.NoMoreStaticJobs(at_us=2_500_000)
    for message in (
        submitted("w0!1", 7_000_000, 7),
        Message(2_500_000, (*submitted("w0!1", 2_500_000, 2.5).events, last)),
        submitted("w0!1", 2_500_015, 2.5),
        submitted("w0!1#1", 1_500_000, 1.5),
    ):
        session = Session(again)
        instants = WholeInstants(session.handle)
        instants(begins())
        instants(message)
        assert session.heard[1:] == [message]
        assert instants.n_probes == 0


@pytest.mark.parametrize(
    ("reported", "order"),
    [
        ((FAILURE, REPAIR), (REPAIR, FAILURE)),
        ((REPAIR, FAILURE), (REPAIR, FAILURE)),
        ((FAILURE, OTHER, REPAIR), (REPAIR, FAILURE, OTHER)),
        ((FAILURE, FAILURE, REPAIR), (REPAIR, FAILURE, FAILURE)),
    ],
)
def test_failures_and_repairs_of_a_node_alternate(reported, order) -> None:
    """Batsim 5 reported the failure of a node before its repair at the same time, in two messages.

    As in Batsim 4, all repairs come before the failures, which keep the reported order.

    What is impossible in any order stays in the instant, and the session reports an error.
    """
    session = Session()
    instants = WholeInstants(session.handle, protocol=5)
    instants(begins())
    instants(Message(3, (msgspec.structs.replace(FAILURE, at_us=3),)))
    instants(Message(3, (call(), call())))
    for event in reported:
        instants(Message(5, (event,)))
    instants(Message(5, (call(2), call(2))))
    instants(Message(5, (call(3), call(3))))
    assert session.heard[2:] == [Message(5, order)]


@pytest.mark.parametrize("reported", [(FAILURE, REPAIR), (REPAIR, FAILURE)])
def test_an_outage_without_length_begins_with_the_failure(reported) -> None:
    session = Session()
    instants = WholeInstants(session.handle, protocol=5, probes=False)
    instants(begins())
    instants(Message(5, reported))
    assert session.heard[1:] == [Message(5, (FAILURE, REPAIR))]


@pytest.mark.parametrize("flags", [(False, True), (True, False)])
def test_without_acknowledgements_messages_pass(flags: tuple[bool, bool]) -> None:
    session = Session()
    instants = WholeInstants(session.handle)
    instants(begins(*flags))
    instants(Message(5, (REPAIR,)))
    assert session.heard[1:] == [Message(5, (REPAIR,))]


def test_nothing_is_registered_after_the_registration_finished() -> None:
    session = Session(FinishRegistration(at_us=0))
    instants = WholeInstants(session.handle)
    instants(begins())
    instants(Message(5, (REPAIR,)))
    assert session.heard[1:] == [Message(5, (REPAIR,))]


def test_the_end_of_the_simulation_is_heard() -> None:
    session = Session()
    instants = WholeInstants(session.handle)
    instants(begins())
    instants(Message(5, (FAILURE,)))
    end = e.SimulationEnded(at_us=5)
    instants(Message(5, (end,)))
    assert session.heard[1:] == [Message(5, (FAILURE, end))]


def test_without_probes_messages_pass() -> None:
    session = Session()
    instants = WholeInstants(session.handle, probes=False)
    instants(begins())
    instants(Message(5, (FAILURE,)))
    assert session.heard[1:] == [Message(5, (FAILURE,))]


@pytest.mark.parametrize("probes", [False, True])
@pytest.mark.parametrize(
    ("case", "policy", "at", "other"),
    [
        ("repair-fail-tie", "baseline", 54490.21, "0"),
        ("two-failures-abort", "easy", 0.9, "1"),
    ],
)
def test_where_the_real_batsim_aborted_nothing_starts(probes, case, policy, at, other) -> None:
    """Batsim reports a node event, and aborts if a job starts before it reports the next."""
    lines = [json.loads(line) for line in (DATA / f"real-batsim/{case}/talk.jsonl").open()]
    conversation = Conversation(lambda _, began: session_for(policy, {}, began), probes=probes)
    said = [line["raw"].encode() for line in lines if line["dir"] == "batsim->sched"]
    replies, n_probes = [], 0
    for raw in said:
        reply = json.loads(conversation.answer(raw))
        if conversation.n_probes > n_probes and raw != said[-1]:
            n_probes = conversation.n_probes
            reply = json.loads(conversation.answer(answer_of(n_probes, reply["now"])))
        replies.append(reply)
    kinds = [event["type"] for event in replies[-1]["events"]]
    assert kinds == (["REGISTER_PROFILE", "REGISTER_JOB"] if probes else ["EXECUTE_JOB"])
    if probes:
        failure = {"type": "event_machine_unavailable", "resources": other}
        failed = {"timestamp": at, "type": "NOTIFY", "data": failure}
        reply = json.loads(conversation.answer(answer_of(n_probes + 1, at, failed)))
        assert [event["type"] for event in reply["events"]] == [
            "REJECT_JOB", "REGISTER_PROFILE", "REGISTER_JOB",
        ]  # fmt: skip
        reply = json.loads(conversation.answer(answer_of(n_probes + 2, at)))
        rejection, *starts = reply["events"]
        assert rejection["type"] == "REJECT_JOB"
        assert [start["data"]["alloc"] for start in starts] == ["2"] * (case[:3] == "two")


def answer_of(number: int, at: float, *events: dict) -> bytes:
    """Return Batsim's answer to a probe, after other events."""
    job = {"id": f"rebat!instant-{number}", "res": 1, "subtime": 0}
    asked = {"timestamp": at, "type": "JOB_SUBMITTED", "data": {"job_id": job["id"], "job": job}}
    return json.dumps({"now": at, "events": [*events, asked]}).encode()


def test_without_probes_random_cases_abort() -> None:
    """This shows that the random tests can fail."""
    aborts = 0
    for seed in range(40):
        case = Case(seed)
        try:
            schedule(case, session(case), split_failures=True)
        except BatsimAbort:
            aborts += 1
    assert aborts > 5
