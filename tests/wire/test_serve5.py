# SPDX-License-Identifier: Apache-2.0
"""``rebat serve`` and ``rebat simulate`` for Batsim 5: sessions, fuzzed peers, processes."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import pytest
import zmq
from hypothesis import given, settings
from hypothesis import strategies as st

from rebat.core import decisions as d
from rebat.core.errors import BatsimAbort, InputError
from rebat.core.jobs import Job, Workload
from rebat.engine.batsim5 import Engine5
from rebat.models.failures.correlated import joined_events
from rebat.models.failures.events import write_events
from rebat.models.failures.laws import parse_law
from rebat.models.tiers import add_tiers, parse_tiers
from rebat.wire.batsim5 import decode_reply, encode_hello, encode_init
from rebat.wire.conversation import Conversation, greet, run_remote, session_for
from rebat.wire.recording import read_frames
from rebat.workloads.batsim_json import write_workload
from rebat.workloads.generate import synthetic
from tests.support.amount import few
from tests.support.recordings import cases5
from tests.wire.test_fuzz import JUNK, drawn
from tests.wire.test_processes import (
    REBAT,
    cluster_inputs,
    embedded,
    free_port,
    inputs,
    process,
)

__all__ = ["cluster_inputs", "inputs"]  # fixtures

FCFS = {
    "fcfs_toy",
    "fcfs_12",
    "fcfs_fractions",
    "thirds",
    "near",
    "near_finer",
    "walltime",
    "coincide",
    "coincide_with_start",
    "extra_data",
    "names",
    "hosts_128",
    "events_free_text",
    "events_only_last",
    "init_text",
    "init_empty",
    "init_file",
    "load_name_complete",
    "load_further_fields",
    "return_codes",
    "accept_blanks",
    "accept_nul_at_end",
}
"""Conversations with an FCFS scheduler that uses the lowest nodes, as rebat's preset does."""


def conversation(policy: str = "sfsj") -> Conversation:
    return Conversation(lambda _, began: session_for(policy, {}, began, strict=True))


def test_our_fcfs_answers_as_was_recorded() -> None:
    played = 0
    for case in cases5():
        if case.name not in FCFS:
            continue
        ours, talk = b"", conversation("batsched-fcfs")
        for number, frame in enumerate(read_frames(case / "conversation.jsonl")):
            if frame.of_simulator:
                ours = talk.answer(frame.data)
            elif number > 1:
                assert starts(ours) == starts(frame.data), (case.name, frame.line)
        assert talk.finished()
        played += 1
    assert played >= 2


def starts(reply: bytes) -> list[d.Decision]:
    """Return decisions without the end of registration: the recorded scheduler has none."""
    decisions = decode_reply(reply).decisions
    return [x for x in decisions if not isinstance(x, d.FinishRegistration)]


# ---- the first frame


def test_the_first_frame_shows_the_protocol() -> None:
    assert conversation().answer(encode_init("")) == encode_hello()
    four = json.dumps(
        {
            "now": 0,
            "events": [
                {
                    "timestamp": 0,
                    "type": "SIMULATION_BEGINS",
                    "data": {"nb_compute_resources": 4, "config": {}, "profiles": {}},
                }
            ],
        }
    )
    assert json.loads(conversation().answer(four.encode())) == {"now": 0.0, "events": []}


@pytest.mark.parametrize(("version", "frame"), [(4, encode_init("x")), (5, b'{"now": 0}')])
def test_a_simulator_of_another_version_is_refused(version: int, frame: bytes) -> None:
    talk = Conversation(lambda _, began: session_for("sfsj", {}, began), protocol=version)
    with pytest.raises(InputError, match=f"does not speak the protocol of Batsim {version}"):
        talk.answer(frame)


# ---- failures and repairs of one instant

HOSTS = [{"id": node, "name": f"n{node}"} for node in range(4)]
BEGIN = {
    "timestamp": 0.0,
    "event_type": "SimulationBeginsEvent",
    "event": {
        "computation_host_number": 4,
        "computation_hosts": HOSTS,
        "workloads": [{"name": "w0", "filename": "a file"}],
    },
}


def say(talk: Conversation, now: float, *events: dict) -> list[d.Decision]:
    frame = json.dumps({"now": now, "events": events}).encode() + b"\0"
    return list(decode_reply(talk.answer(frame)).decisions)


