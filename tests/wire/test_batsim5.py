# SPDX-License-Identifier: Apache-2.0
"""The codec of Batsim 5, tested with all messages that a real Batsim sent, accepted or refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.core import decisions as d
from rebat.core import events as e
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.wire.batsim5 import DECISIONS as DECISIONS5
from rebat.wire.batsim5 import EVENTS as EVENTS5
from rebat.wire.batsim5 import (
    WITHOUT,
    Features,
    decode_hello,
    decode_init,
    decode_message,
    decode_reply,
    decode_timed,
    encode_hello,
    encode_init,
    encode_message,
    encode_reply,
    is_init,
)
from rebat.wire.recording import Frame, read_frames
from tests.support.recordings import cases5

BY_STATE = (
    "refuse_execute_",
    "refuse_hosts_beyond",
    "refuse_job_",
    "refuse_kill_",
    "refuse_part_unknown",
    "refuse_profile_",
    "refuse_reject_running",
)
"""Cases that Batsim refuses because of the simulation's state, which the codec does not know."""


def frames(case: Path) -> list[Frame]:
    return list(read_frames(case / "conversation.jsonl"))


def plain(frame: bytes) -> dict:
    """Return the message in a frame without stale times and line ids, which rebat does not need."""
    message = json.loads(frame.rstrip(b"\0"))
    message["now"] = round(message["now"], 6)
    for event in message["events"]:
        fields, kind = event["event"], event["event_type"]
        event["timestamp"] = round(event["timestamp"], 6)
        if kind in ("ExternalEventOccurredEvent", "JobsKilledEvent", "HostsPStateChangedEvent"):
            del event["timestamp"]
        if kind == "ExternalEventOccurredEvent":
            del fields["id"]
            text = fields["external_event"]["data"]
            fields["external_event"]["data"] = json.loads(text) if text[:1] == "{" else text
        if kind == "JobsKilledEvent":
            del fields["profiles"]
    return message


def test_every_recorded_message_is_read_and_written_again() -> None:
    count = 0
    for case in cases5():
        for frame in frames(case)[1:]:
            if frame.of_simulator:
                message = decode_message(frame.data)
                written = encode_message(message)
                assert decode_message(written) == message, case.name
                assert plain(written) == plain(frame.data), case.name
                count += 1
    assert count > 100


def test_every_reply_that_batsim_accepted_is_read_and_written_in_a_form_that_it_accepts() -> None:
    """The replies are all except the last one of an aborted conversation, also unusual ones."""
    count = 0
    for case in cases5():
        aborted = json.loads((case / "result.json").read_text())["exit_status"] in (134, 139)
        replies = [frame for frame in frames(case) if not frame.of_simulator]
        for frame in replies[1 : -1 if aborted else None]:
            reply = decode_reply(frame.data)
            assert decode_reply(encode_reply(reply)) == reply, case.name
            count += 1
    assert count > 100


def test_a_reply_that_batsim_refuses_for_its_form_is_refused() -> None:
    refused = [case for case in cases5() if case.name.startswith(("refuse_", "hello_"))]
    assert len(refused) >= 3
    for case in refused:
        last = [frame for frame in frames(case) if not frame.of_simulator][-1]
        read = decode_hello if case.name.startswith("hello_") else decode_reply
        if case.name.startswith(BY_STATE) and case.name != "refuse_hello_again":
            read(last.data)
        else:
            with pytest.raises(InputError):
                read(last.data)


def test_the_handshake_is_that_of_the_recordings() -> None:
    for case in cases5():
        if case.name.startswith("load_") and not frames(case):
            continue
        first, second = frames(case)[:2]
        assert is_init(first.data)
        assert encode_init(decode_init(first.data)) == first.data
        if not case.name.startswith("hello_"):
            decode_hello(second.data)


def test_our_hello_has_what_batsim_crashes_without() -> None:
    frame = encode_hello()
    assert frame[:4] == b"\2\0\0\0"
    hello = json.loads(frame[4:])["events"][0]
    assert hello["event_type"] == "EDCHelloEvent"
    assert {"decision_component_commit", "requested_simulation_features"} <= hello["event"].keys()
    assert decode_hello(frame) == Features(
        dynamic_registration=True, profile_reuse=True, forward_profiles_on_job_submission=True
    )


