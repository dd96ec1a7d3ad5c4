# SPDX-License-Identifier: Apache-2.0
"""A recorded Slurm cluster: its records compared with its log."""

from __future__ import annotations

import csv
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from rebat.models.failures.records.slurm import (
    AMBIGUOUS,
    read_merged,
    read_node_fail,
    read_sacctmgr,
)
from rebat.records.attempts import jobs_of, merged_downs
from rebat.records.hosts import names_of
from rebat.records.node_events import read_node_events
from rebat.records.sacct import read_sacct
from tests.support.importing import import_accounting
from tests.support.outages import down_intervals
from tests.support.recordings import SHARED, needs

GOLDEN = SHARED / "golden" / "slurm"
PARIS = ZoneInfo("Europe/Paris")
pytestmark = needs("golden/slurm")

BARELY_LAUNCHED = {"164", "207"}
"""Jobs with an attempt on a dead node. The dumps have no record of this attempt."""

Attempt = tuple[float, float, frozenset[str]]


def epoch(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=PARIS).timestamp() if text else np.nan


def recorded(name: str) -> dict[str, list[Attempt]]:
    table = read_sacct(GOLDEN / name, PARIS)
    attempts: dict[str, list[Attempt]] = {}
    for row in jobs_of(table).attempts.tolist():
        attempts.setdefault(table.text("raw")[row], []).append((
            table.column("start")[row], table.column("end")[row],
            names_of(table.text("hosts")[row]),
        ))  # fmt: skip
    return attempts


def truth() -> dict[str, list[Attempt]]:
    attempts: dict[str, list[Attempt]] = {}
    with (GOLDEN / "truth-attempts.tsv").open() as file:
        for row in csv.DictReader(file, delimiter="\t"):
            attempts.setdefault(row["job_id_raw"], []).append(
                (epoch(row["start"]), epoch(row["end"]), names_of(row["nodes"]))
            )
    return attempts


@pytest.mark.parametrize(
    "name", ["sacct-XD-ids-us.txt", "sacct-XD-ids.psv", "sacct-steps-D.psv", "sacct.json.gz"]
)
def test_attempts_are_as_in_the_log(name: str) -> None:
    records, real = recorded(name), truth()
    assert records.keys() == real.keys()
    for raw in real.keys() - BARELY_LAUNCHED - {"167"}:  # job 167 released nodes
        assert len(records[raw]) == len(real[raw]), raw
        for record, attempt in zip(records[raw], real[raw], strict=True):
            assert record[2] == attempt[2], raw
            assert abs(record[0] - attempt[0]) <= 1, raw
            if np.isfinite(attempt[1]) and np.isfinite(record[1]):
                assert abs(record[1] - attempt[1]) <= 1, raw
    assert {raw: len(real[raw]) - len(records[raw]) for raw in BARELY_LAUNCHED} == {
        "164": 1, "207": 1,
    }  # fmt: skip
    assert len(records["167"]) == 1
    assert records["167"][0][:2] == pytest.approx(real["167"][0][:2], abs=1)


def test_counts_of_the_first_recording() -> None:
    table = read_sacct(GOLDEN / "sacct-XD-ids-us.txt", PARIS)
    jobs = jobs_of(table)
    assert (len(table), len(jobs.last), int(jobs.started.sum())) == (270, 244, 233)
    assert table.text("state").tolist().count("PENDING") == 15
    assert table.text("state").tolist().count("NODE_FAIL") == 11


def test_delimiters_in_names_are_repaired() -> None:
    """Row 33 has four columns more than the header; job 34 has line ends in two columns."""
    table = read_sacct(GOLDEN / "sacct-XD-ids.psv", PARIS)
    assert len(table) == 270
    assert {"33", "34"} <= set(table.text("raw"))


def test_all_exports_are_the_same_jobs() -> None:
    """The exports were made seconds apart, so the run times of running jobs are not compared."""
    exports = []
    for name in ("sacct-XD.psv", "sacct.json.gz", "sacct-steps-D.psv"):
        table = read_sacct(GOLDEN / name, PARIS)
        states = zip(table.text("id"), table.text("state"), strict=True)
        running = {job for job, state in states if state == "RUNNING"}
        jobs = import_accounting("sacct", GOLDEN / name, tz="Europe/Paris").workload.jobs
        exports.append({
            job.id: (job.n_nodes, job.submit_us, None if job.id in running else job.profile)
            for job in jobs
        })  # fmt: skip
    assert len(exports[0]) >= 220
    assert exports[0] == exports[1] == exports[2]


DOWN = {
    "n001": ("11:54:40", "11:55:26"), "n002": ("11:54:27", ""), "n003": ("11:45:25", "11:46:56"),
    "n007": ("11:45:26", "11:46:51"), "n008": ("11:45:26", "11:47:23"),
    "n010": ("11:46:46", "11:48:01"), "n012": ("11:54:21", ""),
}  # fmt: skip
"""Down intervals that the events can show. n006 and n011 have no event because they were back
before Slurm noticed. n005 and n016 were drained, n015 was set to FAIL, and an administrator
requested the reboot of n009: Slurm lets their jobs end.
"""


