# SPDX-License-Identifier: Apache-2.0
"""Real processes that use real sockets of the loopback interface."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import pwd
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest
import zmq

from rebat.cli.main import main
from rebat.core.jobs import PROBES, Job, Workload
from rebat.models.checkpoint import add_perfect, add_young_daly
from rebat.models.failures.events import write_events
from rebat.models.failures.law import generate_events
from rebat.models.failures.renewal import Authors
from rebat.models.operations import rolling_maintenance, write_operations
from rebat.wire import zmq_link
from rebat.wire.recording import read_frames
from rebat.workloads.batsim_json import write_workload
from rebat.workloads.cluster_day import ClusterDay, cluster_day
from rebat.workloads.flexible_load import FlexibleLoad, flexible_load
from rebat.workloads.generate import synthetic

ROOT = Path(__file__).parents[2]
REBAT = [sys.executable, "-m", "rebat"]
DYNAMIC = ["--enable-dynamic-jobs", "--acknowledge-dynamic-jobs", "--enable-profile-reuse"]


def free_port() -> int:
    with zmq.Context() as context, context.socket(zmq.REP) as peer:
        return peer.bind_to_random_port("tcp://127.0.0.1")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> Path:
    """Write 150 jobs with checkpoints on 128 nodes, and failures every half hour."""
    folder = tmp_path_factory.mktemp("wire")
    workload = add_young_daly(
        synthetic(1, n_jobs=150), n_nodes=128, mtbf_s=1800, cost_s=60.0, recovery_s=60.0
    )
    write_workload(workload, folder / "w.json")
    write_events(
        generate_events(Authors(1800, 600), 128, horizon_s=100_000, seed=2), folder / "f.events"
    )
    return folder


@pytest.fixture(scope="module")
def flexible_inputs(tmp_path_factory) -> Path:
    """Write 150 rigid, moldable and malleable jobs, and failures of four processors at a time."""
    folder = tmp_path_factory.mktemp("flexible")
    workload = flexible_load(3, FlexibleLoad(jobs=150))
    write_workload(add_perfect(workload), folder / "w.json")
    main(["failures", "generate", "--nodes", "500", "--cores-per-node", "4", "--law",
          "renewal:mtbf=1h", "--horizon", "5d", "-o", str(folder / "f.events")])  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def cluster_inputs(tmp_path_factory) -> Path:
    """Write 6 h of jobs on 4 nodes of 8 cores, with eternal jobs, failures and drained nodes."""
    folder = tmp_path_factory.mktemp("cluster")
    asked = ClusterDay(load=80, nodes=4, cores=8, hours=6, eternal=20)
    write_workload(cluster_day(2, asked), folder / "w.json")
    lines = rolling_maintenance(4, 1800.0, 1, 3600.0)
    write_operations(lines, folder / "ops.jsonl")
    failures = generate_events(Authors(3600, 900), 32, horizon_s=20_000, seed=2, cores_per_node=8)
    write_events(failures, folder / "f.events")
    both = [(folder / name).read_text() for name in ("f.events", "ops.jsonl")]
    (folder / "all.events").write_text("".join(both))
    return folder


@contextmanager
def process(*command: str, **options):
    """Start a process that is killed when the block ends."""
    running = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **options
    )
    try:
        yield running
    finally:
        if running.poll() is None:
            running.kill()
        running.communicate()


def simulate(inputs: Path, port: int, prefix: Path, *more: str) -> None:
    subprocess.run(
        [*REBAT, "simulate", "-w", str(inputs / "w.json"), "-e", str(prefix), "-s",
         f"tcp://127.0.0.1:{port}", "--timeout", "30s", *more],
        check=True, capture_output=True, text=True,
    )  # fmt: skip


def own_rows(file: Path) -> bytes:
    """Return a jobs.csv without the jobs that rebat registered only for their acknowledgement."""
    lines = file.read_bytes().splitlines(keepends=True)
    return b"".join(line for line in lines if line.split(b",")[1] != PROBES.encode())


def embedded(inputs: Path, policy: str, out: Path, *more: str) -> bytes:
    """Run the same simulation in this process, without a socket; return its jobs.csv."""
    main(["run", str(inputs / "w.json"), "-p", policy, "--out", str(out), *more])
    return (out / policy.replace(":", "+") / "jobs.csv").read_bytes()


def check_totals(served: Path, run: Path, capsys) -> None:
    """``rebat validate`` and ``compare`` leave the probes out; the totals are those of the run."""
    capsys.readouterr()
    main(["validate", str(served), "--by-rebat", "--json"])
    record = json.loads(capsys.readouterr().out)
    assert record["probes"] > 10
    (expected,) = csv.DictReader((run / "schedule.csv").read_text().splitlines())
    totals = record["totals_without_probes"]
    assert len(totals) == 6
    for name, value in totals.items():
        assert value == pytest.approx(float(expected[name]), abs=2e-5)
    main(["validate", str(served), "--by-rebat"])
    assert "totals of schedule.csv without the probes: nb_jobs " in capsys.readouterr().out
    main(["compare", str(served), str(run)])
    assert f"{record['rows']} rows, without {record['probes']} probes" in capsys.readouterr().out


@pytest.mark.parametrize("policy", ["baseline", "sfsj", "batsched-conservative"])
def test_over_the_wire_the_jobs_are_those_of_an_embedded_run(
    inputs, policy, tmp_path, capsys
) -> None:
    failing = policy != "batsched-conservative"
    events = ["--events", str(inputs / "f.events")] if failing else []
    more = ["--failures", str(inputs / "f.events")] if failing else []
    port, record = free_port(), tmp_path / "talk.jsonl"
    serve = [*REBAT, "serve", "-p", policy, "--endpoint", f"tcp://127.0.0.1:{port}"]
    with process(*serve, "--timeout", "30s", "--record", str(record)) as server:
        simulate(inputs, port, tmp_path / "sim", *events, *DYNAMIC)
        _, told = server.communicate(timeout=30)
        assert server.returncode == 0
    assert "--enable-dynamic-jobs" in told
    assert "p99" in told
    assert own_rows(tmp_path / "sim_jobs.csv") == embedded(inputs, policy, tmp_path / "run", *more)
    if failing:
        check_totals(tmp_path / "sim_jobs.csv", tmp_path / "run" / policy, capsys)
    talk = list(read_frames(record))
    assert [frame.of_simulator for frame in talk] == [True, False] * (len(talk) // 2)
    assert b"SIMULATION_ENDS" in talk[-2].data


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy",
    [
        "tiers:horizon=30000",
        "compaction",
        "easy:placement=cluster,react=compaction+sleep,drain=migrate",
    ],
)
def test_drains_tiers_and_compaction_are_the_same_over_the_wire(
    cluster_inputs, policy, tmp_path
) -> None:
    """Operations are generic events in the same file as the failures."""
    port, folder = free_port(), cluster_inputs
    serve = [*REBAT, "serve", "-p", policy, "--endpoint", f"tcp://127.0.0.1:{port}"]
    with process(*serve, "--cores-per-node", "8", "--timeout", "30s") as server:
        events = ["--events", str(folder / "all.events"), "--forward-unknown-events"]
        simulate(folder, port, tmp_path / "sim", *events, *DYNAMIC)
        server.communicate(timeout=30)
        assert server.returncode == 0
    told = ["--failures", str(folder / "f.events"), "--operations", str(folder / "ops.jsonl")]
    run = ["run", str(folder / "w.json"), "-p", policy, "--cores-per-node", "8", *told]
    main([*run, "--out", str(tmp_path / "run")])
    (embedded,) = (tmp_path / "run").glob("*/jobs.csv")
    assert own_rows(tmp_path / "sim_jobs.csv") == embedded.read_bytes()
    metrics = json.loads((embedded.parent / "summary.json").read_text())["metrics"]
    assert metrics["migrations"]["count"] > 20
    assert sum(metrics["node_states"].values()) == pytest.approx(1)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["dbes:react=replacement", "pra:react=replacement", "sa"])
def test_resizes_and_failures_of_groups_are_the_same_over_the_wire(
    flexible_inputs, policy, tmp_path
) -> None:
    port, events = free_port(), str(flexible_inputs / "f.events")
    serve = [*REBAT, "serve", "-p", policy, "--endpoint", f"tcp://127.0.0.1:{port}"]
    with process(*serve, "--timeout", "30s") as server:
        simulate(flexible_inputs, port, tmp_path / "sim", "--events", events, *DYNAMIC)
        server.communicate(timeout=30)
        assert server.returncode == 0
    expected = embedded(flexible_inputs, policy, tmp_path / "run", "--failures", events)
    assert own_rows(tmp_path / "sim_jobs.csv") == expected
    states = [row["final_state"] for row in csv.DictReader(expected.decode().splitlines())]
    assert states.count("REJECTED") > 10 and states.count("COMPLETED_KILLED") > 20


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy",
    ["easy-sfsj:partitions=a:0-63+b:64-127", "easy:partitions=a:0-79+b:40-127:2", "h213"],
)
def test_jobs_in_partitions_are_the_same_over_the_wire(inputs, policy, tmp_path) -> None:
    """The last policy has its partitions from the recorded machine, which Batsim does not know."""
    document = json.loads((inputs / "w.json").read_text())
    for number, job in enumerate(document["jobs"]):
        job["queue"], job["res"] = "ab"[number % 2], min(job["res"], 64)
    parts = {"a": "n[1-64]", "b": "n[65-128]"}
    document["machine"] = {"nodes": "n[1-128]", "partitions": parts}
    (tmp_path / "w.json").write_text(json.dumps(document))
    port, events = free_port(), str(inputs / "f.events")
    named = policy if "partitions" in policy else f"{policy}:partitions=a:0-63+b:64-127"
    serve = [*REBAT, "serve", "-p", named, "--endpoint", f"tcp://127.0.0.1:{port}"]
    with process(*serve, "--timeout", "30s") as server:
        simulate(tmp_path, port, tmp_path / "sim", "--events", events, *DYNAMIC)
        server.communicate(timeout=30)
        assert server.returncode == 0
    main(["run", str(tmp_path / "w.json"), "-p", policy, "--failures", events, "--out",
          str(tmp_path / "run")])  # fmt: skip
    (expected,) = (tmp_path / "run").glob("*/jobs.csv")
    assert own_rows(tmp_path / "sim_jobs.csv") == expected.read_bytes()


@pytest.mark.slow
def test_sched_cfg_chooses_the_policy(inputs, tmp_path) -> None:
    port = free_port()
    with process(*REBAT, "serve", "--endpoint", f"tcp://127.0.0.1:{port}") as server:
        config = json.dumps({"policy": "sfsj", "depth": "easy"})
        simulate(
            inputs, port, tmp_path / "sim", "--events", str(inputs / "f.events"), *DYNAMIC,
            "--sched-cfg", config,
        )  # fmt: skip
        server.communicate(timeout=30)
    expected = embedded(
        inputs, "easy-sfsj", tmp_path / "run", "--failures", str(inputs / "f.events")
    )
    assert own_rows(tmp_path / "sim_jobs.csv") == expected


@pytest.mark.slow
def test_an_instant_is_told_in_pieces_where_that_is_asked_for(tmp_path) -> None:
    """Three jobs end together, in one message or in three; every job completes in both cases."""
    profiles = {"d": {"type": "delay", "delay": 9}}
    jobs = tuple(Job(name, 1, 5_000_000, 20_000_000, "d") for name in "abc")
    write_workload(Workload("w", 4, jobs, profiles), tmp_path / "w.json")
    told = {}
    for options in ((), ("--split-instants",)):
        port, record = free_port(), tmp_path / f"talk{len(options)}.jsonl"
        serve = [*REBAT, "serve", "-p", "sfsj", "--endpoint", f"tcp://127.0.0.1:{port}"]
        with process(*serve, "--record", str(record)) as server:
            simulate(tmp_path, port, tmp_path / "sim", *DYNAMIC, *options)
            server.communicate(timeout=30)
        assert (tmp_path / "sim_jobs.csv").read_text().count("COMPLETED_SUCCESSFULLY") == 3
        messages = [json.loads(frame.data) for frame in read_frames(record) if frame.of_simulator]
        told[options] = [len(m["events"]) for m in messages if m["now"] == 14]
    assert told[()][0] == 3
    assert told["--split-instants",][:3] == [1, 1, 1]


@pytest.mark.parametrize("command", [["serve", "--endpoint"], ["simulate", "-w", "x.json", "-s"]])
def test_a_port_that_cannot_be_is_refused(command, inputs) -> None:
    """ZeroMQ would use port 34463 for 99999."""
    command = [str(inputs / "w.json") if word == "x.json" else word for word in command]
    done = subprocess.run(
        [*REBAT, *command, "tcp://127.0.0.1:99999"],
        capture_output=True, text=True, check=False, timeout=30,
    )  # fmt: skip
    assert done.returncode == 2
    assert "port 99999" in done.stderr


def test_a_port_in_use_is_told() -> None:
    with zmq.Context() as context, context.socket(zmq.REP) as peer:
        port = peer.bind_to_random_port("tcp://127.0.0.1")
        done = subprocess.run(
            [*REBAT, "serve", "--endpoint", f"tcp://127.0.0.1:{port}"],
            capture_output=True, text=True, check=False, timeout=30,
        )  # fmt: skip
    assert done.returncode == 2
    assert "cannot bind" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_peer_killed_in_mid_conversation_ends_serve_with_its_record_intact(
    inputs, tmp_path
) -> None:
    port, record = free_port(), tmp_path / "talk.jsonl"
    serve = [*REBAT, "serve", "-p", "sfsj", "--endpoint", f"tcp://127.0.0.1:{port}"]
    peer = [*REBAT, "simulate", "-w", str(inputs / "w.json"), "-s", f"tcp://127.0.0.1:{port}"]
    with process(*serve, "--record", str(record)) as server:
        with process(*peer, "-e", str(tmp_path / "never")) as simulator:
            wait_for(record)
            os.kill(simulator.pid, signal.SIGKILL)
        _, told = server.communicate(timeout=10)  # immediately: the timeout is 10 minutes
        assert server.returncode == 2
    assert "the simulator closed the connection; the simulation had not ended: at " in told
    assert "it was killed" in told
    assert "Traceback" not in told
    assert len(list(read_frames(record))) > 40
    assert not list(tmp_path.glob("never*"))


def wait_for(record: Path, lines: int = 40) -> None:
    """Wait until a conversation has more than ``lines`` messages."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if record.exists() and len(record.read_bytes().splitlines()) > lines:
            return
        time.sleep(0.005)
    raise AssertionError("the conversation did not get under way")


