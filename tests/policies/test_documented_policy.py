# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/policies.md work as described, embedded and over the wire."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import ClassVar

import pytest

import rebat
from rebat.cli.main import main
from rebat.contract import Cause, Policy, Start, Stop
from rebat.core.jobs import Job
from rebat.core.units import to_us
from rebat.workloads.batsim_json import write_workload
from tests.support.scenarios import machine
from tests.wire.test_processes import DYNAMIC, REBAT, free_port, process, simulate

DOCS = Path(__file__).parents[2] / "docs" / "policies.md"
CHECKPOINTS = {
    "checkpoint_period": 60, "checkpoint_cost": 1, "recovery_cost": 2, "Tfirst": 60, "Rfirst": 0,
}  # fmt: skip


def example(folder: Path) -> str:
    """Write the example to a file; return the specification of its class."""
    code = re.findall(r"```python[^\n]*\n(.*?)```", DOCS.read_text(), re.S)[-1]
    (folder / "morning.py").write_text(code)
    assert len(code.strip().splitlines()) < 30
    return f"{folder / 'morning.py'}:Morning"


def write_inputs(folder: Path) -> None:
    """Write two jobs of 4 nodes and 100 s with checkpoints. The second job can shrink."""
    profiles = {"p": {"type": "delay", "delay": 100, **CHECKPOINTS}}
    shape = {"shape": {"kind": "malleable", "min": 1, "max": 8}}
    jobs = (Job("1", 4, 0, to_us(300), "p"), Job("2", 4, 0, to_us(300), "p", shape))
    workload = machine(12, (1, 1))
    write_workload(type(workload)("morning", 12, jobs, profiles), folder / "w.json")


def rows(path: Path) -> list[tuple[str, str, float, float]]:
    """Return (job, nodes, start, end) of every attempt, sorted by start."""
    with path.open() as lines:
        found = [
            (r["job_id"], r["allocated_resources"], float(r["starting_time"]),
             float(r["finish_time"]))
            for r in csv.DictReader(lines)
        ]  # fmt: skip
    return sorted(found, key=lambda row: (row[2], row[0]))


class Keyed(Policy):
    """Starts jobs in order. Notes whether the hit attempts are keys, and what they map to."""

    found: ClassVar[list[bool]] = []

    def plan(self, view, changes):
        free = view.n_free
        for attempt in view.queue.values():
            if attempt.n_nodes <= free:
                free -= attempt.n_nodes
                self.found.append(view.queue[attempt] is view.queue[attempt.id])
                yield Start(attempt.id)

    def react(self, view, news):
        for hit in news.hit:
            self.found += [
                view.running[hit] is hit,
                view.running[hit.id] is hit,
                hit in view.running,
            ]
            self.found += [
                hit not in view.stopping,
                hit not in view.queue,
                hit.id in [*view.running],
            ]
            self.found += [hit.job_id == hit.attempt.job_id, hit.n_nodes == hit.attempt.n_nodes]
            self.found += [view.running.get("w0!none") is None, "w0!none" not in view.running]
            yield Stop(hit.id, Cause.NODE_FAILURE)


def test_attempts_are_keys() -> None:
    Keyed.found = []
    rebat.run("toy", [Keyed], failures=rebat.failures(file="toy"))
    assert len(Keyed.found) > 10
    assert all(Keyed.found)


def test_it_drains_moves_shrinks_and_grows(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    policy = example(tmp_path)
    main(["run", str(tmp_path / "w.json"), "-p", policy, "--out", str(tmp_path / "out")])
    assert rows(tmp_path / "out" / "Morning" / "jobs.csv") == [
        ("1", "0-3", 0, 11),  # checkpoints from 10 to 11, then moves
        ("2", "4-7", 0, 21),
        ("1#1", "8-11", 11, 103),  # 10 s are done: 2 s of recovery + 90 s
        ("2#1", "4-5", 21, 41),  # 20 s are done: the other 80 s take 160 s on 2 nodes
        ("2#2", "4-7", 41, 114.5),  # 17 s on 2 nodes are done: 2 s of recovery + 71.5 s
    ]


@pytest.mark.slow
def test_over_the_wire_it_does_the_same(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    policy, port = example(tmp_path), free_port()
    main(["run", str(tmp_path / "w.json"), "-p", policy, "--out", str(tmp_path / "out")])
    with process(*REBAT, "serve", "-p", policy, "--endpoint", f"tcp://127.0.0.1:{port}") as server:
        simulate(tmp_path, port, tmp_path / "sim", *DYNAMIC)
        server.communicate(timeout=30)
        assert server.returncode == 0
    embedded = (tmp_path / "out" / "Morning" / "jobs.csv").read_bytes()
    assert (tmp_path / "sim_jobs.csv").read_bytes() == embedded
