# SPDX-License-Identifier: Apache-2.0
"""Results as SWF traces: after reading, waiting times, sizes and ends are the same."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from rebat.cli.main import main
from rebat.workloads.load import load_workload


def rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def lines(path: Path) -> list[list[float]]:
    text = path.read_text().splitlines()
    return [[float(field) for field in line.split()] for line in text if not line.startswith(";")]


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run a policy in which failures interrupt jobs, and nodes are stolen from jobs."""
    folder = tmp_path_factory.mktemp("result")
    main(
        ["run", "synthetic-small", "-p", "sfsj", "--mtbf", "20min", "--downtime", "10min",
         "--out", str(folder / "out")]
    )  # fmt: skip
    main(["workload", "export", str(folder / "out/sfsj"), "-o", str(folder / "run.swf")])
    return folder


def test_a_job_has_a_line_and_its_attempts_have_one_each(result: Path) -> None:
    attempts = Counter(
        row["job_id"] for row in rows(result / "out/sfsj/rebat_attempts.csv") if row["start_time"]
    )
    table = lines(result / "run.swf")
    jobs = [row for row in table if row[10] in (0, 1, 5)]
    parts = [row for row in table if row[10] in (2, 3, 4)]
    assert len(jobs) == len(attempts)
    assert len(parts) == sum(n for n in attempts.values() if n > 1) > 0
    assert sum(row[1] >= 0 for row in parts) == sum(n > 1 for n in attempts.values())
    for job in jobs:
        own = [row for row in parts if row[0] == job[0]]
        assert [row[10] for row in own[:-1]] == [2] * (len(own) - 1)
        if own:
            assert own[-1][10] == (3 if job[10] == 1 else 4)
            assert sum(row[3] for row in own) == pytest.approx(job[3])
            assert (own[0][1], own[0][2]) == (job[1], job[2])


def test_read_back_the_waits_are_the_same(result: Path, tmp_path: Path) -> None:
    main(
        ["workload", "import", str(result / "run.swf"), "-o", str(tmp_path / "jobs.json"),
         "--schedule", str(tmp_path / "past")]
    )  # fmt: skip
    ours = rows(tmp_path / "past/recorded/rebat_jobs.csv")
    theirs = rows(result / "out/sfsj/rebat_jobs.csv")
    names = ("size", "submission_time", "first_start", "finish_time", "waiting_time", "attempts")
    origin = min(float(row["submission_time"]) for row in theirs)
    shifted = ("submission_time", "first_start", "finish_time")
    for name in names:
        zero = origin if name in shifted else 0.0
        expected = sorted(float(row[name]) - zero for row in theirs)
        assert sorted(float(row[name]) for row in ours) == pytest.approx(expected, abs=1e-5), name
    main(["validate", str(tmp_path / "past")])


def test_statuses_of_recorded_jobs(tmp_path: Path) -> None:
    """A completed, a failed and a cancelled job, and a job that ran twice."""
    columns = "JobID|User|Partition|Submit|Start|End|State|NNodes|TimelimitRaw|NodeList"
    table = [
        ("1", "a", "p", 0, 5, 15, "COMPLETED", "n1"), ("2", "b", "p", 1, 6, 9, "FAILED", "n2"),
        ("3", "a", "q", 2, 7, 9, "CANCELLED by 7", "n3"),
        ("4", "b", "q", 3, 10, 20, "NODE_FAIL", "n[2-3]"),
        ("4", "b", "q", 21, 30, 45, "TIMEOUT", "n[3-4]"),
    ]  # fmt: skip
    text = [columns]
    for job, user, queue, submit, start, end, state, nodes in table:
        times = "|".join(str(1_700_000_000 + at) for at in (submit, start, end))
        size = 2 if "[" in nodes else 1
        text.append(f"{job}|{user}|{queue}|{times}|{state}|{size}|1|{nodes}")
    (tmp_path / "dump.txt").write_text("\n".join(text) + "\n")
    workload, past, trace = (str(tmp_path / name) for name in ("jobs.json", "past", "past.swf"))
    main(["workload", "import", str(tmp_path / "dump.txt"), "-o", workload, "--schedule", past])
    main(["workload", "export", past, "--workload", workload, "-o", trace])
    assert Path(trace).read_text().splitlines()[4] == "; UnixStartTime: 1700000000"
    assert lines(Path(trace)) == [
        [1, 0, 5, 10, 1, -1, -1, 1, 60, -1, 1, 1, -1, -1, 1, -1, -1, -1],
        [2, 1, 5, 3, 1, -1, -1, 1, 60, -1, 0, 2, -1, -1, 1, -1, -1, -1],
        [3, 2, 5, 2, 1, -1, -1, 1, 60, -1, 5, 1, -1, -1, 2, -1, -1, -1],
        [4, 3, 7, 25, 2, -1, -1, 2, 60, -1, 0, 2, -1, -1, 2, -1, -1, -1],
        [4, 3, 7, 10, 2, -1, -1, 2, 60, -1, 2, 2, -1, -1, 2, -1, -1, -1],
        [4, -1, 10, 15, 2, -1, -1, 2, 60, -1, 4, 2, -1, -1, 2, -1, -1, -1],
    ]
    jobs = load_workload(Path(trace)).jobs
    assert [(job.id, job.n_nodes, job.extra["user"]) for job in jobs] == [
        ("1", 1, "1"), ("2", 1, "2"), ("3", 1, "1"), ("4", 2, "2"),
    ]  # fmt: skip


def test_a_folder_of_several_policies_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["run", "toy", "-p", "easy", "-p", "baseline", "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit) as exit_:
        main(["workload", "export", str(tmp_path / "out"), "-o", str(tmp_path / "a.swf")])
    assert exit_.value.code == 2
    assert "one of them" in capsys.readouterr().err


def test_an_option_for_runs_is_refused_for_workloads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["workload", "export", "toy", "--workload", "toy", "-o", str(tmp_path / "a.swf")])
    assert "has no effect on a workload" in capsys.readouterr().err