@pytest.mark.slow
def test_with_latency_a_decision_takes_effect_later(inputs, tmp_path) -> None:
    port = free_port()
    with process(*REBAT, "serve", "-p", "h212", "--endpoint", f"tcp://127.0.0.1:{port}") as server:
        late = ("--latency", "20us", "--events", str(inputs / "f.events"))
        simulate(inputs, port, tmp_path / "sim", *DYNAMIC, *late)
        server.communicate(timeout=30)
        assert server.returncode == 0
    with (tmp_path / "sim_jobs.csv").open() as lines:
        rows = [row for row in csv.DictReader(lines) if row["workload_name"] != PROBES]
    waits = [float(row["waiting_time"]) for row in rows]
    assert len(waits) >= 150
    assert min(waits) == 0.00002


@pytest.mark.slow
def test_a_scheduler_killed_in_mid_conversation_ends_simulate(inputs, tmp_path) -> None:
    port, record = free_port(), tmp_path / "talk.jsonl"
    serve = [*REBAT, "serve", "-p", "sfsj", "--endpoint", f"tcp://127.0.0.1:{port}"]
    peer = [*REBAT, "simulate", "-w", str(inputs / "w.json"), "-s", f"tcp://127.0.0.1:{port}"]
    with (
        process(*serve, "--record", str(record)) as server,
        process(*peer, "-e", str(tmp_path / "never")) as simulator,
    ):
        wait_for(record)
        os.kill(server.pid, signal.SIGKILL)
        _, told = simulator.communicate(timeout=10)
        assert simulator.returncode == 2
    assert "the scheduler closed the connection" in told
    assert "Traceback" not in told
    assert not list(tmp_path.glob("never*"))


