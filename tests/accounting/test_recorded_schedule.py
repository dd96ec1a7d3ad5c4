# SPDX-License-Identifier: Apache-2.0
"""Recorded schedules as runs, compared with the log of a cluster and with a slow count."""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rebat.cli.main import main
from rebat.core.attempts import Cause
from rebat.core.errors import InputError
from rebat.figures.explore.data import run_data
from rebat.records.hosts import sorted_names
from rebat.results.files.run_folder import read_timeline
from rebat.results.measures.timeline import series_of
from rebat.runs.recorded import recorded_run
from rebat.workloads.recorded import RecordedSchedule
from tests.accounting.test_recorded_cluster import BARELY_LAUNCHED, DOWN, GOLDEN, epoch
from tests.support.amount import few
from tests.support.importing import import_accounting
from tests.support.recordings import needs

Capture = pytest.CaptureFixture[str]

# ---- the recorded cluster

TRUE_CAUSES = {
    "": "horizon", "exit 0": "completed", "killed by request": "cancelled",
    "lost: batch node": "node failure", "node failure": "node failure", "preempted": "preempted",
    "requeued (job_complete)": "node failure", "requeued by request": "preempted",
    "signal": "job failed", "time limit": "walltime", "exit": "job failed",
}  # fmt: skip
"""Cause of an end, by the first words of its description in the log."""

NO_RUN_TIME = "7"
"""A job that started and ended in the same second, and is therefore not in the workload."""


def true_cause(text: str) -> str:
    starts = [start for start in TRUE_CAUSES if start and text.startswith(start)]
    return TRUE_CAUSES[max(starts, key=len, default="")]


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("past")
    imported(folder, GOLDEN / "sacct-XD-ids-us.txt", GOLDEN / "events-all-fields.psv")
    return folder


def imported(folder: Path, dump: Path, events: Path | None, *more: str) -> None:
    main(
        ["workload", "import", str(dump), "--format", "sacct", "--zone", "Europe/Paris",
         *(["--events", str(events)] if events else []), "-o", str(folder / "jobs.json"),
         "--schedule", str(folder / "past"), *more]
    )  # fmt: skip


def rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def content(path: Path) -> Any:
    return json.loads(path.read_text())


@needs("golden/slurm")
def test_attempts_are_as_in_the_log(past: Path) -> None:
    workload = content(past / "jobs.json")
    machine = workload["machine"]
    names, origin = sorted_names([machine["nodes"]]), machine["origin_s"]
    raws = raw_ids(GOLDEN / "sacct-XD-ids-us.txt")
    attempts: dict[str, list[dict[str, str]]] = {}
    for row in rows(past / "past/recorded/rebat_attempts.csv"):
        attempts.setdefault(raws[row["job_id"]], []).append(row)
    truth: dict[str, list[dict[str, str]]] = {}
    with (GOLDEN / "truth-attempts.tsv").open() as file:
        for row in csv.DictReader(file, delimiter="\t"):
            truth.setdefault(row["job_id_raw"], []).append(row)
    assert truth.keys() - attempts.keys() == {NO_RUN_TIME}
    missing = {raw: len(truth[raw]) - len(attempts[raw]) for raw in attempts}
    assert {raw: n for raw, n in missing.items() if n} == dict.fromkeys(BARELY_LAUNCHED, 1)
    for raw in attempts.keys() - BARELY_LAUNCHED:
        for ours, real in zip(attempts[raw], truth[raw], strict=True):
            nodes = {names[node] for node in ids(ours["nodes"])}
            if raw != "167":  # the job released nodes
                assert nodes == set(sorted_names([real["nodes"]])), raw
            assert float(ours["start_time"]) + origin == pytest.approx(epoch(real["start"]), abs=1)
            if real["end"]:
                end_s = float(ours["finish_time"]) + origin
                assert end_s == pytest.approx(epoch(real["end"]), abs=1), raw
            assert ours["cause"] == true_cause(real["end_cause"]), raw


def raw_ids(dump: Path) -> dict[str, str]:
    lines = dump.read_text().split("\n")
    header = lines[0].split("\x1f")
    job, raw = header.index("JobID"), header.index("JobIDRaw")
    fields = [line.split("\x1f") for line in lines[1:]]
    return {row[job]: row[raw] for row in fields if len(row) == len(header)} | {"34": "34"}