@pytest.mark.parametrize("first", [b'{"now":0,"events":[]}', b"", b"\4\0\0", b"\5\0\0\0init"])
def test_another_first_frame_is_not_that_of_batsim_5(first: bytes) -> None:
    assert not is_init(first)
    with pytest.raises(InputError, match="not the first frame"):
        decode_init(first)


# ---- all events and decisions

TEXT = {"type": "generic", "id": "ee0!3", "data": "any text"}
EVENTS = [
    e.SimulationBegan(
        at_us=7,
        n_nodes=2,
        workloads={"w0": "x.json"},
        config={"batsim_arguments": ["batsim"], "batsim_execution_context_json": "{}"},
        profiles={"w0": {"d": {"type": "delay", "delay": 1.5}}},
        resources=[{"id": 0, "name": "a"}, {"id": 1, "name": "b"}],
    ),
    e.JobSubmitted(
        at_us=7,
        job_id="w0!1",
        job={
            "id": "w0!1",
            "subtime": 0.5,
            "res": 2,
            "walltime": 9.0,
            "profile": "d",
            "shape": {"kind": "rigid"},
        },
    ),
    e.JobSubmitted(
        at_us=7,
        job_id="w0!1",
        job={"id": "w0!1", "subtime": 0.5, "res": 2, "profile": "s", "extra_data": "text"},
        profile={"type": "composed", "repeat": 2, "seq": ["d", "w1!d"], "note": 1},
    ),
    e.JobCompleted(
        at_us=7, job_id="w0!1", state="COMPLETED_KILLED", return_code=-2, nodes=NodeSet.of(())
    ),
    e.JobsKilled(
        at_us=7,
        job_ids=("w0!1", "w0!2"),
        progress={
            "w0!1": {
                "profile_name": "s",
                "current_repetition": 1,
                "current_task_index": 0,
                "current_task": {"profile_name": "d", "progress": 0.5},
            }
        },
    ),
    e.CallRequested(at_us=7, name="c", last=True),
    e.NodesFailed(at_us=7, line="ee0!1", nodes=NodeSet.of([1, 3])),
    e.NodesRejuvenated(at_us=7, nodes=NodeSet.of([2])),
    e.Notified(at_us=7, kind="drain", data={"type": "drain", "nodes": "0-3"}),
    e.Notified(at_us=7, line="ee0!3", kind="generic", data=TEXT),
    e.Notified(at_us=7, kind="NewEvent", data={"event_type": "NewEvent", "field": 1}),
    e.NoMoreStaticJobs(at_us=7),
    e.NoMoreExternalEvents(at_us=7),
    e.SimulationEnded(at_us=7),
]
DECISIONS = [
    d.RegisterProfile(
        at_us=7, workload="w0", name="p", profile={"type": "delay", "delay": 1.5, "Tfirst": 3}
    ),
    d.RegisterProfile(
        at_us=7,
        workload="w0",
        name="q",
        profile={"type": "composed", "repeat": 1, "seq": ["p", "p"]},
    ),
    d.RegisterProfile(
        at_us=7,
        workload="w0",
        name="r",
        profile={"type": "parallel_homogeneous", "cpu": 1e9, "com": 0.0},
    ),
    d.RegisterProfile(
        at_us=7,
        workload="w0",
        name="t",
        profile={"type": "NewProfile", "profile": {"x": 1}, "extra_data": None},
    ),
    d.RegisterJob(
        at_us=7,
        job_id="w0!1#1",
        job={"id": "w0!1#1", "subtime": 7e-6, "res": 1, "profile": "p", "walltime": 2.5},
    ),
    d.ExecuteJob(at_us=7, job_id="w0!1", nodes=NodeSet.of([1, 3])),
    d.RejectJob(at_us=7, job_id="w0!1"),
    d.KillJobs(at_us=7, job_ids=("w0!1", "w0!2")),
    d.CallMeLater(at_us=7, when_us=1_500_000, name="c"),
    d.PeriodicCall(at_us=7, name="p", period_us=4_000_000, n_periods=3),
    d.PeriodicCall(at_us=7, name="q", period_us=5_000),
    d.StopCall(at_us=7, name="p"),
    d.ChangePowerState(at_us=7, nodes=NodeSet.of([1]), state=2),
    d.SwitchNodes(at_us=7, nodes=NodeSet.of([1]), state="PoweredOff"),
    d.FinishRegistration(at_us=7),
    d.StopSimulation(at_us=7),
]