@contextmanager
def batsim(port: int):
    """Act as Batsim: yield a function that sends events and returns those of the reply."""
    with zmq.Context() as context, context.socket(zmq.REQ) as peer:
        peer.setsockopt(zmq.LINGER, 0)
        peer.connect(f"tcp://127.0.0.1:{port}")

        def say(*events: tuple[str, dict]) -> list[dict]:
            told = [{"timestamp": 0, "type": kind, "data": data} for kind, data in events]
            peer.send_json({"now": 0, "events": told})
            assert peer.poll(20_000), "no reply"
            return peer.recv_json()["events"]

        yield say


BEGIN = (
    "SIMULATION_BEGINS",
    {"nb_compute_resources": 4, "config": {"dynamic-jobs-enabled": True},
     "profiles": {"w0": {"d": {"type": "delay", "delay": 9}}}},
)  # fmt: skip


def arrives(name: str, res: int = 1) -> tuple[str, dict]:
    job = {"id": f"w0!{name}", "res": res, "walltime": 20, "profile": "d", "subtime": 0}
    return "JOB_SUBMITTED", {"job_id": f"w0!{name}", "job": job}


OWN = """
from rebat.contract import NodeSet, Policy, Start


class Careless(Policy):
    def plan(self, view, changes):
        return [Start(attempt.id, NodeSet.of([99])) for attempt in changes.arrived]
"""