def ids(text: str) -> set[int]:
    pairs = [part.split("-") for part in text.split()]
    return {node for pair in pairs for node in range(int(pair[0]), int(pair[-1]) + 1)}


@needs("golden/slurm")
def test_down_intervals_are_as_in_the_log(past: Path) -> None:
    machine = content(past / "jobs.json")["machine"]
    names, origin = sorted_names([machine["nodes"]]), machine["origin_s"]
    downs: dict[str, list[float]] = {}
    for row in rows(past / "past/recorded/node_events.csv"):
        for node in ids(row["nodes"]):
            spans = downs.setdefault(names[node], [])
            assert len(spans) % 2 == (row["event"] == "rejuvenated")
            spans.append(float(row["time"]) + origin)
    expected = {
        node: [epoch(f"2026-11-22T{text}") for text in span if text] for node, span in DOWN.items()
    }
    assert downs == expected


@needs("golden/slurm")
def test_the_events_are_those_of_failures_import(past: Path, tmp_path: Path) -> None:
    events = tmp_path / "site.events"
    main(
        ["failures", "import", str(GOLDEN / "events-all-fields.psv"), "--format", "sacctmgr",
         "--zone", "Europe/Paris", "--workload", str(past / "jobs.json"), "-o", str(events)]
    )  # fmt: skip
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    ours = rows(past / "past/recorded/node_events.csv")
    assert [
        (line["timestamp"], line["type"] == "machine_unavailable", ids(line["resources"]))
        for line in lines
    ] == [(float(row["time"]), row["event"] == "failed", ids(row["nodes"])) for row in ours]


@needs("golden/slurm")
def test_jobs_are_those_of_the_workload(past: Path) -> None:
    jobs = content(past / "jobs.json")["jobs"]
    ours = rows(past / "past/recorded/rebat_jobs.csv")
    assert [(row["job_id"], float(row["submission_time"])) for row in ours] == [
        (job["id"], job["subtime"]) for job in jobs
    ]
    for row in ours:
        held = float(row["flow"]) - float(row["waiting_time"])
        assert held >= 0
        assert float(row["waiting_time"]) >= 0


@needs("golden/slurm")
def test_a_failure_loses_all_work(past: Path) -> None:
    for row in rows(past / "past/recorded/rebat_attempts.csv"):
        run_s = float(row["finish_time"]) - float(row["start_time"])
        lost = row["cause"] in ("node failure", "preempted")
        assert float(row["kept_seconds"]) == pytest.approx(0 if lost else run_s)


@needs("golden/slurm")
def test_the_sum_of_node_time_is_that_of_the_machine(past: Path) -> None:
    summary = content(past / "past/recorded/summary.json")
    platform = summary["metrics"]["platform"]
    parts = [value for key, value in platform.items() if key not in ("total", "idle_share")]
    assert sum(parts) == pytest.approx(platform["total"], rel=1e-12)
    assert summary["recorded"]["shared_attempts"] > 0
    users = rows(past / "past/recorded/rebat_users.csv")
    used = sum(float(row["node_seconds"]) for row in users)
    assert used == pytest.approx(platform["total"] - platform["idle"] - platform["downtime"])
    schedule = rows(past / "past/recorded/schedule.csv")[0]
    assert float(schedule["time_computing"]) == pytest.approx(used)


@pytest.mark.slow
@needs("golden/slurm")
def test_the_past_can_be_viewed_and_validated(past: Path, capsys: Capture, tmp_path: Path) -> None:
    for folder in ("past", "past/recorded"):
        main(["view", str(past / folder), "--html", str(tmp_path / "past.html"), "--window", "all"])
        page = (tmp_path / "past.html").read_text()
        assert '<section class="gantt" aria-label="recorded">' in page
        assert "lost to a node failure" in page
        assert "job cancelled" in page
    capsys.readouterr()
    main(["validate", str(past / "past"), "--workload", str(past / "jobs.json")])
    printed = capsys.readouterr().out
    assert "valid: 248 rows, 0 findings" in printed
    assert "no errors, because this run is recorded" in printed
    assert "two jobs on one node" in printed


@needs("golden/slurm")
def test_shared_nodes_are_drawn_as_one_node_in_use(past: Path) -> None:
    timeline = read_timeline(past / "past/recorded")
    data = run_data(timeline)
    assert (data["ran"], data["nodes"]) == (248, 16)
    busy, free = (data["series"][name]["value"] for name in ("busy", "free"))
    assert (busy.min(), busy.max()) == (0, 16)
    assert (free.min(), free.max()) == (0, 16)
    platform = content(past / "past/recorded/summary.json")["metrics"]["platform"]
    at_us, values = series_of(timeline).busy
    used_us = (values * np.diff(np.append(at_us, timeline.makespan_us))).sum()
    used = platform["total"] - platform["idle"] - platform["downtime"]
    assert used_us / 1e6 == pytest.approx(used)