def test_each_event_and_decision_is_declared_and_comes_back() -> None:
    assert {type(event) for event in EVENTS} == set(EVENTS5.by_class)
    assert {type(decision) for decision in DECISIONS} == set(DECISIONS5.by_class)
    every = {kind for kind in d.Decision.__subclasses__() if kind.__module__.startswith("rebat.")}
    assert every == set(DECISIONS5.by_class) | WITHOUT
    message, reply = e.Message(7, tuple(EVENTS)), d.Reply(7, tuple(DECISIONS))
    assert decode_message(encode_message(message)) == message
    assert decode_reply(encode_reply(reply)) == reply


def test_decisions_that_batsim_5_does_not_have_are_left_out() -> None:
    gone = (d.ContinueRegistration(at_us=7), d.SetMetadata(at_us=7, job_id="w0!1", metadata="x"))
    assert decode_reply(encode_reply(d.Reply(7, gone))) == d.Reply(7)


def refuses(decision: d.Decision, why: str) -> None:
    with pytest.raises(InputError, match=why):
        encode_reply(d.Reply(7, (decision,)))


def test_what_batsim_aborts_on_is_not_written() -> None:
    delay = {"type": "delay", "delay": 0}
    refuses(d.RegisterProfile(at_us=7, workload="w0", name="p", profile=delay), "delay is 0")
    failing = {"type": "delay", "delay": 1, "ret": 1}
    refuses(d.RegisterProfile(at_us=7, workload="w0", name="p", profile=failing), "ret is 1")
    empty = {"type": "composed", "seq": []}
    refuses(d.RegisterProfile(at_us=7, workload="w0", name="p", profile=empty), "no parts")
    smpi = {"type": "smpi", "trace": "x"}
    refuses(d.RegisterProfile(at_us=7, workload="w0", name="p", profile=smpi), "type is 'smpi'")
    refuses(d.KillJobs(at_us=7, job_ids=()), "job_ids")
    refuses(d.ExecuteJob(at_us=7, job_id="w0!1", nodes=NodeSet.of(())), "at least one host")
    for name in ("1", "w0!", "!1", "w0!a!b"):
        refuses(d.RejectJob(at_us=7, job_id=name), "id ")
    refuses(d.RejectJob(at_us=8, job_id="w0!1"), "ascending")
    late = (d.RejectJob(at_us=7, job_id="w0!1"), d.RejectJob(at_us=6, job_id="w0!1"))
    with pytest.raises(InputError, match="ascending"):
        encode_reply(d.Reply(7, late))


# ---- times


def test_a_reply_repeats_the_time_as_batsim_printed_it() -> None:
    """16666.66666666667 s is not a whole number of us; a later time would delay the reply."""
    message, now_s = decode_timed(b'{"now": 16666.66666666667, "events": []}')
    start = d.ExecuteJob(at_us=message.now_us, job_id="w0!1", nodes=NodeSet.of([0]))
    written = json.loads(encode_reply(d.Reply(message.now_us, (start,)), now_s))
    assert written["now"] == written["events"][0]["timestamp"] == 16666.66666666667
    assert message.now_us == 16_666_666_667


@given(st.integers(0, 10**14))
def test_calls_are_whole_milliseconds_and_never_early(when_us: int) -> None:
    call = d.CallMeLater(at_us=0, when_us=when_us)
    when = json.loads(encode_reply(d.Reply(0, (call,))))["events"][0]["event"]["when"]
    assert type(when["time"]) is int and when["time_unit"] == "Millisecond"
    assert 0 <= when["time"] * 1000 - when_us < 1000


