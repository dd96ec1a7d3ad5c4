# SPDX-License-Identifier: Apache-2.0
"""Schedules to compare, from records of Batsched, a running Batsched, or rebat's presets."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rebat.core.errors import InputError
from rebat.core.files import folder, names, write_lines
from rebat.core.jobs import Workload
from rebat.engine.engine import Engine, EngineOptions, OnProgress
from rebat.policies.presets import preset
from rebat.results.files.batsim_csv import jobs_csv
from rebat.results.files.batsim_files import JobsFile, read_jobs
from rebat.runs.single import simulate, write_batsim_files
from rebat.wire.conversation import run_remote
from rebat.wire.zmq_link import connect

VARIANTS = {
    "batsched-conservative": "conservative_bf",
    "batsched-easy": "easy_bf",
    "batsched-fcfs": "fcfs",
}
"""For each preset, the name of the same scheduler in Batsched (option ``-v``)."""

BATSIM = EngineOptions(dynamic_jobs=False, profile_reuse=False, list_resources=True)
"""Batsim without options. Batsched registers no jobs, and does not finish the registration."""

PROGRAM = "batsched"
START_S = 120.0
"""Maximum time until Batsched has started, in seconds."""
POLL_S = 0.05


def recorded() -> dict[str, dict[str, Path]]:
    """Return the files of the schedules included in rebat. The keys are workload and preset."""
    files: dict[str, dict[str, Path]] = {}
    for name in names("workloads", ".json"):
        for policy, variant in VARIANTS.items():
            file = folder("workloads") / "batsched" / f"{name}.{variant}.csv.gz"
            if file.is_file():
                files.setdefault(name, {})[policy] = file
    return files


def recorded_of(workload: Path) -> dict[str, Path]:
    """Return the included schedules of a workload, by preset. Workloads of users have none."""
    shipped = names("workloads", ".json")
    return next((files for name, files in recorded().items() if shipped[name] == workload), {})


def installed() -> str | None:
    """Return the path of the program batsched, or None if it is not on the PATH."""
    return shutil.which(PROGRAM)


def embedded(workload: Workload, policy: str, on_progress: OnProgress | None = None) -> JobsFile:
    """Simulate a preset on the embedded engine, and return the schedule."""
    result = simulate(workload, preset(policy), on_progress=on_progress)
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / f"{policy}_jobs.csv"
        write_lines(file, jobs_csv(result.jobs))
        return read_jobs(file)


def played(
    workload: Workload,
    policy: str,
    endpoint: str,
    timeout_s: float,
    on_progress: OnProgress | None = None,
) -> JobsFile:
    """Simulate on the embedded engine with the Batsched that listens at ``endpoint``."""
    engine = Engine(workload, options=BATSIM)
    with connect(endpoint, timeout_s=timeout_s) as ask:
        run_remote(engine, ask, on_progress)
    with tempfile.TemporaryDirectory() as scratch:
        file, _ = write_batsim_files(str(Path(scratch) / policy), engine, [])
        return read_jobs(file)


@contextmanager
def listening(program: str, policy: str) -> Iterator[str]:
    """Run Batsched during the block and yield its endpoint."""
    port = _free_port()
    endpoint = f"tcp://127.0.0.1:{port}"
    command = [program, "-v", VARIANTS[policy], "-s", endpoint, "--verbosity", "quiet"]
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            _wait_for(process, port, log)
            yield endpoint
        finally:
            process.terminate()
            process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Wait until the process listens on the port."""
    until = time.monotonic() + START_S
    expected = "a scheduler that listens on a socket, like Batsched 1.4"
    program = str(process.args[0])  # type: ignore[index]
    while time.monotonic() < until:
        if process.poll() is not None:
            last_line = log.read_text(errors="replace").strip().splitlines()[-1:]
            problem = ": ".join([f"ended with exit status {process.returncode}", *last_line])
            raise InputError(problem, program, expected)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(POLL_S)
    raise InputError(f"does not accept connections after {START_S:.0f} s", program, expected)
