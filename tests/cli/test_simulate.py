# SPDX-License-Identifier: Apache-2.0
"""``rebat simulate`` with schedulers that forget something, and on machines of another size."""

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import zmq

from rebat.cli.main import main
from rebat.kernels import pool
from rebat.models.node_pool import NodePool, compile_kernels
from rebat.wire.batsim5 import encode_hello

WORKLOAD = {
    "nb_res": 2,
    "jobs": [{"id": "1", "subtime": 0, "res": 1, "walltime": 20, "profile": "d"}],
    "profiles": {"d": {"type": "delay", "delay": 10}},
}


def starts4(data: bytes) -> bytes:
    """Start each job on node 0, and send nothing else."""
    message = json.loads(data)
    started = [
        {"timestamp": message["now"], "type": "EXECUTE_JOB",
         "data": {"job_id": event["data"]["job_id"], "alloc": "0"}}
        for event in message["events"] if event["type"] == "JOB_SUBMITTED"
    ]  # fmt: skip
    return json.dumps({"now": message["now"], "events": started}).encode()


def starts5(data: bytes) -> bytes:
    """The same for Batsim 5. The hello requests the registration of jobs."""
    if data == struct.pack("=I", 0):
        return encode_hello()
    message = json.loads(data.rstrip(b"\0"))
    placement = {
        "host_allocation": "0",
        "executor_placement_type": "PredefinedExecutorPlacementStrategyWrapper",
        "executor_placement": {"strategy": "SpreadOverHostsFirst"},
    }
    started = [
        {"timestamp": message["now"], "event_type": "ExecuteJobEvent",
         "event": {"job_id": event["event"]["job_id"], "allocation": placement}}
        for event in message["events"] if event["event_type"] == "JobSubmittedEvent"
    ]  # fmt: skip
    return json.dumps({"now": message["now"], "events": started}).encode()


@contextmanager
def scheduler(answer: Callable[[bytes], bytes]) -> Iterator[str]:
    """Answer messages in a thread, and yield the address."""
    with zmq.Context() as context, context.socket(zmq.REP) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        port, over = socket.bind_to_random_port("tcp://127.0.0.1"), threading.Event()

        def serve() -> None:
            while not over.is_set():
                if socket.poll(50):
                    socket.send(answer(socket.recv()))

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"tcp://127.0.0.1:{port}"
        over.set()
        thread.join()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("w.json").write_text(json.dumps(WORKLOAD))


DYNAMIC = ["--enable-dynamic-jobs", "--acknowledge-dynamic-jobs"]


@pytest.mark.parametrize(
    ("answer", "options", "message", "files"),
    [
        (starts4, DYNAMIC, "registration_finished", ["wrote o_jobs.csv", "wrote o_schedule.csv"]),
        (starts5, ["--protocol", "5"], "FinishRegistrationEvent", ["wrote ojobs.csv"]),
    ],
)
def test_a_scheduler_that_does_not_finish_the_registration(
    answer, options, message: str, files: list[str], capsys
) -> None:
    with scheduler(answer) as address, pytest.raises(SystemExit) as end:
        main(["simulate", "-w", "w.json", "-s", address, "-e", "o", *options])
    assert end.value.code == 2
    out, err = capsys.readouterr()
    assert out.splitlines() == files
    assert "all jobs have ended, but the scheduler did not send " in err
    assert message in err
    jobs = Path(files[0].removeprefix("wrote ")).read_text()
    assert "COMPLETED_SUCCESSFULLY" in jobs


@pytest.mark.parametrize("protocol", ["4", "5"])
def test_jobs_that_still_wait_are_named_and_the_others_are_written(protocol: str, capsys) -> None:
    two = WORKLOAD | {"jobs": [*WORKLOAD["jobs"], {**WORKLOAD["jobs"][0], "id": "2"}]}
    Path("w.json").write_text(json.dumps(two))
    answer = starts4 if protocol == "4" else starts5

    def first_only(data: bytes) -> bytes:
        text = answer(data).decode(errors="replace")
        if "w0!2" not in text:
            return answer(data)
        reply = json.loads(text)
        reply["events"] = [event for event in reply["events"] if "w0!2" not in str(event)]
        return json.dumps(reply).encode()

    with scheduler(first_only) as address, pytest.raises(SystemExit):
        main(["simulate", "-w", "w.json", "-s", address, "-e", "o", "--protocol", protocol])
    out, err = capsys.readouterr()
    assert "no event is left, but jobs still wait (jobs that have not ended: 1" in err
    assert out.startswith("wrote o")


@pytest.mark.parametrize("nodes", ["1", "3"])
def test_a_machine_of_another_size_is_reported(nodes: str, capsys) -> None:
    with scheduler(starts4) as address:
        main(["simulate", "-w", "w.json", "-s", address, "-e", "o", "--nodes", nodes])
    err = capsys.readouterr().err
    hosts = "1 host" if nodes == "1" else "3 hosts"
    assert f"warning: the machine has {hosts}, but the workload w is for 2 (nb_res)" in err


def test_the_size_of_the_workload_is_not_reported(capsys) -> None:
    with scheduler(starts4) as address:
        main(["simulate", "-w", "w.json", "-s", address, "-e", "o", "--nodes", "2"])
    assert "warning" not in capsys.readouterr().err


def test_no_kernel_is_compiled_while_a_scheduler_waits(monkeypatch) -> None:
    """pybatsim waits 2 s for a message; a kernel takes about 1 s to compile."""
    used: set[str] = set()
    ready: set[str] = set()

    def watched(name: str, function: Callable) -> Callable:
        def call(*arguments):
            used.add(name)
            return function(*arguments)

        return call

    for name, function in vars(pool).copy().items():
        if callable(function) and getattr(function, "__module__", "") == pool.__name__:
            monkeypatch.setattr(pool, name, watched(name, function))
    compile_kernels()
    ready, used = used.copy(), set()
    events = [
        {"type": "machine_unavailable", "resources": "1", "timestamp": 3},
        {"type": "machine_available", "resources": "1", "timestamp": 5},
    ]
    Path("f.events").write_text("\n".join(map(json.dumps, events)))
    with scheduler(starts4) as address:
        main(["simulate", "-w", "w.json", "-s", address, "-e", "o", "--events", "f.events"])
    assert NodePool(1).n_free == 1
    assert used <= ready