@needs("golden/slurm")
def test_the_past_is_compared_with_policies(past: Path, capsys: Capture, tmp_path: Path) -> None:
    run = ["run", str(past / "jobs.json"), "-p", "baseline", "-p", "easy"]
    main([*run, "--out", str(tmp_path / "out")])
    capsys.readouterr()
    main(["compare", str(past / "past"), str(tmp_path / "out")])
    printed = capsys.readouterr().out
    assert "baseline against recorded" in printed
    assert "232 jobs, 16 nodes" in printed
    with pytest.raises(SystemExit) as exit_:
        main(["compare", str(past / "past"), str(tmp_path / "out/easy")])
    assert exit_.value.code == 1
    assert "232 jobs in both runs" in capsys.readouterr().out


@needs("golden/slurm")
def test_the_same_dump_gives_the_same_bytes(past: Path, tmp_path: Path) -> None:
    imported(tmp_path, GOLDEN / "sacct-XD-ids-us.txt", GOLDEN / "events-all-fields.psv")
    assert hashes(tmp_path) == hashes(past)


def hashes(folder: Path) -> dict[str, str]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


# ---- small dumps

HEADER = (
    "JobID|JobIDRaw|User|Partition|Submit|Start|End|State|NNodes|TimelimitRaw|NodeList|Priority"
)
EPOCH = 1_700_000_000
N_NODES = 4

Row = tuple[int, int, int | None, frozenset[int], str]
"""Job, start, end (None: still runs), nodes, state; in seconds after `EPOCH`."""
Down = tuple[int, int, int]
"""Node, begin and end of a down interval."""

STATES = ("COMPLETED", "FAILED", "NODE_FAIL", "PREEMPTED", "TIMEOUT", "CANCELLED by 7", "REQUEUED")
NODES = st.frozensets(st.integers(0, N_NODES - 1), max_size=N_NODES)


@st.composite
def dumps(draw: st.DrawFn) -> tuple[list[Row], list[Down]]:
    rows: list[Row] = []
    for job in range(1, draw(st.integers(1, 5)) + 1):
        at = draw(st.integers(0, 10))
        for _ in range(draw(st.integers(1, 3))):
            start = at + draw(st.integers(0, 5))
            end = start + draw(st.integers(0, 8))
            ends = draw(st.integers(0, 9)) > 0
            state = draw(st.sampled_from(STATES)) if ends else "RUNNING"
            rows.append((job, start, end if ends else None, draw(NODES), state))
            at = start + draw(st.integers(1, 9))  # may be before the end of the attempt
    spans = st.tuples(st.integers(0, N_NODES - 1), st.integers(0, 20), st.integers(1, 10))
    downs = [(node, begin, begin + length) for node, begin, length in draw(st.lists(spans))]
    return rows, downs


def dump_text(rows: list[Row]) -> str:
    lines = [HEADER]
    for job, start, end, nodes, state in rows:
        names = ",".join(f"n{node}" for node in sorted(nodes)) or "None assigned"
        until = "Unknown" if end is None else EPOCH + end
        lines.append(
            f"{job}|{job}|u{job % 2}|p|{EPOCH}|{EPOCH + start}|{until}|{state}|{len(nodes)}|60|"
            f"{names}|1"
        )
    # a job on all nodes, so that every machine has all of them
    names = ",".join(f"n{node}" for node in range(N_NODES))
    lines.append(f"99|99|u|p|{EPOCH}|{EPOCH + 60}|{EPOCH + 61}|COMPLETED|{N_NODES}|60|{names}|1")
    return "\n".join(lines) + "\n"


def events_text(downs: list[Down]) -> str:
    lines = ["NodeName|Start|End|StateRaw|Reason"]
    lines += [f"n{node}|{EPOCH + begin}|{EPOCH + end}|1|x" for node, begin, end in downs]
    return "\n".join(lines) + "\n"