def test_a_batsim_that_deadlocks_is_told_with_what_was_refused(tmp_path) -> None:
    """Batsim then ends with exit status 0 and without a message."""
    (tmp_path / "own.py").write_text(OWN)
    port = free_port()
    policy = f"{tmp_path / 'own.py'}:Careless"
    with process(*REBAT, "serve", "-p", policy, "--endpoint", f"tcp://127.0.0.1:{port}") as server:
        with batsim(port) as say:
            say(BEGIN)
            assert say(arrives("1")) == []
        _, told = server.communicate(timeout=10)
        assert server.returncode == 2
    assert "refused at 0.000000 s: w0!1 cannot start: node 99 is not up and free" in told
    assert "0 jobs run and 1 wait, 1 proposals were refused (Batsim deadlocked" in told


def test_serve_that_ends_with_an_error_says_that_batsim_waits() -> None:
    port = free_port()
    with process(*REBAT, "serve", "--endpoint", f"tcp://127.0.0.1:{port}") as server:
        with zmq.Context() as context, context.socket(zmq.REQ) as peer:
            peer.setsockopt(zmq.LINGER, 0)
            peer.connect(f"tcp://127.0.0.1:{port}")
            peer.send_json({"now": 0, "events": [{"type": "UNKNOWN", "timestamp": 0, "data": {}}]})
            _, told = server.communicate(timeout=30)
        assert server.returncode == 2
    last = told.strip().splitlines()[-1]
    assert last.startswith("rebat: error: message 1 of the peer: ")
    assert last.endswith("if it still runs, stop it with Ctrl-C or kill")


