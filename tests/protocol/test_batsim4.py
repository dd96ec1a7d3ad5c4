"""The codec against everything that a real Batsim and its schedulers said."""

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
from rebat.protocol.batsim4 import decode_message, decode_reply, encode_message, encode_reply


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.open()]


def test_every_recorded_message_is_understood_and_said_again(shared: Path) -> None:
    count = 0
    for path in sorted((shared / "transcripts").glob("*.jsonl")):
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
