#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check rebat's imports of accounting exports from a real Slurm.

The script needs a Slurm with at least two nodes and accounting, and the right to set nodes down:

    export SLURM_ACCOUNTING=1 SLURM_NODES=4
    eval "$(scripts/one-machine-slurm.sh up)"
    scripts/check-slurm-import.py
    scripts/one-machine-slurm.sh down

It submits jobs that succeed, fail, reach their limit and are cancelled, and sets the node of a
running job down. Then it compares the imported jobs, attempts and down times with the actual ones.
This takes two to three minutes. Exit status 0: equal; 1: different.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rebat.records.foreign import EXPORT, EXPORT_EVENTS

SLACK_S = 3.0
"""Tolerance in seconds. Slurm's times are whole seconds, and jobs end some time after the cause."""

NODE = "node2"


def slurm(*command: str) -> str:
    """Run a command of Slurm, and return its output."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"check-slurm-import: {' '.join(command)}: {done.stderr.strip()}")
    return done.stdout.strip()


def submit(script: str, *options: str) -> str:
    """Submit a batch job, and return its id."""
    return slurm("sbatch", "--parsable", "--output=/dev/null", *options, "--wrap", script)


def wait_for(job: str, state: str) -> None:
    """Wait until a job has a state."""
    until = time.monotonic() + 60
    while slurm("squeue", "--noheader", "--job", job, "--format=%T") != state:
        if time.monotonic() > until:
            sys.exit(f"check-slurm-import: job {job} is not {state} after 60 s")
        time.sleep(0.2)


def play() -> tuple[dict[str, str], tuple[float, float]]:
    """Submit jobs and set a node down. Return the expected causes by job, and the down time."""
    ends = {submit("sleep 2"): "completed" for _ in range(3)}
    ends[submit("sleep 2; exit 3")] = "job failed"
    ends[submit("sleep 600", "--time=1")] = "walltime"
    array = submit("sleep 1", "--array=1-3")
    ends |= {f"{array}_{task}": "completed" for task in (1, 2, 3)}
    hit = submit("sleep 8", f"--nodelist={NODE}", "--requeue")
    ends[hit] = "completed"
    wait_for(hit, "RUNNING")
    time.sleep(3)
    down_s = time.time()
    slurm("scontrol", "update", f"nodename={NODE}", "state=down", "reason=check")
    time.sleep(4)
    up_s = time.time()
    slurm("scontrol", "update", f"nodename={NODE}", "state=resume")
    slurm("scontrol", "update", f"jobid={hit}", "StartTime=now")
    cancelled = submit("sleep 600")
    wait_for(cancelled, "RUNNING")
    time.sleep(2)
    slurm("scancel", cancelled)
    ends[cancelled] = "cancelled"
    while slurm("squeue", "--noheader"):
        time.sleep(1)
    time.sleep(10)  # Slurm updates the database some seconds later.
    return ends | {f"{hit} before": "node failure"}, (down_s, up_s)


def rebat(folder: Path, *arguments: str) -> str:
    """Run rebat in a folder, and return its output."""
    command = [sys.executable, "-m", "rebat", *arguments]
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"check-slurm-import: rebat {' '.join(arguments)}: {done.stderr}{done.stdout}")
    return done.stdout


def imported(folder: Path, since_s: float) -> None:
    """Export the accounting with the documented commands, and import it."""
    since = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(since_s))
    for command in (EXPORT, EXPORT_EVENTS):
        text = command.replace("2024-01-01", since)
        subprocess.run(["bash", "-c", text], cwd=folder, check=True)
    past = ("-o", "jobs.json", "--schedule", "past")
    print(rebat(folder, "workload", "import", "jobs.txt", "--events", "events.txt", *past))
    site = ("--workload", "jobs.json", "-o", "site.events")
    print(rebat(folder, "failures", "import", "events.txt", *site))
    rebat(folder, "validate", "past", "--workload", "jobs.json", "--events", "site.events")
    print(
        rebat(folder, "run", "jobs.json", "-p", "easy", "--failures", "site.events", "--out", "o")
    )


def differences(folder: Path, ends: dict[str, str], down: tuple[float, float]) -> list[str]:
    """Return lines that describe differences between the imports and the actual jobs."""
    causes = {}
    with (folder / "past/recorded/rebat_attempts.csv").open() as file:
        for row in csv.DictReader(file):
            before = " before" if row["cause"] == "node failure" else ""
            causes[row["job_id"].split("#")[0] + before] = row["cause"]
    lines = [
        f"{job}: {ends.get(job)}, imported as {causes.get(job)}"
        for job in sorted(ends.keys() | causes.keys())
        if causes.get(job) != ends.get(job)
    ]
    machine = json.loads((folder / "jobs.json").read_text())["machine"]
    events = [json.loads(line) for line in (folder / "site.events").read_text().splitlines()]
    times = [event["timestamp"] + machine["origin_s"] for event in events]
    if len(times) != 2 or any(abs(a - b) > SLACK_S for a, b in zip(times, down, strict=True)):
        lines.append(f"{NODE} was down from {down[0]:.1f} to {down[1]:.1f}, imported as {times}")
    return lines


def main() -> None:
    """Submit the jobs, import the accounting, and compare."""
    begin_s = time.time() - 1
    ends, down = play()
    with tempfile.TemporaryDirectory() as folder:
        imported(Path(folder), begin_s)
        lines = differences(Path(folder), ends, down)
    for line in lines:
        print(f"different: {line}")
    print(f"{len(ends)} attempts and 1 down time: {'different' if lines else 'equal'}")
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
