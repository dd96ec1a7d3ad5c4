# SPDX-License-Identifier: Apache-2.0
"""jobs.csv and schedule.csv equal Batsim's, except for the documented differences."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from rebat.core.formatting import csv_field
from rebat.core.jobs import Job, Workload
from rebat.core.node_events import NodeEvents
from rebat.core.nodes import NodeSet
from rebat.core.table import Table
from rebat.core.units import to_us
from rebat.engine.jobs import EndedJob, ended_jobs
from rebat.models.failures.events import read_events
from rebat.models.failures.outages import node_events
from rebat.results.compare.schedules import compare
from rebat.results.files.batsim_csv import jobs_csv, schedule_csv
from rebat.results.files.batsim_files import read_jobs
from rebat.results.validate.findings import Reference
from rebat.results.validate.validate import validate
from rebat.runs.single import write_run
from rebat.workloads.batsim_json import read_workload
from tests.support.recordings import DATA, folder_of
from tests.support.scenarios import fails, machine, run
from tests.support.tables import table

ROOT = Path(__file__).parents[3]
LAST_DIGIT = {"waiting_time", "turnaround_time", "stretch"}
"""Columns of jobs.csv that Batsim computes from times with more digits than a microsecond."""
OURS = {
    "batsim_version", "scheduling_time", "simulation_time", "time_idle", "time_unavailable",
}  # fmt: skip
"""Columns of schedule.csv that differ on purpose."""
FLAT = {
    "dyn_full": 4, "dyn_requeue": 4, "dyn_same": 4, "kill_exec_same_msg_flat": 4, "py_fault": 4,
    "walltime": 4, "easy_bf_250": 128, "conservative_bf_250": 128, "generic_events": 10,
    "migrate_resize": 4, "moldable_start": 4, "ties_701_sfsj": 10, "ties_703_sfsj": 4,
    "ties_704_h322": 32,
}  # fmt: skip
"""Number of hosts of recordings on platforms without latency."""


def engine_jobs(path: Path) -> Table[EndedJob]:
    """Return the jobs in one of Batsim's tables."""
    return ended_jobs(map(engine_job, csv.DictReader(io.StringIO(path.read_text()))))


def engine_job(row: dict[str, str]) -> EndedJob:
    ran = row["starting_time"] != ""
    walltime = float(row["requested_time"])
    return EndedJob(
        f"{row['workload_name']}!{row['job_id']}", int(row["requested_number_of_resources"]),
        to_us(float(row["submission_time"])), None if walltime == -1 else to_us(walltime),
        row["profile"], row["workload_name"], state=row["final_state"],
        start_us=to_us(float(row["starting_time"])) if ran else -1,
        end_us=to_us(float(row["finish_time"])) if ran else -1,
        nodes=NodeSet.parse(row["allocated_resources"]), metadata=row["metadata"],
    )  # fmt: skip


@pytest.mark.parametrize("name", FLAT)
def test_the_files_are_batsims(name: str) -> None:
    prefix = folder_of(name) / name
    recorded = Path(f"{prefix}_jobs.csv")
    jobs, events = engine_jobs(recorded), Path(f"{prefix}.events")
    ours, theirs = list(jobs_csv(jobs)), recorded.read_text().splitlines()
    assert ours[0] == theirs[0]
    for one, other in zip(csv.DictReader(ours), csv.DictReader(theirs), strict=True):
        apart = {column for column in other if one[column] != other[column]}
        assert apart <= LAST_DIGIT
        assert all(abs(float(one[column]) - float(other[column])) < 2e-6 for column in apart)
    nodes_change = read_events(events) if events.exists() else []
    told = node_events(nodes_change)
    (made,) = csv.DictReader(io.StringIO(schedule_csv(jobs, FLAT[name], told)))
    (real,) = csv.DictReader(io.StringIO(Path(f"{prefix}_schedule.csv").read_text()))
    assert {column for column in real if made[column] != real[column]} <= OURS


ZERO = DATA / "real-batsim/zero-length"
SINGLE, AMONG = (ZERO / "cli", 4), (ZERO, 24)
"""A job that is killed as it starts: (folder of the recording, nodes of the machine)."""


