# SPDX-License-Identifier: Apache-2.0
"""Recorded schedules of traces: starts are in the trace, node numbers are assigned."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.cli.main import main
from rebat.core.attempts import Cause
from rebat.core.errors import InputError
from rebat.workloads.recorded import RecordedSchedule, lowest_free, most_used
from tests.support.importing import import_alcf, import_swf


def swf(path: Path, *jobs: tuple[int, int, int, int, int, int], procs: int = 4) -> Path:
    """Write a trace of (number, submission, wait, run time, processors, status)."""
    rows = [f"; MaxProcs: {procs}"]
    for number, submit, wait, run, size, status in jobs:
        rows.append(
            f"{number} {submit} {wait} {run} {size} -1 -1 {size} 100 -1 {status} 3 -1 -1 2 -1 -1 -1"
        )
    path.write_text("\n".join(rows) + "\n")
    return path


def schedule_of(path: Path) -> RecordedSchedule:
    schedule = import_swf(path, schedule=True).schedule
    assert schedule is not None
    return schedule


def test_jobs_start_after_their_wait(tmp_path: Path) -> None:
    trace = swf(tmp_path / "a.swf", (1, 10, 5, 20, 3, 1), (2, 12, 23, 5, 2, 0), (3, 40, 0, 9, 1, 5))
    schedule = schedule_of(trace)
    assert schedule.assigned_nodes
    assert [
        (a.start_us // 10**6, a.end_us // 10**6, str(a.nodes), a.cause) for a in schedule.attempts
    ] == [
        (5, 25, "0-2", Cause.COMPLETED), (25, 30, "0-1", Cause.JOB_FAILED),
        (30, 39, "0", Cause.CANCELLED),
    ]  # fmt: skip


def test_partial_executions_are_attempts_that_continue_their_work(tmp_path: Path) -> None:
    trace = swf(
        tmp_path / "a.swf", (7, 10, 5, 30, 2, 1), (7, 10, 5, 20, 2, 2), (7, -1, 8, 10, 3, 3),
        (8, 50, 1, 1, 1, -1),
    )  # fmt: skip
    first, other, second = schedule_of(trace).attempts
    assert (first.cause, first.lost, first.start_us, first.end_us) == (
        Cause.PREEMPTED, False, 5_000_000, 25_000_000,
    )  # fmt: skip
    assert (second.number, second.start_us, second.end_us) == (1, 33_000_000, 43_000_000)
    assert second.nodes.size == 3
    assert (other.job, other.cause) == (1, Cause.COMPLETED)


def test_attempts_share_nodes_if_a_record_needs_more_than_the_machine_has(tmp_path: Path) -> None:
    """This occurs in archive traces: ends and starts in the same second overlap."""
    trace = swf(tmp_path / "a.swf", (1, 0, 0, 20, 3, 1), (2, 5, 0, 20, 2, 1))
    schedule = schedule_of(trace)
    assert [str(attempt.nodes).replace(" ", ",") for attempt in schedule.attempts] == ["0-2", "0,3"]
    assert "up to 5 nodes at the same time" in schedule.notes[-1]


def test_an_attempt_larger_than_the_machine_is_refused(tmp_path: Path) -> None:
    trace = swf(tmp_path / "a.swf", (1, 0, 0, 20, 5, 1), (2, 25, 0, 20, 2, 1))
    with pytest.raises(InputError, match=r"an attempt has 5 nodes, but the machine has 4"):
        schedule_of(trace)
    out = tmp_path / "jobs.json"
    with pytest.raises(SystemExit):
        arguments = ["workload", "import", str(trace), "-o", str(out)]
        main([*arguments, "--schedule", str(tmp_path / "past")])
    assert [path.name for path in tmp_path.iterdir()] == ["a.swf"]
    main([*arguments, "--schedule", str(tmp_path / "past"), "--nodes", "5"])
    main(["validate", str(tmp_path / "past"), "--workload", str(out)])


def test_a_trace_without_starts_is_refused(tmp_path: Path) -> None:
    trace = swf(tmp_path / "a.swf", (1, 0, -1, 20, 3, 1))
    with pytest.raises(InputError, match="no attempt with a start"):
        schedule_of(trace)


def test_a_job_without_a_start_is_counted(tmp_path: Path) -> None:
    trace = swf(tmp_path / "a.swf", (1, 0, -1, 20, 3, 1), (2, 5, 1, 20, 2, -1))
    schedule = schedule_of(trace)
    assert len(schedule.attempts) == 1
    assert schedule.notes[0] == "1 attempt left out: no start, no run time or no nodes"
    assert "no final states" in schedule.notes[1]


def test_alcf_logs_have_exit_statuses(tmp_path: Path) -> None:
    columns = (
        "COBALT_JOBID,MACHINE_NAME,QUEUED_TIMESTAMP,START_TIMESTAMP,WALLTIME_SECONDS,"
        "RUNTIME_SECONDS,NODES_REQUESTED,NODES_USED,EXIT_STATUS"
    )
    day = "2020-01-01"
    log = tmp_path / "log.csv"
    log.write_text(
        f"{columns}\n1,mira,{day} 00:00:00,{day} 00:01:00,600,60,512,512,0\n"
        f"2,mira,{day} 00:00:30,{day} 00:01:30,600,60,512,1024,143\n"
    )
    schedule = import_alcf(log, True).schedule
    assert schedule is not None
    first, second = schedule.attempts
    assert (first.cause, str(first.nodes), first.start_us) == (
        Cause.COMPLETED, "0-511", 60_000_000,
    )  # fmt: skip
    assert (second.cause, str(second.nodes)) == (Cause.JOB_FAILED, "512-1535")


SPANS = st.lists(
    st.tuples(st.integers(0, 10), st.integers(0, 5), st.integers(1, 4)), min_size=1, max_size=12
)


@given(spans=SPANS)
def test_assigned_nodes_are_never_shared(spans: list[tuple[int, int, int]]) -> None:
    starts, ends = [a for a, _, _ in spans], [a + length for a, length, _ in spans]
    sizes = [size for *_, size in spans]
    used = [
        sum(s for a, b, s in zip(starts, ends, sizes, strict=True) if a <= t < b) for t in range(16)
    ]
    n_nodes = most_used(starts, ends, sizes)
    assert n_nodes == max(*used, *sizes)
    nodes = lowest_free(starts, ends, sizes, n_nodes)
    assert [chosen.size for chosen in nodes] == sizes
    assert all(int(chosen.intervals[-1, 1]) < n_nodes for chosen in nodes)
    for i, j in combinations(range(len(spans)), 2):
        if max(starts[i], starts[j]) < min(ends[i], ends[j]):
            assert not nodes[i].meets(nodes[j])