def test_external_events_happen_at_the_time_of_their_message() -> None:
    data = json.dumps({"type": "machine_unavailable", "resources": "0-1 3"})
    event = {
        "timestamp": 2.0,
        "event_type": "ExternalEventOccurredEvent",
        "event": {
            "id": "ee0!0",
            "external_event_type": "GenericExternalEvent",
            "external_event": {"data": data},
        },
    }
    (failed,) = decode_message(json.dumps({"now": 4.0, "events": [event]}).encode()).events
    assert failed == e.NodesFailed(at_us=4_000_000, line="ee0!0", nodes=NodeSet.of([0, 1, 3]))


def test_a_submission_a_hair_after_now_and_a_clock_a_hair_below_zero() -> None:
    job = {"resource_request": 1, "walltime": None, "profile_id": "w0!d"}
    event = {
        "timestamp": 30.000000000001,
        "event_type": "JobSubmittedEvent",
        "event": {"job_id": "w0!s", "job": job, "submission_time": 30.000000000001},
    }
    message = decode_message(json.dumps({"now": 30.0, "events": [event]}).encode())
    assert message.events[0].at_us == message.now_us == 30_000_000
    assert decode_message(b'{"now": -0.0000000001, "events": []}').now_us == 0


# ---- unknown and broken messages


def test_unknown_fields_and_events_of_batsim_are_not_errors() -> None:
    raw = b"""{"now": 5.0, "more": 1, "events": [
        {"timestamp": 5.0, "event_type": "EclipseEvent", "event": {"of": "sun"}, "extra": []},
        {"timestamp": 5.0, "event_type": "RequestedCallEvent", "event": {"more": 1}}]}\0"""
    eclipse, call = decode_message(raw).events
    assert (eclipse.kind, eclipse.data["of"]) == ("EclipseEvent", "sun")
    assert isinstance(call, e.CallRequested)


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "not a message"),
        (b"[]", "not a message"),
        (b'{"now": 1}', "events"),
        (b'{"now": "x", "events": []}', "now"),
        (b'{"now": -1, "events": []}', "now is -1"),
        (b'{"now": 1e300, "events": []}', "now is 1e"),
        (b"\xff\xfe", "not a message"),
        (b'{"now": 1, "events": [{"event_type": "JobSubmittedEvent", "event": {}}]}', "job_id"),
        (
            b'{"now": 1, "events": [{"event_type": "SimulationBeginsEvent", "event": '
            b'{"computation_host_number": 2, "computation_hosts": [{"id": 1}, {"id": 2}]}}]}',
            "consecutive.* 0 to 1, in this order",
        ),
        (
            b'{"now": 1, "events": [{"event_type": "ExternalEventOccurredEvent", "event": {"id": '
            b'"ee0!4", "external_event": {"data": "{\\"type\\": \\"machine_available\\"}"}}}]}',
            "ee0!4: resources",
        ),
    ],
)
def test_nonsense_of_a_simulator_says_where_it_is(raw: bytes, why: str) -> None:
    with pytest.raises(InputError, match=why):
        decode_message(raw)


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (
            '{"timestamp":1,"event_type":"CreateProbeEvent","event":{}}',
            "CreateProbe.*: probes",
        ),
        (
            '{"timestamp":1,"timestamp":1,"event_type":"FinishRegistrationEvent"}',
            "key 'timestamp' occurs twice",
        ),
        ('{"timestamp":NaN,"event_type":"FinishRegistrationEvent"}', "NaN"),
        (
            '{"timestamp":1,"event_type":"RegisterJobEvent","event":{"job_id":"w0!1","job":'
            '{"resource_request":-1,"profile_id":"w0!p"}}}',
            "resource_request",
        ),
        (
            '{"timestamp":1,"event_type":"RegisterProfileEvent","event":{"profile":{"id":"w0!p",'
            '"profile_type":"DelayProfile","profile":{"delay":1,"ret":1}}}}',
            "ret",
        ),
        (
            '{"timestamp":1,"event_type":"CallMeLaterEvent","event":{"call_me_later_id":"c",'
            '"when_type":"Sometimes","when":{}}}',
            "when_type",
        ),
    ],
)
def test_a_reply_that_batsim_refuses_says_why(event: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        decode_reply(f'{{"now": 1, "events": [{event}]}}'.encode())