def schedule_of(folder: Path, rows: list[Row], downs: list[Down]) -> RecordedSchedule:
    (folder / "dump.txt").write_text(dump_text(rows))
    (folder / "events.txt").write_text(events_text(downs))
    result = import_accounting(
        "sacct", folder / "dump.txt", events=folder / "events.txt", schedule=True
    )
    assert result.schedule is not None
    return result.schedule


def slow_attempts(rows: list[Row], downs: list[Down]) -> dict[int, list[tuple[Any, ...]]]:
    """Return start, end and nodes of each attempt that has nodes, computed second by second."""
    rows = [*rows, (99, 60, 61, frozenset(range(N_NODES)), "COMPLETED")]
    last = 61
    attempts: dict[int, list[tuple[Any, ...]]] = {}
    for job in {row[0] for row in rows}:
        own = sorted((row for row in rows if row[0] == job and row[3]), key=lambda row: row[1])
        for at, (_, start, end, nodes, _) in enumerate(own):
            later = own[at + 1][1] if at + 1 < len(own) else last
            until = min(last if end is None else end, later if at + 1 < len(own) else 10**9)
            for second in range(start, until):
                if any(node in nodes and a <= second < b for node, a, b in downs):
                    until = second
                    break
            attempts.setdefault(job, []).append((start, until, nodes))
    return attempts