def external(kind: str, nodes: str) -> dict:
    data = json.dumps({"type": f"machine_{kind}", "resources": nodes})
    return {
        "timestamp": 0.0,
        "event_type": "ExternalEventOccurredEvent",
        "event": {
            "id": "ee0!0",
            "external_event_type": "GenericExternalEvent",
            "external_event": {"data": data},
        },
    }


def begun() -> Conversation:
    talk = conversation("easy")
    talk.answer(encode_init(""))
    assert say(talk, 0.0, BEGIN) == []
    return talk


def test_a_failure_before_the_repair_of_its_instant_is_not_an_error() -> None:
    """Batsim 5 sorts event files only by time, and the sort is not stable."""
    talk = begun()
    say(talk, 1.0, external("unavailable", "1-2"))
    say(talk, 2.0, external("unavailable", "2"), external("available", "1-2"))
    assert [node for node in range(4) if talk.session.down[node]] == [2]
    with pytest.raises(InputError, match="message 5 of the peer: node 2 is already down"):
        say(talk, 3.0, external("unavailable", "2"))


def test_free_text_and_unknown_events_change_nothing() -> None:
    talk = begun()
    text = external("x", "0")
    for data in ("no JSON", "", "{", "[1]", '{"type": 5}', '{"type": "eclipse"}', '{"a": 1}'):
        text["event"]["external_event"]["data"] = data
        assert say(talk, 1.0, text) == []


# ---- random messages of peers

TYPES = st.sampled_from(
    [
        "SimulationBeginsEvent",
        "JobSubmittedEvent",
        "JobCompletedEvent",
        "JobsKilledEvent",
        "RequestedCallEvent",
        "ExternalEventOccurredEvent",
        "AllStaticJobsHaveBeenSubmittedEvent",
        "AllStaticExternalEventsHaveBeenInjectedEvent",
        "SimulationEndsEvent",
        "EclipseEvent",
        "HostsPStateChangedEvent",
    ]
)
IDS = st.sampled_from(["w0!1", "w0!2", "w1!1", "w0!1#1", "x", ""])
PROFILE = st.fixed_dictionaries(
    {
        "id": st.just("w0!d"),
        "profile_type": st.sampled_from(
            ["DelayProfile", "SequentialCompositionProfile", "NewProfile"]
        ),
        "profile": st.fixed_dictionaries(
            {},
            optional={
                "delay": st.integers(-1, 9) | JUNK,
                "profile_ids": st.lists(st.just("w0!d"), max_size=2) | JUNK,
            },
        ),
    },
    optional={"extra_data": st.just('{"checkpoint_period": 2}') | JUNK},
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "job_id": IDS | JUNK,
        "job": st.fixed_dictionaries(
            {},
            optional={
                "resource_request": st.integers(-1, 6) | JUNK,
                "walltime": st.integers(-2, 50) | JUNK,
                "profile_id": st.just("w0!d") | JUNK,
                "extra_data": st.text(max_size=9) | JUNK,
            },
        )
        | JUNK,
        "submission_time": st.integers(0, 9) | JUNK,
        "profile": PROFILE | JUNK,
        "state": st.sampled_from(["COMPLETED_SUCCESSFULLY", "COMPLETED_KILLED"]) | JUNK,
        "return_code": st.integers(0, 2**33) | JUNK,
        "job_ids": st.lists(IDS, max_size=3) | JUNK,
        "progresses": JUNK
        | st.lists(
            st.fixed_dictionaries(
                {
                    "job_id": IDS,
                    "wrapper": JUNK
                    | st.fixed_dictionaries(
                        {"kill_progress_type": st.text(max_size=3), "kill_progress": JUNK}
                    ),
                }
            ),
            max_size=2,
        ),
        "external_event": JUNK
        | st.fixed_dictionaries(
            {
                "data": JUNK
                | st.sampled_from(
                    [
                        '{"type": "machine_unavailable", "resources": "0"}',
                        '{"type": "machine_available", "resources": "0-9"}',
                        '{"type": "machine_unavailable", "resources": 5}',
                        '{"type": "drain"}',
                        "{",
                    ]
                )
            }
        ),
        "computation_host_number": JUNK,
        "computation_hosts": JUNK,
        "workloads": JUNK,
    },
)
EVENT = st.fixed_dictionaries(
    {"timestamp": st.integers(0, 60) | JUNK, "event_type": TYPES | JUNK, "event": FIELDS | JUNK}
)
MESSAGE = st.fixed_dictionaries({"now": st.integers(0, 60), "events": st.lists(EVENT, max_size=4)})


