# SPDX-License-Identifier: Apache-2.0
"""For any messages the server does not crash, and makes no decision that would abort Batsim."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebat.core import decisions as d
from rebat.core import events as e
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.wire.batsim4 import decode_message, decode_reply
from rebat.wire.conversation import Conversation, session_for
from tests.support.amount import few
from tests.support.recordings import folder_of

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


def drawn(data: st.DataObject, message: st.SearchStrategy, most: int) -> Iterator[bytes]:
    """Yield up to ``most`` messages; none is drawn after the reader stops at a refused one."""
    for _ in range(data.draw(st.integers(1, most))):
        yield json.dumps(data.draw(message)).encode()


class Shadow:
    """A model of Batsim from its messages; it fails on decisions on which Batsim would abort."""

    def __init__(self) -> None:
        self.n_nodes, self.now_us = 0, 0
        self.sizes: dict[str, int] = {}
        self.profiles: set[tuple[str, str]] = set()
        self.running: dict[str, frozenset[int]] = {}
        self.started: set[str] = set()
        self.down: set[int] = set()

    def hear(self, data: bytes) -> None:
        """Update the state with a message of Batsim."""
        message = decode_message(data)
        self.now_us = message.now_us
        for event in message.events:
            if isinstance(event, e.SimulationBegan):
                self.n_nodes = event.n_nodes
                self.profiles = {(w, name) for w, table in event.profiles.items() for name in table}
            elif isinstance(event, e.JobSubmitted) and event.job_id not in self.sizes:
                self.sizes[event.job_id] = event.job["res"]
            elif isinstance(event, e.JobCompleted):
                self.running.pop(event.job_id, None)
            elif isinstance(event, e.NodesFailed):
                self.down |= set(event.nodes)
            elif isinstance(event, e.NodesRejuvenated):
                self.down -= set(event.nodes)

    def check(self, reply: bytes) -> None:
        """Execute a reply as Batsim would."""
        decoded = decode_reply(reply)
        for decision in decoded.decisions:
            assert self.now_us <= decision.at_us <= decoded.now_us
            self.carry_out(decision)

    def carry_out(self, decision: d.Decision) -> None:
        if isinstance(decision, d.ExecuteJob):
            name, nodes = decision.job_id, frozenset(decision.nodes)
            assert name in self.sizes and name not in self.started, "not submitted, or started"
            assert len(nodes) == self.sizes[name]
            assert all(node < self.n_nodes for node in nodes)
            assert not nodes & self.down, "started on a dead node"
            assert not any(nodes & others for others in self.running.values()), "a busy node"
            self.running[name] = nodes
            self.started.add(name)
        elif isinstance(decision, d.KillJobs):
            assert set(decision.job_ids) <= set(self.running), "killed what does not run"
        elif isinstance(decision, d.RegisterProfile):
            key = decision.workload, decision.name
            assert key not in self.profiles
            self.profiles.add(key)
        elif isinstance(decision, d.RegisterJob):
            assert decision.job_id not in self.sizes
            workload = decision.job_id.partition("!")[0]
            assert (workload, decision.job["profile"]) in self.profiles
            assert decision.job.get("walltime", 1) > 0
            self.sizes[decision.job_id] = decision.job["res"]
        elif isinstance(decision, d.RejectJob):
            assert decision.job_id in self.sizes and decision.job_id not in self.started
        elif isinstance(decision, d.CallMeLater):
            assert decision.when_us > self.now_us


def talk(messages: Iterable[bytes], policy: str = "sfsj") -> int:
    """Send messages to a server until it refuses one; return the number of answered messages."""
    conversation = Conversation(lambda _, began: session_for(policy, {}, began))
    shadow, answered = Shadow(), 0
    for data in messages:
        try:
            reply = conversation.answer(data)
        except InputError:
            return answered
        shadow.hear(data)
        shadow.check(reply)
        answered += 1
    return answered


BEGUN = json.dumps(BEGIN).encode()


@settings(max_examples=few(600))
@given(st.data())
def test_made_up_messages(data) -> None:
    talk(chain([BEGUN], drawn(data, MESSAGE, 12)))


@settings(max_examples=few(300))
@given(st.binary(max_size=200))
def test_bytes(data: bytes) -> None:
    talk([BEGUN, data])


def mutated(raw: bytes, rng: random.Random) -> bytes:
    """Return a recorded message with a few bytes, numbers or words changed."""
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
    said = answered = 0
    while said < 10_000:
        messages = rng.choice(recorded)
        changed = [mutated(raw, rng) if rng.random() < 0.1 else raw for raw in messages]
        said += len(changed)
        answered += talk(changed, rng.choice(["sfsj", "h322", "authors-h111", "easy-sfsj"]))
    assert answered > 1_000


def test_the_shadow_knows_a_dead_node_and_a_busy_one() -> None:
    """A server that starts jobs on dead or busy nodes would fail."""
    job = {"id": "w0!1", "res": 1, "profile": "d", "walltime": 9}
    say = [
        {"type": "JOB_SUBMITTED", "data": {"job_id": "w0!1", "job": job}},
        {"type": "JOB_SUBMITTED", "data": {"job_id": "w0!2", "job": job | {"id": "w0!2"}}},
        {"type": "NOTIFY", "data": {"type": "event_machine_unavailable", "resources": "0"}},
    ]
    shadow = Shadow()
    shadow.hear(BEGUN)
    events = [{"timestamp": 0, **event} for event in say]
    shadow.hear(json.dumps({"now": 0, "events": events}).encode())
    start = d.ExecuteJob(at_us=0, job_id="w0!1", nodes=NodeSet.parse("1"))
    shadow.carry_out(start)
    for name, nodes, told in (("w0!2", "0", "dead"), ("w0!2", "1", "busy"), ("w0!1", "2", "not")):
        with pytest.raises(AssertionError, match=told):
            shadow.carry_out(d.ExecuteJob(at_us=0, job_id=name, nodes=NodeSet.parse(nodes)))
