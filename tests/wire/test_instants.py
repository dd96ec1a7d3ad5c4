# SPDX-License-Identifier: Apache-2.0
"""After a repair, decisions are made when all messages of the same time have arrived."""

from __future__ import annotations

import json
import random

import pytest

from rebat.core import events as e
from rebat.core.decisions import FinishRegistration, RegisterJob, RegisterProfile, RejectJob, Reply
from rebat.core.events import Message
from rebat.core.nodes import NodeSet
from rebat.engine.aborts import Abort
from rebat.library.policy_check.noise import Noise
from rebat.wire.conversation import Conversation, session_for
from rebat.wire.instants import WholeInstants
from tests.coincidences import Case, schedule, session
from tests.recordings import DATA

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


def test_a_repair_and_a_failure_in_two_messages_are_heard_as_one() -> None:
    session = Session()
    instants = WholeInstants(session.handle)
    instants(begins())
    asked = instants(Message(5, (REPAIR,)))
    assert [type(decision) for decision in asked.decisions] == [RegisterProfile, RegisterJob]
    assert instants(Message(5, (FAILURE,))) == Reply(5)
    answered = instants(Message(5, (acknowledgement(),)))
    assert answered.decisions == (RejectJob(at_us=5, job_id="rebat!instant-1"),)
    assert session.heard[1:] == [Message(5, (REPAIR, FAILURE))]


def test_the_acknowledgement_may_come_with_what_was_missing() -> None:
    session = Session()
    instants = WholeInstants(session.handle)
    instants(begins())
    instants(Message(5, (REPAIR,)))
    instants(Message(5, (FAILURE, acknowledgement())))
    assert session.heard[1:] == [Message(5, (REPAIR, FAILURE))]


def test_every_repair_has_an_acknowledgement_of_its_own() -> None:
    instants = WholeInstants(Session().handle)
    instants(begins())
    names = []
    for number in (1, 2):
        names += [d.job_id for d in instants(Message(5, (REPAIR,))).decisions[1:]]
        instants(Message(5, (acknowledgement(number),)))
    assert names == ["rebat!instant-1", "rebat!instant-2"]
    assert instants.n_probes == 2


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
    instants(Message(5, (REPAIR,)))
    end = e.SimulationEnded(at_us=5)
    instants(Message(5, (end,)))
    assert session.heard[1:] == [Message(5, (REPAIR, end))]


@pytest.mark.parametrize("whole", [False, True])
def test_where_the_real_batsim_aborted_nothing_starts(whole: bool) -> None:
    """The recorded Batsim reports only the repair of node 0, and aborts if a job starts on it."""
    lines = [json.loads(line) for line in (DATA / "real-batsim/repair-fail-tie/talk.jsonl").open()]
    conversation = Conversation(lambda _: session_for("baseline", {}), whole_instants=whole)
    said = [line["raw"].encode() for line in lines if line["dir"] == "batsim->sched"]
    replies = [json.loads(conversation.answer(raw)) for raw in said]
    kinds = [event["type"] for event in replies[-1]["events"]]
    assert kinds == (["REGISTER_PROFILE", "REGISTER_JOB"] if whole else ["EXECUTE_JOB"])
    if whole:
        again = {"timestamp": 54490.21, "type": "NOTIFY"}
        failed = again | {"data": {"type": "event_machine_unavailable", "resources": "0"}}
        asked = {"timestamp": 54490.21, "type": "JOB_SUBMITTED"}
        asked |= {
            "data": {
                "job_id": "rebat!instant-1",
                "job": {"id": "rebat!instant-1", "res": 1, "subtime": 0},
            }
        }
        message = {"now": 54490.21, "events": [failed, asked]}
        reply = json.loads(conversation.answer(json.dumps(message).encode()))
        assert [event["type"] for event in reply["events"]] == ["REJECT_JOB"]


def test_without_it_random_cases_abort() -> None:
    """This shows that the random tests can fail."""
    aborts = 0
    for seed in range(40):
        case = Case(seed)
        noise = Noise(session(case), random.Random(seed), apart=True)
        try:
            schedule(case, noise, acknowledged=False)
        except Abort:
            aborts += 1
    assert aborts > 5