def survive(frames: Iterable[bytes]) -> None:
    """Check that each frame is answered with a valid reply, or refused in one line."""
    talk = begun()
    for frame in frames:
        try:
            decode_reply(talk.answer(frame))
        except InputError as error:
            assert "\n" not in str(error)
            return


@settings(max_examples=few(500))
@given(st.data())
def test_made_up_messages_of_a_simulator(data) -> None:
    survive(drawn(data, MESSAGE, 8))


@settings(max_examples=few(300))
@given(st.binary(max_size=200))
def test_bytes_of_a_simulator(data: bytes) -> None:
    survive([data])
    try:
        conversation().answer(data)
    except InputError as error:
        assert "\n" not in str(error)


DECISION = st.fixed_dictionaries(
    {
        "timestamp": st.integers(0, 3) | JUNK,
        "event_type": st.sampled_from(
            [
                "ExecuteJobEvent",
                "RejectJobEvent",
                "KillJobsEvent",
                "RegisterProfileEvent",
                "RegisterJobEvent",
                "CallMeLaterEvent",
                "FinishRegistrationEvent",
                "CreateProbeEvent",
                "ForceSimulationStopEvent",
                "StopCallMeLaterEvent",
                "ChangeHostsPStateEvent",
                "TurnOnOffHostsEvent",
            ]
        )
        | JUNK,
        "event": JUNK
        | st.fixed_dictionaries(
            {},
            optional={
                "job_id": IDS,
                "job_ids": st.lists(IDS, max_size=2) | JUNK,
                "profile": PROFILE | JUNK,
                "allocation": JUNK
                | st.fixed_dictionaries(
                    {
                        "host_allocation": st.sampled_from(["0", "0-3", "9", "", "3-1", "x"]),
                        "executor_placement_type": st.just("x"),
                        "executor_placement": st.just({}),
                    }
                ),
                "job": JUNK
                | st.fixed_dictionaries(
                    {
                        "resource_request": st.integers(-1, 3) | JUNK,
                        "profile_id": st.sampled_from(["w0!d", "d", "x!d"]),
                    }
                ),
                "call_me_later_id": st.just("c") | JUNK,
                "host_ids": st.just("0") | JUNK,
                "pstate": st.integers(-1, 1),
                "when_type": st.sampled_from(["OneShot", "Periodic"]) | JUNK,
                "when": JUNK
                | st.fixed_dictionaries(
                    {},
                    optional={
                        "time": st.integers(-1, 9) | JUNK,
                        "period": st.integers(0, 5) | JUNK,
                        "mode_type": st.sampled_from(["Infinite", "FinitePeriodNumber"]),
                        "mode": JUNK | st.just({"nb_periods": 2}),
                    },
                ),
            },
        ),
    }
)
REPLY = st.fixed_dictionaries(
    {"now": st.integers(0, 3) | JUNK, "events": st.lists(DECISION, max_size=3)}
)
SMALL = Workload(
    "small",
    4,
    (Job("1", 1, 0, None, "d"), Job("2", 2, 1, 9_000_000, "d")),
    {"d": {"type": "delay", "delay": 3}},
)


def end_of(frames: Iterable[bytes], hello: bytes) -> str:
    """Return how a simulation ends if it receives these replies, then empty ones."""
    replies = chain([hello], frames)

    def ask(_: bytes) -> bytes:
        return next(replies, b'{"now": 3, "events": []}')

    try:
        greet(ask)
        run_remote(Engine5([SMALL]), ask)
    except BatsimAbort as error:
        assert "\n" not in str(error)
        return "abort"
    except InputError as error:
        assert "\n" not in str(error)
        return "refused"
    return "ended"


@settings(max_examples=few(500))
@given(st.data())
def test_made_up_replies_of_a_scheduler(data) -> None:
    end_of(drawn(data, REPLY, 6), encode_hello())


@settings(max_examples=few(300))
@given(st.binary(max_size=200))
def test_bytes_of_a_scheduler(data: bytes) -> None:
    assert end_of([data], encode_hello()) in ("abort", "refused")
    assert end_of([], data) in ("abort", "refused")


# ---- processes


