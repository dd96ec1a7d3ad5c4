# SPDX-License-Identifier: Apache-2.0
"""Workloads as SWF traces."""

from __future__ import annotations

from pathlib import Path

from rebat.cli.main import main
from rebat.core.jobs import Job, Workload
from rebat.workloads.importing import import_jobs
from rebat.workloads.load import load_workload
from rebat.workloads.swf_export import write_swf

TRACE = """; UnixStartTime: 0
; MaxProcs: 64
7 0 -1 100 4 -1 -1 4 200 -1 1 3 -1 -1 2 -1 -1 -1
9 50 -1 30 64 -1 -1 64 60 -1 1 5 -1 -1 2 -1 -1 -1
"""


def test_an_exported_trace_has_the_same_jobs(tmp_path: Path) -> None:
    first, again = tmp_path / "a.swf", tmp_path / "b.swf.gz"
    first.write_text(TRACE)
    main(["workload", "import", str(first), "-o", str(tmp_path / "a.json")])
    main(["workload", "export", str(tmp_path / "a.json"), "-o", str(again)])
    rows = [
        [(j.n_nodes, j.submit_us, j.walltime_us, j.profile) for j in load_workload(path).jobs]
        for path in (first, again)
    ]
    assert rows[0] == rows[1]
    assert [job.extra["user"] for job in load_workload(again).jobs] == ["1", "2"]


CHAIN = """; UnixStartTime: 0
; MaxProcs: 8
1 0 0 100 2 -1 -1 2 200 -1 1 1 -1 -1 1 -1 -1 -1
2 130 0 50 2 -1 -1 2 200 -1 1 1 -1 -1 1 -1 1 30
3 140 0 50 2 -1 -1 2 200 -1 1 1 -1 -1 1 -1 2 5
4 150 0 50 2 -1 -1 2 200 -1 1 1 -1 -1 1 -1 99 5
5 300 -1 50 2 -1 -1 2 200 -1 1 1 -1 -1 1 -1 2 0
"""


def test_preceding_jobs_and_think_times_are_kept(tmp_path: Path) -> None:
    (tmp_path / "a.swf").write_text(CHAIN)
    made = import_jobs(tmp_path / "a.swf", schedule=True)
    found = [(j.extra.get("dependency"), j.extra.get("think_time")) for j in made.workload.jobs]
    # Job 3 started before the end of job 2, and job 99 is not in the trace.
    assert found == [(None, None), ("afterany:1", 30), (None, 5), (None, 5), ("afterany:2", None)]
    notes = " ".join(made.workload.notes)
    assert "3 jobs with a think time after the end of the preceding job" in notes
    assert "2 jobs with dependencies on other jobs of the workload" in notes
    assert "1 dependency left out: the other job is not in the workload" in notes
    assert "1 dependency left out: the job started too early for it in the record" in notes
    assert write_swf(made.workload, tmp_path / "b.swf") == []
    ends = [line.split()[16:] for line in (tmp_path / "b.swf").read_text().splitlines()[3:]]
    assert ends == [["-1", "-1"], ["1", "30"], ["-1", "-1"], ["-1", "-1"], ["2", "-1"]]
    again = import_jobs(tmp_path / "b.swf").workload
    assert [job.extra.get("dependency") for job in again.jobs] == [row[0] for row in found]


def test_the_export_of_a_result_has_preceding_jobs(tmp_path: Path) -> None:
    (tmp_path / "a.swf").write_text(CHAIN)
    main(["workload", "import", str(tmp_path / "a.swf"), "-o", str(tmp_path / "a.json")])
    main(["run", str(tmp_path / "a.json"), "-p", "easy", "--out", str(tmp_path / "o")])
    main(["workload", "export", str(tmp_path / "o"), "--workload", str(tmp_path / "a.json"),
          "-o", str(tmp_path / "c.swf")])  # fmt: skip
    lines = [line.split() for line in (tmp_path / "c.swf").read_text().splitlines()]
    ends = {line[0]: line[16:] for line in lines if line[0] != ";"}
    assert (ends["2"], ends["5"], ends["1"]) == (["1", "30"], ["2", "-1"], ["-1", "-1"])


def test_dependencies_that_swf_cannot_contain_have_notes(tmp_path: Path) -> None:
    texts = ["", "afterok:0", "afterany:0:1", "after:1", "afterany:2,after:0"]
    jobs = tuple(
        Job(str(n), 1, n, None, "d", {"dependency": text, "array": "x%2"} if text else {})
        for n, text in enumerate(texts)
    )
    load = Workload("w", 4, jobs, {"d": {"type": "delay", "delay": 10}})
    assert write_swf(load, tmp_path / "a.swf") == [
        "3 jobs with several dependencies, or on the start of a job: the trace lacks some of them",
        "4 jobs of arrays with a limit of simultaneous tasks: the trace lacks the limit",
    ]
    ends = [line.split()[16] for line in (tmp_path / "a.swf").read_text().splitlines()[3:]]
    assert ends == ["-1", "1", "-1", "-1", "3"]
