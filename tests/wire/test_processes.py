"""Real processes over real sockets on the loopback interface."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import zmq

from rebat.models.checkpoint import add_young_daly
from rebat.models.failures import generate_events
from rebat.models.failures.events import write_events
from rebat.transport.recording import read_recording
from rebat.workloads.batsim_json import write_workload
from rebat.workloads.generate import synthetic

REBAT = [sys.executable, "-m", "rebat"]
DYNAMIC = ["--enable-dynamic-jobs", "--acknowledge-dynamic-jobs", "--enable-profile-reuse"]


def free_port() -> int:
    with zmq.Context() as context, context.socket(zmq.REP) as socket:
        return socket.bind_to_random_port("tcp://127.0.0.1")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> Path:
    """150 jobs with checkpoints on 128 nodes, and failures every half hour."""
    folder = tmp_path_factory.mktemp("wire")
    workload = add_young_daly(
        synthetic(1, n_jobs=150), n_nodes=128, mtbf_s=1800, cost_s=60.0, recovery_s=60.0
    )
    write_workload(workload, folder / "w.json")
    write_events(
        generate_events("authors", 1800, 600, 128, horizon_s=100_000, seed=2), folder / "f.events"
    )
    return folder


@contextmanager
def process(*command: str, **options):
    """A process that is gone when the block ends."""
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


def embedded(inputs: Path, policy: str, out: Path, *more: str) -> bytes:
    subprocess.run(
        [*REBAT, "run", str(inputs / "w.json"), "-p", policy, "--out", str(out), *more],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return (out / policy / "jobs.csv").read_bytes()


@pytest.mark.parametrize("policy", ["baseline", "sfsj", "batsched-conservative"])
def test_over_the_wire_the_jobs_are_those_of_an_embedded_run(inputs, policy, tmp_path) -> None:
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
    assert (tmp_path / "sim_jobs.csv").read_bytes() == embedded(
        inputs, policy, tmp_path / "run", *more
    )
    talk = list(read_recording(record))
    assert [line.seq for line in talk] == list(range(len(talk)))
    assert "SIMULATION_ENDS" in talk[-2].raw


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
    assert (tmp_path / "sim_jobs.csv").read_bytes() == expected


def test_a_port_in_use_is_told() -> None:
    with zmq.Context() as context, context.socket(zmq.REP) as socket:
        port = socket.bind_to_random_port("tcp://127.0.0.1")
        done = subprocess.run(
            [*REBAT, "serve", "--endpoint", f"tcp://127.0.0.1:{port}"],
            capture_output=True, text=True, check=False, timeout=30,
        )  # fmt: skip
    assert done.returncode == 2
    assert "cannot bind" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_peer_killed_in_mid_conversation_ends_serve_with_its_record_intact(
    inputs, tmp_path
) -> None:
    port, record = free_port(), tmp_path / "talk.jsonl"
    serve = [*REBAT, "serve", "-p", "sfsj", "--endpoint", f"tcp://127.0.0.1:{port}"]
    peer = [*REBAT, "simulate", "-w", str(inputs / "w.json"), "-s", f"tcp://127.0.0.1:{port}"]
    with process(*serve, "--timeout", "2s", "--record", str(record)) as server:
        with process(*peer, "-e", str(tmp_path / "never")) as simulator:
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline:
                if record.exists() and len(record.read_bytes().splitlines()) > 40:
                    break
                time.sleep(0.005)
            os.kill(simulator.pid, signal.SIGKILL)
        _, told = server.communicate(timeout=30)
        assert server.returncode == 2
    assert "vanished" in told
    assert "Traceback" not in told
    assert len(list(read_recording(record))) > 40
    assert not list(tmp_path.glob("never*"))


def test_nonsense_from_the_peer_ends_serve_with_one_line() -> None:
    port = free_port()
    with (
        process(*REBAT, "serve", "--endpoint", f"tcp://127.0.0.1:{port}") as server,
        zmq.Context() as context,
        context.socket(zmq.REQ) as socket,
    ):
        socket.setsockopt(zmq.LINGER, 0)
        socket.connect(f"tcp://127.0.0.1:{port}")
        socket.send(b'{"now": 0, "events": [{"timestamp": 0, "type": "JOB_KILLED"}]}')
        _, told = server.communicate(timeout=30)
        assert server.returncode == 2
    assert "message 1 of the peer" in told
    assert "Traceback" not in told


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
    importlib.util.find_spec("batsim") is None, reason="needs pybatsim 3.2.1 (make setup)"
)


def pybatsim(scheduler: str, port: int, *more: str):
    program = Path(sys.executable).with_name("pybatsim")
    return process(
        str(program), "-v", "error", "-t", "30000", "-s", f"tcp://127.0.0.1:{port}", *more,
        scheduler,
    )  # fmt: skip


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


@needs_pybatsim
def test_rebat_inside_pybatsim_decides_the_same(inputs, tmp_path) -> None:
    path = subprocess.run(
        [*REBAT, "pybatsim-path"], check=True, capture_output=True, text=True
    ).stdout.strip()
    port = free_port()
    with pybatsim(path, port, "-o", '{"policy": "sfsj"}'):
        simulate(inputs, port, tmp_path / "sim", "--events", str(inputs / "f.events"), *DYNAMIC)
    expected = embedded(inputs, "sfsj", tmp_path / "run", "--failures", str(inputs / "f.events"))
    assert (tmp_path / "sim_jobs.csv").read_bytes() == expected


def test_the_entry_point_of_pybatsim_4_is_declared() -> None:
    from importlib.metadata import entry_points

    (entry,) = (e for e in entry_points(group="pybatsim.schedulers") if e.name == "rebat")
    assert entry.value == "rebat.adapters.rebatScheduler:RebatScheduler"
