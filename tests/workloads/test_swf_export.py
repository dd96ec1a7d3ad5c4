# SPDX-License-Identifier: Apache-2.0
"""Workloads as SWF traces."""

from __future__ import annotations

from pathlib import Path

from rebat.cli.main import main
from rebat.workloads.load import load_workload

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