@pytest.mark.parametrize("name", ["events-advised-later.psv", "events-all-fields.psv"])
def test_down_intervals_are_as_in_the_log(name: str) -> None:
    downs = {row.node: row for row in merged_downs(read_node_events(GOLDEN / name, PARIS).rows)}
    assert downs.keys() == DOWN.keys()
    for node, (down, up) in DOWN.items():
        assert downs[node].down_s == epoch(f"2026-11-22T{down}")
        assert downs[node].up_s == (epoch(f"2026-11-22T{up}") if up else np.inf)
    assert downs["n012"].reason == "awaiting parts|spare"


def test_without_raw_states_a_drained_node_that_fails_is_not_seen() -> None:
    record = read_node_events(GOLDEN / "events.psv", PARIS)
    assert {row.node for row in record.rows} == DOWN.keys() - {"n010"}


def test_an_attempt_on_a_failed_node_is_cut() -> None:
    imported = import_accounting(
        "sacct", GOLDEN / "sacct-advised-later.txt", events=GOLDEN / "events-advised-later.psv"
    )
    assert [(cut.job, cut.node, cut.cut_s - cut.start_s) for cut in imported.corrections] == [
        ("202", "n002", 75)
    ]
    job = next(job for job in imported.workload.jobs if job.id == "202")
    assert job.profile == "delay75"


def test_the_machine_has_its_names_and_cores() -> None:
    workload = import_accounting("sacct", GOLDEN / "sacct-advised-later.txt").workload
    assert workload.n_nodes == 16
    machine = workload.machine or {}
    assert (machine["nodes"], machine["cores_per_node"]) == ("n[001-016]", 4)
    assert set(machine["partitions"]) == {"short", "long", "whole", "urgent", "scavenge"}


def test_failures_are_numbered_and_timed_as_the_workload() -> None:
    names = tuple(f"n{i:03}" for i in range(1, 17))
    origin = epoch("2026-11-22T11:43:06")
    record = read_sacctmgr(GOLDEN / "events-advised-later.psv", None, names, origin)
    first = record.events[0]
    assert (first.at_us, list(first.nodes)) == (139_000_000, [2])  # n003 at 11:45:25


def test_attempts_name_a_failed_node_without_events() -> None:
    record = read_node_fail(GOLDEN / "sacct-XD.psv", "Europe/Paris")
    assert record.taken["NODE_FAIL attempt"] == 3
    assert record.dropped["NODE_FAIL attempts without a single common node"] == 8


REALLY_DOWN = {*DOWN, "n006", "n011"}
"""Nodes that failed at some time, each of them once, from truth-nodes.tsv."""


def test_the_nodes_that_were_really_down() -> None:
    """They are the nodes that a command set down, and those whose processes were killed.

    The requested reboot of n009 also killed its processes, when its jobs had ended.
    """
    nodes = set()
    with (GOLDEN / "truth-nodes.tsv").open() as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if any(word in row["what"] for word in ("killed", "state=down")):
                nodes |= names_of(row["node"])
    assert nodes == REALLY_DOWN | {"n009"}


@pytest.mark.parametrize("dump", ["sacct-XD-ids-us.txt", "sacct-advised-later.txt"])
def test_attempts_add_the_failure_without_an_event(dump: str) -> None:
    """Of nine down intervals seven have events, that of n011 only an attempt, that of n006 neither.

    The failure of n006 ended only an attempt of five nodes. Both dumps have the same result,
    although the later one overwrites the state of an attempt that the failure of n002 ended.
    """
    events = GOLDEN / "events-advised-later.psv"
    record = read_merged(events, GOLDEN / dump, "Europe/Paris")
    nodes = {record.names[node]: (a, b) for node, a, b in down_intervals(record.events)}
    assert nodes.keys() == REALLY_DOWN - {"n006"}
    assert record.sources == {"only in events": 2, "in both": 5, "only in attempts": 1}
    assert record.dropped[AMBIGUOUS] == 1
    alone = read_sacctmgr(events, "Europe/Paris")
    seen = {alone.names[node]: (a, b) for node, a, b in down_intervals(alone.events)}
    assert {node: nodes[node] for node in seen} == seen
    noticed, later = nodes["n011"]  # job 232 is the next job on n011
    origin = epoch("2026-11-22T11:45:25")
    assert (noticed / 1e6 + origin, later / 1e6 + origin) == (
        epoch("2026-11-22T11:54:40"), epoch("2026-11-22T11:54:48"),
    )  # fmt: skip


def test_which_nodes_both_records_show() -> None:
    """NODE_FAIL attempts name five of the seven nodes with an event."""
    table = read_sacct(GOLDEN / "sacct-XD-ids-us.txt", PARIS)
    failed = [row for row, state in enumerate(table.texts["state"]) if state == "NODE_FAIL"]
    downs = list(merged_downs(read_node_events(GOLDEN / "events-advised-later.psv", PARIS).rows))
    both = {
        down.node for down in downs for row in failed
        if down.node in names_of(table.text("hosts")[row])
        and table.column("start")[row] < down.up_s and down.down_s <= table.column("end")[row]
    }  # fmt: skip
    assert both == {"n001", "n002", "n007", "n008", "n012"}


def test_pbs_logs(tmp_path: Path) -> None:
    workload = import_accounting("pbs", GOLDEN / "pbs-handwritten.txt").workload
    first, second = workload.jobs
    assert (first.id, first.n_nodes, first.profile) == ("2101", 2, "delay3100")
    assert (second.id, second.n_nodes, second.profile) == ("2103[3]", 1, "delay616")
    assert (workload.machine or {})["nodes"] == "n[001-005]"