def test_a_serve_that_is_ended_says_that_batsim_waits() -> None:
    port = free_port()
    with process(*REBAT, "serve", "--endpoint", f"tcp://127.0.0.1:{port}") as server:
        with batsim(port) as say:
            say(BEGIN)
            server.terminate()
            _, told = server.communicate(timeout=30)
        assert server.returncode == 143
    assert "if it still runs, stop it with Ctrl-C or kill" in told.splitlines()[-2]


@pytest.mark.slow
def test_a_platform_with_another_number_of_hosts_is_told(tmp_path) -> None:
    """Batsim's first message names the workload file, but does not contain its nb_res."""
    write_workload(
        Workload("w", 2, (Job("1", 1, 0, None, "d"),), {"d": {"type": "delay", "delay": 5}}),
        tmp_path / "w.json",
    )
    main(["platform", "generate", "flat:3", "--zero-latency", "-o", str(tmp_path / "p.xml")])
    for more, n_warnings in (([], 0), (["-p", str(tmp_path / "p.xml")], 1)):
        port = free_port()
        with process(*REBAT, "serve", "--endpoint", f"tcp://127.0.0.1:{port}") as server:
            done = subprocess.run(
                [*REBAT, "simulate", "-w", str(tmp_path / "w.json"), "-e", str(tmp_path / "o"),
                 "-q", "-s", f"tcp://127.0.0.1:{port}", *DYNAMIC, *more],
                check=True, capture_output=True, text=True,
            )  # fmt: skip
            _, told = server.communicate(timeout=30)
        warning = "warning: the platform has 3 hosts, but the workload"
        assert (told.count(warning), done.stderr.count(warning)) == (n_warnings, n_warnings)
        assert not n_warnings or f"{tmp_path / 'w.json'} is for 2 (nb_res)" in told