SETTINGS = settings(
    max_examples=few(150), suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # fmt: skip


@SETTINGS
@given(dump=dumps())
def test_every_attempt_of_a_dump_is_in_the_schedule(
    tmp_path: Path, dump: tuple[list[Row], list[Down]]
) -> None:
    rows, downs = dump
    schedule = schedule_of(tmp_path, rows, downs)
    jobs = [int(job.id) for job in schedule.workload.jobs]
    ours: dict[int, list[tuple[Any, ...]]] = {}
    for attempt in sorted(schedule.attempts, key=lambda a: (a.job, a.number)):
        times = attempt.start_us / 1e6, attempt.end_us / 1e6
        ours.setdefault(jobs[attempt.job], []).append((*times, frozenset(attempt.nodes)))
    expected = slow_attempts(rows, downs)
    assert ours == {job: expected[job] for job in jobs if job in expected}
    for attempt in schedule.attempts:
        span = range(attempt.start_us // 10**6, attempt.end_us // 10**6)
        for node, begin, end in downs:
            assert node not in attempt.nodes or not set(span) & set(range(begin, end))


@SETTINGS
@given(dump=dumps())
def test_node_time_of_a_dump_is_that_of_a_slow_count(
    tmp_path: Path, dump: tuple[list[Row], list[Down]]
) -> None:
    rows, downs = dump
    schedule = schedule_of(tmp_path, rows, downs)
    result = recorded_run(schedule)
    attempts = [(a.start_us // 10**6, a.end_us // 10**6, a.nodes) for a in schedule.attempts]
    used = down = 0
    for second in range(int(result.summary.makespan_s)):
        busy = {node for begin, end, nodes in attempts if begin <= second < end for node in nodes}
        away = {node for node, begin, end in downs if begin <= second < end}
        used, down = used + len(busy), down + len(away)
        assert not busy & away
    platform = result.summary.platform
    assert platform.downtime == down
    assert platform.idle == N_NODES * result.summary.makespan_s - used - down
    held = platform.useful + platform.waste_failure + platform.waste_moving
    assert held == pytest.approx(used, abs=1e-6)
    assert result.rows.column("node_seconds").sum() == pytest.approx(used, abs=1e-6)
    lost = [a for a in schedule.attempts if a.lost]
    assert all(a.cause in (Cause.NODE_FAILURE, Cause.PREEMPTED) for a in lost)
    assert (platform.waste_failure + platform.waste_moving > 0) == any(
        a.end_us > a.start_us for a in lost
    )


def test_an_attempt_before_its_submission_starts_at_its_submission(tmp_path: Path) -> None:
    text = dump_text([(1, 5, 9, frozenset({0}), "COMPLETED")])
    (tmp_path / "dump.txt").write_text(text.replace(f"|{EPOCH + 5}|", f"|{EPOCH - 5}|"))
    schedule = import_accounting("sacct", tmp_path / "dump.txt", schedule=True).schedule
    assert schedule is not None
    assert (schedule.attempts[0].start_us, schedule.attempts[0].end_us) == (0, 9_000_000)
    assert "1 attempt with a start before the submission" in schedule.notes[0]


def test_a_running_job_has_the_same_run_time_in_both_files(tmp_path: Path) -> None:
    """The export was 7200 s after the start of job 2, an hour after the last other time."""
    lines = ["JobID|Submit|Start|End|ElapsedRaw|State|NNodes|NodeList"]
    lines.append(f"1|{EPOCH}|{EPOCH}|{EPOCH + 3600}|3600|COMPLETED|1|n1")
    lines.append(f"2|{EPOCH}|{EPOCH}|Unknown|7200|RUNNING|1|n2")
    (tmp_path / "dump.txt").write_text("\n".join(lines) + "\n")
    result = import_accounting("sacct", tmp_path / "dump.txt", schedule=True)
    assert result.workload.jobs[1].profile == "delay7200"
    assert result.schedule is not None
    attempt = result.schedule.attempts[-1]
    assert (attempt.job, attempt.end_us, attempt.cause) == (1, 7_200_000_000, Cause.HORIZON)


def test_a_job_that_a_correction_removes_is_named(tmp_path: Path) -> None:
    rows: list[Row] = [(7, 50, 59, frozenset({1}), "COMPLETED")]
    (tmp_path / "dump.txt").write_text(dump_text(rows))
    (tmp_path / "events.txt").write_text(events_text([(1, 10, 55)]))
    notes = import_accounting(
        "sacct", tmp_path / "dump.txt", events=tmp_path / "events.txt"
    ).workload.notes
    assert "1 job dropped: the last attempt is cut to 0 s, because a node was down" in notes
    assert notes[0].startswith("check: the last attempt of 1 of 2 jobs started while ")
    assert "(job 7)" in notes[0]


def test_an_import_that_fails_leaves_no_corrections(tmp_path: Path) -> None:
    (tmp_path / "dump.txt").write_text(dump_text([(1, 5, 30, frozenset({2}), "COMPLETED")]))
    (tmp_path / "events.txt").write_text(events_text([(2, 10, 20)]))
    command = ["workload", "import", str(tmp_path / "dump.txt"), "--force", "-o", "/dev/full",
               "--events", str(tmp_path / "events.txt")]  # fmt: skip
    with pytest.raises(SystemExit) as exit_:
        main([*command, "--corrections", str(tmp_path / "cut.csv")])
    assert exit_.value.code == 2
    assert {path.name for path in tmp_path.iterdir()} == {"dump.txt", "events.txt"}


def test_without_names_nodes_are_assigned(tmp_path: Path, capsys: Capture) -> None:
    """Three jobs of two nodes run on five nodes; the third job starts when the first one ends."""
    lines = ["JobID|Submit|Start|End|State|NNodes"]
    for job, start, end in ((1, 0, 10), (2, 5, 20), (3, 10, 15)):
        lines.append(f"{job}|{EPOCH}|{EPOCH + start}|{EPOCH + end}|COMPLETED|2")
    (tmp_path / "dump.txt").write_text("\n".join(lines) + "\n")
    imported(tmp_path, tmp_path / "dump.txt", None, "--nodes", "5")
    attempts = rows(tmp_path / "past/recorded/rebat_attempts.csv")
    assert {row["job_id"]: row["nodes"] for row in attempts} == {"1": "0-1", "2": "2-3", "3": "0-1"}
    assert content(tmp_path / "past/recorded/summary.json")["recorded"]["assigned_nodes"] is True
    assert "no node names" in capsys.readouterr().out
    crowded = import_accounting("sacct", tmp_path / "dump.txt", schedule=True, n_nodes=3).schedule
    assert crowded is not None and "up to 4 nodes" in crowded.notes[-1]
    imported(tmp_path, tmp_path / "dump.txt", None, "--nodes", "3", "--force")
    summary = content(tmp_path / "past/recorded/summary.json")
    # Jobs 1 and 2 share a node from 5 to 10 s, jobs 2 and 3 from 10 to 15 s: 3 nodes are in use.
    assert summary["metrics"]["useful_utilisation"] == pytest.approx((2 * 5 + 3 * 10 + 2 * 5) / 60)
    capsys.readouterr()
    main(["validate", str(tmp_path / "past"), "--workload", str(tmp_path / "jobs.json")])
    printed = capsys.readouterr().out
    assert "valid: 3 rows, 0 findings" in printed and "two jobs on one node: 2" in printed
    with pytest.raises(InputError, match=r"an attempt has 2 nodes, but the machine has 1"):
        import_accounting("sacct", tmp_path / "dump.txt", schedule=True, n_nodes=1)


def test_a_machine_that_is_too_small_is_refused(tmp_path: Path) -> None:
    (tmp_path / "dump.txt").write_text(dump_text([(1, 5, 9, frozenset({3}), "COMPLETED")]))
    with pytest.raises(InputError, match="run on 4 different nodes, but the machine has 2"):
        import_accounting("sacct", tmp_path / "dump.txt", schedule=True, n_nodes=2)


def test_an_existing_folder_is_refused(tmp_path: Path, capsys: Capture) -> None:
    dump = tmp_path / "dump.txt"
    dump.write_text(dump_text([(1, 5, 9, frozenset({3}), "COMPLETED")]))
    imported(tmp_path, dump, None)
    before = hashes(tmp_path / "past")
    (tmp_path / "jobs.json").unlink()
    with pytest.raises(SystemExit) as exit_:
        imported(tmp_path, dump, None)
    assert exit_.value.code == 2
    assert "contains an earlier result" in capsys.readouterr().err
    assert not (tmp_path / "jobs.json").exists()
    dump.write_text(dump_text([(1, 5, 9, frozenset({2}), "COMPLETED")]))
    imported(tmp_path, dump, None, "--force")
    assert hashes(tmp_path / "past").keys() == before.keys()
    assert hashes(tmp_path / "past") != before


def test_a_broken_dump_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "dump.txt").write_text(HEADER + "\n")
    with pytest.raises(SystemExit) as exit_:
        imported(tmp_path, tmp_path / "dump.txt", None)
    assert exit_.value.code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["dump.txt"]


def test_the_workload_must_not_be_in_the_folder(tmp_path: Path, capsys: Capture) -> None:
    dump = tmp_path / "dump.txt"
    dump.write_text(dump_text([]))
    arguments = ["workload", "import", str(dump), "-o", str(tmp_path / "past/jobs.json")]
    with pytest.raises(SystemExit):
        main([*arguments, "--schedule", str(tmp_path / "past")])
    assert "a folder for the schedule only" in capsys.readouterr().err


def test_pbs_attempts(tmp_path: Path) -> None:
    log = tmp_path / "pbs.log"
    hosts = {1: "(n1:ncpus=4)+(n2:ncpus=4)", 2: "(n3:ncpus=4)+(n4[0]:ncpus=2+n4[1]:ncpus=2)"}
    lines = []
    for kind, begin, end, host in (("R", 10, 50, 1), ("E", 80, 100, 2)):
        lines.append(
            f"11/14/2023 00:00:00;{kind};7.pbs;user=a queue=q ctime={EPOCH} qtime={EPOCH} "
            f"start={EPOCH + begin} exec_vnode={hosts[host]} end={EPOCH + end} Exit_status=0"
        )
    log.write_text("\n".join(lines) + "\n")
    schedule = import_accounting("pbs", log, schedule=True).schedule
    assert schedule is not None
    first, second = schedule.attempts
    assert (first.cause, first.why, first.lost) == (Cause.PREEMPTED, "REQUEUED", True)
    assert (second.cause, second.queued_us, list(second.nodes)) == (
        Cause.COMPLETED, 50_000_000, [2, 3],
    )  # fmt: skip
    waiting = recorded_run(schedule).rows.column("waiting_time")
    assert np.array_equal(waiting, [10 + 30])


def test_a_job_on_a_node_that_is_down_is_an_error(tmp_path: Path, capsys: Capture) -> None:
    """If the import has no --events, the attempt is not cut short, and validate finds the error."""
    (tmp_path / "dump.txt").write_text(dump_text([(1, 5, 30, frozenset({2}), "COMPLETED")]))
    (tmp_path / "events.txt").write_text(events_text([(2, 10, 20)]))
    imported(tmp_path, tmp_path / "dump.txt", None)
    main(
        ["failures", "import", str(tmp_path / "events.txt"), "--format", "sacctmgr",
         "--workload", str(tmp_path / "jobs.json"), "-o", str(tmp_path / "site.events")]
    )  # fmt: skip
    validation = ["validate", str(tmp_path / "past"), "--events", str(tmp_path / "site.events")]
    capsys.readouterr()
    with pytest.raises(SystemExit) as exit_:
        main(validation)
    assert exit_.value.code == 1
    assert "a job on a node that is down: 1" in capsys.readouterr().out
    imported(tmp_path, tmp_path / "dump.txt", tmp_path / "events.txt", "--force")
    main(validation)
