# SPDX-License-Identifier: Apache-2.0
"""The codec of Batsim 4, tested with all messages of a real Batsim and its schedulers."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.core import decisions as d
from rebat.core import events as e
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.wire.batsim4 import (
    DECISIONS,
    EVENTS,
    decode_message,
    decode_reply,
    encode_message,
    encode_reply,
)
from tests.support.recordings import conversations


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.open()]


def test_every_recorded_message_is_understood_and_said_again() -> None:
    count = 0
    for path in conversations():
        for line in lines(path):
            raw = line["raw"].encode()
            if line["dir"] == "batsim->sched":
                message = decode_message(raw)
                assert decode_message(encode_message(message)) == message
                others = {v.kind for v in message.events if isinstance(v, e.Notified)}
                assert others <= ({"drain", "undrain"} if "generic" in path.name else set())
            else:
                reply = decode_reply(raw)
                assert decode_reply(encode_reply(reply)) == reply
            count += 1
    assert count > 2000


def test_unknown_events_and_fields_are_kept_not_feared() -> None:
    raw = b"""{"now": 5.0, "more": 1, "events": [
        {"timestamp": 5.0, "type": "ECLIPSE", "data": {"of": "sun"}, "extra": []},
        {"timestamp": 5.0, "type": "NOTIFY", "data": {"type": "meteor", "size": 3}},
        {"timestamp": 5.0, "type": "REQUESTED_CALL", "data": {"id": "later"}}]}"""
    eclipse, meteor, call = decode_message(raw).events
    assert (eclipse.kind, eclipse.data) == ("ECLIPSE", {"of": "sun"})
    assert (meteor.kind, meteor.data["size"]) == ("meteor", 3)
    assert isinstance(call, e.CallRequested)


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"", "not a Batsim message"),
        (b"hello", "not a Batsim message"),
        (b"[]", "not a Batsim message"),
        (b'{"now": 1}', "events"),
        (b'{"now": "x", "events": []}', "now"),
        (b'{"now": -1, "events": []}', "now"),
        (b'{"now": 1e300, "events": []}', "now"),
        (b'{"now": 1, "events": [{"timestamp": 1, "type": "JOB_SUBMITTED"}]}', "data"),
        (b'{"now": 1, "events": [{"timestamp": 1, "type": "JOB_KILLED", "data": {}}]}', "job_ids"),
        (
            b'{"now": 1, "events": [{"timestamp": 1, "type": "JOB_COMPLETED", "data": '
            b'{"job_id": "w0!1", "job_state": "COMPLETED_KILLED", "alloc": "a-b"}}]}',
            "set of nodes",
        ),
        (b"\xff\xfe", "not a Batsim message"),
    ],
)
def test_nonsense_says_where_it_is(raw: bytes, told: str) -> None:
    with pytest.raises(InputError, match=told):
        decode_message(raw)


@pytest.mark.parametrize(
    ("event", "told"),
    [
        ('{"timestamp": 1, "type": "DANCE", "data": {}}', "unknown type"),
        ('{"timestamp": 9, "type": "REJECT_JOB", "data": {"job_id": "w0!1"}}', "later than now"),
        ('{"timestamp": 1, "type": "NOTIFY", "data": {"type": "x"}}', "unknown notification"),
        ('{"timestamp": 1, "type": "KILL_JOB", "data": {"job_ids": "w0!1"}}', "job_ids"),
        ('{"timestamp": 1, "type": "EXECUTE_JOB", "data": {"job_id": "w0!1"}}', "alloc"),
    ],
)
def test_a_reply_that_batsim_cannot_read_is_refused(event: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        decode_reply(f'{{"now": 1, "events": [{event}]}}'.encode())


OTHERS = {
    e.FileEvent,
    e.Notified,
    d.PeriodicCall,
    d.StopCall,
    d.StopSimulation,
    d.ChangePowerState,
    d.SwitchNodes,
}
"""Base classes, notifications of any other type, and the decisions that only Batsim 5 has."""


@pytest.mark.parametrize(("base", "rows"), [(e.Event, EVENTS), (d.Decision, DECISIONS)])
def test_every_event_and_decision_is_declared(base, rows) -> None:
    kinds = {*base.__subclasses__(), *e.FileEvent.__subclasses__()}
    ours = {kind for kind in kinds if kind.__module__ == base.__module__}
    assert ours - OTHERS == set(rows.by_class)


SAID = [
    e.SimulationBegan(
        at_us=7, n_nodes=4, config={"a": 1}, profiles={"w0": {"d": {"type": "delay"}}},
        workloads={"w0": "x.json"}, resources=[{"id": 0}],
    ),
    e.JobSubmitted(at_us=7, job_id="w0!1", job={"id": "w0!1"}),
    e.JobSubmitted(at_us=7, job_id="w0!1", job={"id": "w0!1"}, profile={"type": "delay"}),
    e.JobCompleted(at_us=7, job_id="w0!1", state="x", return_code=-1, nodes=NodeSet.of([1, 3])),
    e.JobsKilled(at_us=7, job_ids=("w0!1", "w0!2"), progress={"w0!1": {"progress": 0.5}}),
    e.CallRequested(at_us=7),
    e.NodesFailed(at_us=7, nodes=NodeSet.of([2])),
    e.NodesRejuvenated(at_us=7, nodes=NodeSet.of([2])),
    e.NoMoreStaticJobs(at_us=7),
    e.NoMoreExternalEvents(at_us=7),
    e.Notified(at_us=7, kind="x", data={"type": "x", "more": None}),
    e.SimulationEnded(at_us=7),
]  # fmt: skip
DECIDED = [
    d.ExecuteJob(at_us=7, job_id="w0!1", nodes=NodeSet.of([1, 3])),
    d.RejectJob(at_us=7, job_id="w0!1"),
    d.KillJobs(at_us=7, job_ids=("w0!1", "w0!2")),
    d.CallMeLater(at_us=7, when_us=1_500_000),
    d.RegisterProfile(at_us=7, workload="w0", name="p", profile={"type": "delay"}),
    d.RegisterJob(at_us=7, job_id="w0!1", job={"res": 1}),
    d.FinishRegistration(at_us=7),
    d.ContinueRegistration(at_us=7),
    d.SetMetadata(at_us=7, job_id="w0!1", metadata="text"),
]


def test_each_comes_back_as_it_was_said() -> None:
    message, reply = e.Message(7, tuple(SAID)), d.Reply(7, tuple(DECIDED))
    assert {type(event) for event in SAID} == set(EVENTS.by_class) | {e.Notified}
    assert {type(decision) for decision in DECIDED} == set(DECISIONS.by_class)
    assert decode_message(encode_message(message)) == message
    assert decode_reply(encode_reply(reply)) == reply


def test_what_is_none_is_left_out_and_quotes_are_taken_from_metadata() -> None:
    (event,) = json.loads(encode_message(e.Message(7, (SAID[1],))))["events"]
    assert set(event["data"]) == {"job_id", "job"}
    reply = d.Reply(7, (d.SetMetadata(at_us=7, job_id="w0!1", metadata='a "b"'),))
    assert json.loads(encode_reply(reply))["events"][0]["data"]["metadata"] == "a 'b'"


node_sets = st.lists(st.integers(0, 5000), min_size=1, max_size=20).map(NodeSet.of)


@given(node_sets, st.integers(0, 10**15))
def test_what_is_encoded_is_canonical_and_comes_back(nodes: NodeSet, at_us: int) -> None:
    reply = d.Reply(at_us, (d.ExecuteJob(at_us=at_us, job_id="w0!1", nodes=nodes),))
    assert decode_reply(encode_reply(reply)) == reply
    alloc = json.loads(encode_reply(reply))["events"][0]["data"]["alloc"]
    intervals = [tuple(map(int, (part.split("-") * 2)[:2])) for part in alloc.split()]
    flat = [edge for interval in intervals for edge in interval]
    assert flat == sorted(flat)
    assert all(b[0] > a[1] + 1 for a, b in pairwise(intervals))


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 30)), max_size=12))
def test_node_sets_agree_with_procset(pairs) -> None:
    from procset import ProcSet

    intervals = [(first, first + more) for first, more in pairs]
    ours, theirs = NodeSet.from_intervals(intervals), ProcSet(*intervals)
    assert str(ours) == str(theirs)
    assert ours.procset == theirs
    assert NodeSet.from_procset(theirs) == ours == NodeSet.parse(str(theirs))
    assert list(ours) == list(theirs)
    assert len(ours) == len(theirs)
    assert all((node in ours) == (node in theirs) for node in range(240))