HOSTS = """<platform version="4.1"><zone id="z" routing="Full">
<host id="master_host" speed="1Gf"/><host id="h1" speed="100Mf" core="4"/>
<host id="h2" speed="{speed}"/>
<host id="pfs" speed="5Gf"><prop id="role" value="storage"/></host></zone></platform>
"""
COMPUTING = {"type": "parallel_homogeneous", "cpu": 2e9, "com": 0}
COMPOSED = {"type": "composed", "repeat": 2, "seq": ["c"]}


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "prefix"), [("4", "o_"), ("5", "o")])
@pytest.mark.parametrize(("speed", "seconds"), [("100Mf", 20), (None, 2)])
def test_jobs_compute_at_the_speed_of_the_platform(
    protocol: str, prefix: str, speed: str | None, seconds: int, tmp_path: Path
) -> None:
    """A job computes 2 Gflop, and another one computes them twice. The cores have no effect."""
    jobs = (Job("1", 2, 0, None, "c"), Job("2", 1, 0, None, "twice"))
    profiles = {"c": COMPUTING, "twice": COMPOSED}
    write_workload(Workload("w", 2, jobs, profiles), tmp_path / "w.json")
    (tmp_path / "p.xml").write_text(HOSTS.format(speed=speed))
    port = free_port()
    record = tmp_path / "talk.jsonl"
    server = ["serve", "--record", str(record), "--endpoint", f"tcp://127.0.0.1:{port}"]
    flags = DYNAMIC if protocol == "4" else ["--protocol", "5"]
    with process(*REBAT, *server) as serve:
        done = subprocess.run(
            [*REBAT, "simulate", "-w", str(tmp_path / "w.json"), "-e", str(tmp_path / "o"), "-q",
             "-s", f"tcp://127.0.0.1:{port}", *flags,
             *(["-p", str(tmp_path / "p.xml")] if speed else [])],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        serve.communicate(timeout=30)
    with (tmp_path / f"{prefix}jobs.csv").open() as file:
        times = {row["job_id"]: float(row["execution_time"]) for row in csv.DictReader(file)}
    assert {job: times[job] for job in "12"} == {"1": seconds, "2": 2 * seconds}
    note = "1 profile computes (the first is 'c'): their run times are computed with hosts of 1 Gf"
    assert (note in done.stderr) == (speed is None)
    assert "warning" not in done.stderr  # the storage host is no compute host
    if protocol == "5":
        sent = f'"computation_speed":[{(1e8 if speed else 1e9)}]'
        assert sent in record.read_text().replace(" ", "").replace('\\"', '"')


def test_hosts_of_different_speeds_are_refused_if_a_job_computes(tmp_path: Path) -> None:
    (tmp_path / "p.xml").write_text(HOSTS.format(speed="200Mf"))
    write_workload(
        Workload("w", 2, (Job("1", 1, 0, None, "c"),), {"c": COMPUTING}), tmp_path / "w.json"
    )
    for more in ([], ["--protocol", "5"]):
        done = subprocess.run(
            [*REBAT, "simulate", "-w", "w.json", "-p", "p.xml", "--timeout", "1s", *more],
            cwd=tmp_path, capture_output=True, text=True, check=False,
            env=os.environ | {"PYTHONPATH": str(ROOT / "schedulers")},
        )  # fmt: skip
        assert done.returncode == 2
        assert "p.xml: its hosts have different speeds, but profile 'c' computes" in done.stderr


def test_the_last_line_counts_rejected_jobs_with_the_first_reason() -> None:
    """With a spare node, a job on all nodes can never start."""
    port, policy = free_port(), "baseline:react=replacement,spares=1"
    serve = [*REBAT, "serve", "-p", policy, "--endpoint", f"tcp://127.0.0.1:{port}"]
    with process(*serve) as server:
        with batsim(port) as say:
            say(BEGIN)
            assert [event["type"] for event in say(arrives("7", 4))] == ["REJECT_JOB"]
            say(("SIMULATION_ENDS", {}))
            _, told = server.communicate(timeout=30)
        assert server.returncode == 0
    assert re.search(r"1 job rejected \(first: w0!7: .+\); decision time", told.splitlines()[-1])


@pytest.mark.slow
def test_strangers_on_the_port_neither_end_nor_wedge_a_simulation() -> None:
    port = free_port()
    with (
        process(*REBAT, "serve", "-p", "sfsj", "--endpoint", f"tcp://127.0.0.1:{port}") as server,
        batsim(port) as say,
        zmq.Context() as context,
    ):
        say(BEGIN)
        with socket.create_connection(("127.0.0.1", port)) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 100)
        for kind, parts in ((zmq.REQ, [b"{}"]), (zmq.DEALER, [b"\xff" * 500]), (zmq.DEALER, [b""])):
            with context.socket(kind) as stranger:
                stranger.setsockopt(zmq.LINGER, 500)
                stranger.connect(f"tcp://127.0.0.1:{port}")
                stranger.send_multipart(parts)
                assert not stranger.poll(200), "a stranger was answered"
        assert [event["type"] for event in say(arrives("1", 4))] == ["EXECUTE_JOB"]
        say(("SIMULATION_ENDS", {}))
        _, told = server.communicate(timeout=10)
        assert server.returncode == 0
    assert told.count("another peer than the simulator was ignored") >= 3