def serve5(policy: str, port: int, *more: str) -> list[str]:
    address = f"tcp://127.0.0.1:{port}"
    return [*REBAT, "serve", "-p", policy, "--endpoint", address, "--timeout", "30s", *more]


def simulate5(folder: Path, port: int, prefix: str, *more: str, status: int = 0) -> str:
    done = subprocess.run(
        [
            *REBAT,
            "simulate",
            "--protocol",
            "5",
            "-w",
            str(folder / "w.json"),
            "-e",
            prefix,
            "-s",
            f"tcp://127.0.0.1:{port}",
            "--timeout",
            "30s",
            *more,
        ],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == status, done.stderr
    return done.stderr


def like_batsim_4(file: Path) -> bytes:
    """Return a jobs.csv of Batsim 5 with the profile names, energies and quotes of Batsim 4."""
    header, *rows = file.read_text().splitlines()
    lines = []
    for row in rows:
        cells = row.split(",")
        cells[2] = cells[2].removeprefix("w0!")
        cells[-2] = cells[-2] and "-1.000000"
        lines.append(",".join([*cells[:-1], '""']))
    return "".join(f"{line}\n" for line in [header, *lines]).encode()


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["baseline", "sfsj", "h222", "batsched-easy"])
def test_over_the_wire_the_jobs_are_those_of_an_embedded_run(inputs, policy, tmp_path) -> None:
    failing = policy != "batsched-easy"
    failures = str(inputs / "f.events")
    port, record = free_port(), tmp_path / "talk.jsonl"
    with process(*serve5(policy, port, "--record", str(record))) as server:
        simulate5(inputs, port, f"{tmp_path}/", *(["--ee", failures] if failing else []))
        _, printed = server.communicate(timeout=30)
        assert server.returncode == 0
    assert f'-s tcp://127.0.0.1:{port} ""' in printed
    assert "warning" not in printed
    more = ["--failures", failures] if failing else []
    expected = embedded(inputs, policy, tmp_path / "run", *more)
    assert like_batsim_4(tmp_path / "jobs.csv") == expected
    assert json.loads((tmp_path / "schedule.json").read_text())["nb_computing_machines"] == 128
    checked = subprocess.run([*REBAT, "wire", "check", str(record)], check=False, timeout=60)
    assert checked.returncode == 0


TIERS = ["peer=2s/31s@5min+remote=60s/62s@30min",
         "memory=1s/17s@5min+peer=5s/31s@10min+group=7s/41s@20min+remote=60s/62s@1h"]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("text", TIERS)
@pytest.mark.parametrize(
    ("policy", "init_s"), [("baseline", 0), ("sfsj", 0), ("training-swap", 30)]
)
def test_checkpoints_in_tiers_have_the_attempts_of_an_embedded_run(
    text, policy, init_s, tmp_path
) -> None:
    """Nodes and groups fail with different causes; each tier is needed to survive some failures."""
    tiers = parse_tiers(text)
    workload = add_tiers(
        synthetic(1, n_jobs=80), tiers, n_nodes=128, mtbf_s=1800,
        light_share=(0.3, 0.6, 0.9) if tiers.lights[1:] else 0.6, software="software", group=4,
    )  # fmt: skip
    write_workload(workload, tmp_path / "w.json")
    law = parse_law(
        "fleet:rate=2000,causes=gpu=2+software=1,repair=10min,rack=4,rack_share=0.3,"
        "switch=16,switch_rate=9000"
    )
    outages = [  # whole seconds, because Batsim 5 calls back at whole milliseconds
        outage._replace(
            down_us=outage.down_us // 10**6 * 10**6,
            up_us=outage.up_us // 10**6 * 10**6 + 10**6,
        )
        for outage in law.until(law.outages(128, 3), 100_000)
    ]
    write_events(list(joined_events(outages)), tmp_path / "f.events")
    failures, port = str(tmp_path / "f.events"), free_port()
    with process(*serve5(policy, port)) as server:
        simulate5(tmp_path, port, f"{tmp_path}/", "--ee", failures)
        _, printed = server.communicate(timeout=30)
        assert server.returncode == 0, printed
    expected = embedded(tmp_path, policy, tmp_path / "run", "--failures", failures)
    assert like_batsim_4(tmp_path / "jobs.csv") == expected
    (attempts,) = (tmp_path / "run").glob("*/rebat_attempts.csv")
    header, *rows = (line.split(",") for line in attempts.read_text().splitlines())
    loads = {float(row[header.index("recovery_seconds")]) for row in rows}
    assert {tier.load_s + init_s for tier in tiers.all} <= loads