@pytest.mark.parametrize(
    ("case", "policy"),
    [(SINGLE, "dbes:react=replacement"), (AMONG, "pwa:react=replacement+stealing")],
)
def test_what_is_killed_as_it_starts_has_batsims_row(case, policy: str, tmp_path: Path) -> None:
    folder, n_nodes = case
    workload, events = read_workload(folder / "w.json"), read_events(folder / "f.events")
    result = run(policy, workload, events)
    write_run(tmp_path, result, {})
    recorded = read_jobs(folder / "real_jobs.csv")
    assert (tmp_path / "jobs.csv").read_text() == recorded.path.read_text()
    (made,) = csv.DictReader((tmp_path / "schedule.csv").open(newline=""))
    (real,) = csv.DictReader((folder / "real_schedule.csv").open(newline=""))
    assert {column for column in real if made[column] != real[column]} <= OURS
    assert 0 in {record.end_us - record.start_us for record in result.ledger.attempts}
    for jobs in (read_jobs(tmp_path), recorded):
        for reference in (Reference(n_nodes, events, workload, resubmits=True), Reference()):
            assert validate(jobs, reference) == []
    assert compare(read_jobs(tmp_path), recorded, tolerance_s=0).same(allocations=True)


def test_a_last_attempt_without_a_length_counts_for_the_makespan() -> None:
    """As in Batsim, the makespan is its start plus the least run time, but no node computes."""
    job = EndedJob(
        "w0!1", 3, to_us(2), None, "p", "w0", state="COMPLETED_KILLED",
        start_us=to_us(7), end_us=to_us(7), nodes=NodeSet.parse("0-2"),
    )  # fmt: skip
    (row,) = csv.DictReader(jobs_csv([job]))
    assert (row["turnaround_time"], row["stretch"]) == ("5.000010", "500001.000000")
    (totals,) = csv.DictReader(schedule_csv(ended_jobs([job]), 4, NodeEvents()).splitlines())
    assert (totals["makespan"], totals["time_computing"]) == ("7.000010", "0.000000")


def test_the_documentation_names_every_column_that_differs() -> None:
    readme = (ROOT / "docs/explanation/accuracy.md").read_text()
    assert [name for name in LAST_DIGIT | OURS if f"`{name}`" not in readme] == []


def test_a_rejected_job_has_no_energy() -> None:
    result = run("easy", machine(2, (3, 1), (1, 1)))
    rows = {row["job_id"]: row for row in csv.DictReader(jobs_csv(result.jobs))}
    assert rows["1"]["final_state"] == "REJECTED"
    assert rows["1"]["consumed_energy"] == ""
    assert rows["2"]["consumed_energy"] == "-1.000000"


@pytest.mark.parametrize("name", ["a,b", 'say "5 s"', "two\nlines", "win\r\ndows", '"', "", " a;b"])
def test_any_profile_name_survives(tmp_path: Path, name: str) -> None:
    profiles = {name: {"type": "delay", "delay": 5}}
    workload = Workload("w", 2, (Job("1", 1, 0, None, name),), profiles)
    text = "\n".join(jobs_csv(run("greedy", workload).jobs))
    read = table(tmp_path, text)
    assert [record.profile or "" for record in read.records] == [name]
    assert validate(read, Reference(2, (), workload)) == []


def test_plain_names_stay_without_quotes() -> None:
    assert [csv_field(text) for text in ("delay5", "", "3#1:10s", "a b")] == [
        "delay5", "", "3#1:10s", "a b",
    ]  # fmt: skip


def test_a_job_that_hangs_on_a_failed_node_does_not_compute(tmp_path: Path) -> None:
    """The node fails at 9 s. The job ends there at 10 s, and runs for 10 s on the other node."""
    result = run("easy:detect=5s", machine(2, (1, 10)), fails(0, 9, 30))
    write_run(tmp_path, result, {})
    (row,) = csv.DictReader((tmp_path / "schedule.csv").open(newline=""))
    used = row["time_computing"], row["time_unavailable"], row["time_idle"]
    assert used == ("19.000000", "15.000000", "14.000000")  # 2 x 24 in all


def test_outages_count_up_to_the_makespan() -> None:
    """A job runs for 100 s; one node is down from 40 s to 130 s, another from 200 s on."""
    events = [*fails(1, 40, 130), *fails(2, 200, 9000)]
    result = run("easy", machine(3, (1, 100)), events)
    (row,) = csv.DictReader(schedule_csv(result.jobs, 3, result.ledger.node_events).splitlines())
    assert row["makespan"] == "100.000000"
    assert row["time_unavailable"] == "60.000000"
    assert row["time_idle"] == "140.000000"  # 3 x 100 - 100 - 60