STRANGER = """
import os, sys
import zmq
port, user, begin = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].encode()
os.setgroups([]); os.setgid(user); os.setuid(user)
with zmq.Context() as context, context.socket(zmq.REQ) as peer:
    peer.setsockopt(zmq.LINGER, 500)
    peer.connect(f"tcp://127.0.0.1:{port}")
    peer.send(begin)
    print(os.getuid(), "answered" if peer.poll(2000) else "not answered")
"""


@pytest.mark.slow
@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "lo", "*"])
def test_another_user_cannot_be_the_simulator(address: str) -> None:
    """This holds also if the other user connects first."""
    if os.getuid() != 0:
        pytest.skip("needs root: only root may become another user")
    port, nobody = free_port(), pwd.getpwnam("nobody").pw_uid
    event = {"timestamp": 0, "type": BEGIN[0], "data": BEGIN[1]}
    begin = json.dumps({"now": 0, "events": [event]})
    with process(*REBAT, "serve", "--endpoint", f"tcp://{address}:{port}") as server:
        while "waits at" not in server.stderr.readline():
            assert server.poll() is None
        done = subprocess.run(
            [sys.executable, "-c", STRANGER, str(port), str(nobody), begin],
            capture_output=True, text=True, check=True, timeout=60, cwd="/",
        )  # fmt: skip
        assert done.stdout == f"{nobody} not answered\n"
        with batsim(port) as say:
            say(BEGIN)
            say(("SIMULATION_ENDS", {}))
        _, told = server.communicate(timeout=10)
        assert server.returncode == 0
    assert f"a message of another user (uid {nobody}) was ignored" in told


def test_whose_a_connection_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        ours, _ = server.accept()
        with ours, client:
            assert zmq_link.refused(ours.fileno()) is None
            monkeypatch.setattr(os, "getuid", lambda: 4242)
            expected = None if os.geteuid() == 0 else f"another user (uid {os.geteuid()})"
            assert zmq_link.refused(ours.fileno()) == expected
            monkeypatch.setattr(zmq_link, "_ROOT", -1)
            assert zmq_link.refused(ours.fileno()) == f"another user (uid {os.geteuid()})"
            client.close()
            assert zmq_link.refused(ours.fileno()) == "a peer that has disconnected"
            monkeypatch.setattr(zmq_link, "SOCKETS", tmp_path / "none")
            assert zmq_link.refused(ours.fileno()) is None  # as on systems other than Linux
    assert zmq_link.refused(-1) is None


def test_a_connection_of_an_ipv6_socket_has_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel lists this end in the table of IPv4, and the other end in that of IPv6."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.socket(socket.AF_INET6)
        client.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        client.connect(("::ffff:127.0.0.1", server.getsockname()[1]))
        ours, _ = server.accept()
        with ours, client:
            assert zmq_link.refused(ours.fileno()) is None
            monkeypatch.setattr(os, "getuid", lambda: 4242)
            monkeypatch.setattr(zmq_link, "_ROOT", -1)
            assert zmq_link.refused(ours.fileno()) == f"another user (uid {os.geteuid()})"


def test_a_local_socket_has_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert zmq_link.refused(ours.fileno()) is None
        monkeypatch.setattr(os, "getuid", lambda: 4242)
        monkeypatch.setattr(zmq_link, "_ROOT", -1)
        assert zmq_link.refused(ours.fileno()) == f"another user (uid {os.geteuid()})"


def test_a_message_that_is_too_long_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zmq_link, "MOST_BYTES", 1000)
    answers: list[bytes] = []

    def bound(endpoint: str) -> None:
        Thread(target=send, args=[endpoint], daemon=True).start()

    def send(endpoint: str) -> None:
        with zmq.Context() as context, context.socket(zmq.REQ) as peer:
            peer.setsockopt(zmq.LINGER, 500)
            peer.connect(endpoint)
            peer.send(b"x" * 10)
            answers.append(peer.recv())
            peer.send(b"x" * 2000)
            peer.poll(3000)

    received: list[int] = []

    def answer(data: bytes) -> bytes:
        received.append(len(data))
        return b"ok"

    with pytest.raises(zmq_link.PeerGone):
        zmq_link.serve("tcp://127.0.0.1:*", answer, lambda: False, timeout_s=10, on_bound=bound)
    assert (received, answers) == ([10], [b"ok"])


