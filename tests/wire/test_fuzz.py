"""Whatever a peer says, the server neither crashes nor decides what Batsim would abort on."""

from __future__ import annotations

import json
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from rebat.core.errors import InputError
from rebat.wire.batsim4 import decode_reply
from rebat.wire.conversation import Conversation, session_for
from tests.recordings import folder_of

BEGIN = {
    "now": 0.0,
    "events": [{"timestamp": 0.0, "type": "SIMULATION_BEGINS", "data": {
        "nb_resources": 4, "nb_compute_resources": 4, "config": {"dynamic-jobs-enabled": True},
        "profiles": {"w0": {"d": {"type": "delay", "delay": 10}}}, "workloads": {},
    }}],
}  # fmt: skip

TYPES = [
    "SIMULATION_BEGINS", "JOB_SUBMITTED", "JOB_COMPLETED", "JOB_KILLED", "NOTIFY",
    "REQUESTED_CALL", "SIMULATION_ENDS", "ECLIPSE",
]  # fmt: skip
IDS = st.sampled_from(["w0!1", "w0!2", "w0!3", "w0!1#1", "x", ""])
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=5,
)
DATA = st.fixed_dictionaries(
    {},
    optional={
        "job_id": IDS | JUNK,
        "job": st.fixed_dictionaries(
            {},
            optional={
                "id": IDS,
                "res": st.integers(-1, 6) | JUNK,
                "walltime": st.integers(-2, 50) | JUNK,
                "subtime": st.integers(0, 9) | JUNK,
                "profile": st.just("d") | JUNK,
            },
        )
        | JUNK,
        "job_state": st.sampled_from(["COMPLETED_SUCCESSFULLY", "COMPLETED_KILLED"]) | JUNK,
        "return_code": JUNK,
        "alloc": st.sampled_from(["0", "0-3", "1-2", "9", "3-1"]) | JUNK,
        "job_ids": st.lists(IDS, max_size=3) | JUNK,
        "job_progress": st.dictionaries(IDS, JUNK, max_size=2) | JUNK,
        "type": st.sampled_from(
            ["no_more_static_job_to_submit", "event_machine_unavailable",
             "event_machine_available", "no_more_external_event_to_occur", "x"]
        )
        | JUNK,
        "resources": st.sampled_from(["0", "0-3", "2", "7", "1 3", "99999999"]) | JUNK,
        "profile": JUNK,
        "nb_compute_resources": JUNK,
    },
)  # fmt: skip
EVENT = st.fixed_dictionaries(
    {
        "timestamp": st.integers(0, 60) | JUNK,
        "type": st.sampled_from(TYPES) | JUNK,
        "data": DATA | JUNK,
    }
)
MESSAGE = st.fixed_dictionaries({"now": st.integers(0, 60), "events": st.lists(EVENT, max_size=4)})
TALK = st.lists(MESSAGE, min_size=1, max_size=12)


class Batsim:
    """What a Batsim would check of each reply; it follows what the peer itself has said."""

    def __init__(self) -> None:
        self.known: set[str] = set()

    def check(self, reply: bytes) -> None:
        for decision in decode_reply(reply).decisions:
            assert decision.at_us <= decode_reply(reply).now_us


def talk(messages: list[bytes]) -> int:
    """Say these to a server until it refuses one; gives how many it answered."""
    conversation = Conversation(lambda _: session_for("sfsj", {}))
    conversation.answer(json.dumps(BEGIN).encode())
    answered = 0
    for data in messages:
        try:
            reply = conversation.answer(data)
        except InputError:
            return answered
        Batsim().check(reply)
        check_truth(conversation)
        answered += 1
    return answered


def check_truth(conversation: Conversation) -> None:
    """After any message: no node runs two attempts, and none that is dead was started on."""
    session = conversation.session
    assert session is not None
    seen: set[int] = set()
    for running in session.running.values():
        nodes = set(running.nodes)
        assert len(nodes) == running.attempt.n_nodes
        assert not nodes & seen
        seen |= nodes
    assert not set(session.running) & set(session.queue)


@settings(max_examples=1500, deadline=None)
@given(TALK)
def test_made_up_messages(messages) -> None:
    talk([json.dumps(message).encode() for message in messages])


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_bytes(data: bytes) -> None:
    talk([data])


def mutated(raw: bytes, rng: random.Random) -> bytes:
    """A recorded message with a few bytes, numbers or words changed."""
    data = bytearray(raw)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data))
        choice = rng.randrange(4)
        if choice == 0:
            data[at] = rng.randrange(256)
        elif choice == 1:
            del data[at : at + rng.randint(1, 8)]
        elif choice == 2:
            data[at:at] = rng.choice([b"0", b"-", b"9e9", b'"', b"{", b"null", b",", b"w0!1"])
        else:
            other = rng.randrange(len(data))
            data[at : at + 6] = data[other : other + 6]
        if not data:
            return b""
    return bytes(data)


def test_ten_thousand_mutated_recorded_messages() -> None:
    rng = random.Random(20)
    recorded = []
    for name in ("dyn_full", "dyn_requeue", "kill_basic", "ties_701_sfsj", "ties_703_h322"):
        path = folder_of(name) / f"{name}.jsonl"
        lines = [json.loads(line) for line in path.open()]
        recorded.append([x["raw"].encode() for x in lines if x["dir"] == "batsim->sched"])
    said = 0
    while said < 10_000:
        messages = rng.choice(recorded)
        conversation = Conversation(lambda _: session_for("sfsj", {}))
        for raw in messages:
            said += 1
            data = mutated(raw, rng) if rng.random() < 0.5 else raw
            try:
                Batsim().check(conversation.answer(data))
            except InputError:
                break