@pytest.mark.slow
def test_operations_and_files_in_batsim_5s_form(cluster_inputs, tmp_path) -> None:
    """Failures and operations are in two event files, an option of the policy in Batsim's text."""
    for name, group in (
        ("f.events", "failures"),
        ("ops.jsonl", "failures"),
        ("w.json", "workload"),
    ):
        subprocess.run(
            [
                *REBAT,
                group,
                "export",
                str(cluster_inputs / name),
                "--format",
                "batsim5",
                "-o",
                str(tmp_path / name),
            ],
            check=True,
            capture_output=True,
            timeout=60,
        )
    port, policy = free_port(), "tiers:horizon=30000"
    with process(*serve5("baseline", port, "--cores-per-node", "8")) as server:
        simulate5(
            tmp_path,
            port,
            f"{tmp_path}/",
            "--ee",
            str(tmp_path / "f.events"),
            "--ee",
            str(tmp_path / "ops.jsonl"),
            "--sched-cfg",
            json.dumps({"policy": policy}),
        )
        server.communicate(timeout=30)
        assert server.returncode == 0
    more = [
        "--failures",
        str(cluster_inputs / "f.events"),
        "--cores-per-node",
        "8",
        "--operations",
        str(cluster_inputs / "ops.jsonl"),
    ]
    embedded(cluster_inputs, policy, tmp_path / "run", *more)
    (run,) = (tmp_path / "run").glob("*/jobs.csv")
    assert like_batsim_4(tmp_path / "jobs.csv") == run.read_bytes()


def replying(port: int, frames: list[bytes], ended: threading.Event):
    """Act as a scheduler that sends these frames in answer to any messages.

    If the simulator has ended, do not wait for its next message.
    """
    context = zmq.Context()
    peer = context.socket(zmq.REP)
    peer.setsockopt(zmq.LINGER, 500)
    peer.bind(f"tcp://127.0.0.1:{port}")
    for frame in frames:
        while not (heard := peer.poll(20)) and not ended.is_set():
            pass
        if not heard:
            break
        peer.recv()
        peer.send(frame)
    ended.wait(20)
    if peer.poll(20):
        peer.recv()
    peer.close()
    context.term()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("frames", "why"),
    [
        ([b"\2"], "the scheduler's hello: the frame has 1 bytes"),
        (
            [encode_hello().replace(b'"decision_component_commit":"",', b"")],
            "missing required field `decision_component_commit`",
        ),
        ([encode_hello(), b"hello"], "the scheduler's reply: is not a reply"),
        ([encode_hello(), b'{"now":0}'], "missing required field `events`"),
        (
            [
                encode_hello(),
                b'{"now":0,"events":[{"timestamp":0,"event_type":"CreateProbeEvent"}]}',
            ],
            "CreateProbeEvent): probes need Batsim's models",
        ),
        ([encode_hello(), *[b'{"now":0,"events":[]}'] * 200], "no event is left"),
    ],
)
def test_simulate_ends_with_one_line(inputs, tmp_path, frames, why) -> None:
    port, ended = free_port(), threading.Event()
    thread = threading.Thread(target=replying, args=(port, frames, ended))
    thread.start()
    try:
        printed = simulate5(inputs, port, f"{tmp_path}/", "-q", status=2)
    finally:
        ended.set()
    thread.join(timeout=60)
    (line,) = printed.strip().splitlines()
    assert line.startswith("rebat: error: ") and why in line
    assert (tmp_path / "jobs.csv").exists() == ("no event" in why)
    assert not (tmp_path / "schedule.json").exists()


@pytest.mark.slow
def test_a_text_that_is_no_json_has_no_effect(inputs, tmp_path) -> None:
    port = free_port()
    with process(*serve5("easy", port)) as server:
        simulate5(inputs, port, f"{tmp_path}/", "--sched-cfg", "init")
        _, printed = server.communicate(timeout=30)
        assert server.returncode == 0
    assert "warning: the text after Batsim's -s is not a JSON object" in printed


def test_an_option_of_batsim_4_is_refused(inputs, tmp_path) -> None:
    printed = simulate5(inputs, free_port(), f"{tmp_path}/", "--enable-dynamic-jobs", status=2)
    assert "--enable-dynamic-jobs: has no effect with --protocol 5" in printed