def test_nonsense_from_the_peer_ends_serve_with_one_line() -> None:
    port = free_port()
    with (
        process(*REBAT, "serve", "--endpoint", f"tcp://127.0.0.1:{port}") as server,
        zmq.Context() as context,
        context.socket(zmq.REQ) as peer,
    ):
        peer.setsockopt(zmq.LINGER, 0)
        peer.connect(f"tcp://127.0.0.1:{port}")
        peer.send(b'{"now": 0, "events": [{"timestamp": 0, "type": "JOB_KILLED"}]}')
        _, told = server.communicate(timeout=30)
        assert server.returncode == 2
    assert "message 1 of the peer" in told
    assert "Traceback" not in told


@pytest.mark.slow
def test_a_scheduler_that_never_answers_is_told(inputs, tmp_path) -> None:
    done = subprocess.run(
        [*REBAT, "simulate", "-w", str(inputs / "w.json"), "-s",
         f"tcp://127.0.0.1:{free_port()}", "--timeout", "1s", "-e", str(tmp_path / "x")],
        capture_output=True, text=True, check=False, timeout=30,
    )  # fmt: skip
    assert done.returncode == 2
    assert "the scheduler" in done.stderr
    assert not list(tmp_path.iterdir())


needs_pybatsim = pytest.mark.skipif(
    importlib.util.find_spec("batsim") is None, reason="needs pybatsim 3.2.1 (make test)"
)


def pybatsim(scheduler: str, port: int, *more: str):
    program = Path(sys.executable).with_name("pybatsim")
    return process(
        str(program), "-v", "error", "-t", "30000", "-s", f"tcp://127.0.0.1:{port}", *more,
        scheduler,
    )  # fmt: skip


@pytest.mark.slow
@needs_pybatsim
@pytest.mark.parametrize(
    ("scheduler", "failing"),
    [("fillerSchedWithEvents", True), ("fillerSched", False), ("easyBackfill", False)],
)
def test_pybatsims_own_schedulers_run_to_the_end(inputs, scheduler, failing, tmp_path) -> None:
    port = free_port()
    events = ["--events", str(inputs / "f.events")] if failing else []
    with pybatsim(scheduler, port):
        simulate(inputs, port, tmp_path / "sim", *events)
    rows = (tmp_path / "sim_jobs.csv").read_text().splitlines()
    assert len(rows) == 151
    assert all("COMPLETED" in row for row in rows[1:])


@pytest.mark.slow
@needs_pybatsim
def test_rebat_inside_pybatsim_decides_the_same(inputs, tmp_path) -> None:
    path = subprocess.run(
        [*REBAT, "pybatsim-path"], check=True, capture_output=True, text=True
    ).stdout.strip()
    port = free_port()
    with pybatsim(path, port, "-o", '{"policy": "sfsj"}'):
        simulate(inputs, port, tmp_path / "sim", "--events", str(inputs / "f.events"), *DYNAMIC)
    expected = embedded(inputs, "sfsj", tmp_path / "run", "--failures", str(inputs / "f.events"))
    assert own_rows(tmp_path / "sim_jobs.csv") == expected


def test_pybatsim_is_installed_with_the_documented_line() -> None:
    """The Makefile installs the same requirement as the documented line."""
    used = re.search(r"^PYBATSIM := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    page = (ROOT / "docs/how-to/batsim.md").read_text()
    lines = re.findall(r"^pip install .*pybatsim.*$", page, re.MULTILINE)
    assert lines == [f"pip install {used.group(1)}"]


def test_the_entry_point_of_pybatsim_4_is_declared() -> None:
    from importlib.metadata import entry_points

    (entry,) = (e for e in entry_points(group="pybatsim.schedulers") if e.name == "rebat")
    assert entry.value == "rebat.adapters.rebatScheduler:RebatScheduler"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("events", "warning"),
    [([], "ended without a job"), ([arrives("1")], "ended while 1 job ran and 0 waited")],
)
def test_a_simulation_that_ends_too_early_is_a_warning(events, warning) -> None:
    port = free_port()
    with process(*REBAT, "serve", "--endpoint", f"tcp://127.0.0.1:{port}") as server:
        with batsim(port) as say:
            say(BEGIN, *events)
            say(("SIMULATION_ENDS", {}))
        _, told = server.communicate(timeout=30)
        assert server.returncode == 0
    assert f"warning: the simulation {warning}" in told
