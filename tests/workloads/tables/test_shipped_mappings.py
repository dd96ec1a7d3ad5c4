# SPDX-License-Identifier: Apache-2.0
"""Each included mapping, for rows in the format that the data set's README describes."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rebat.api.workloads import load_workload
from rebat.cli.main import main
from rebat.core.jobs import Workload
from rebat.records.mapping import detected_mapping, open_mapping, shipped_mappings
from rebat.workloads.importing import detected
from tests.support.importing import read_table

SEREN = """\
job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time
11,ua,1,8,128,Other,FAILED,2023-03-01 08:00:00+08:00,2023-03-01 08:00:30+08:00,2023-03-01 08:02:30+08:00,120,30,960.0
12,ub,4,32,512,Pretrain,COMPLETED,2023-03-01 08:01:00+08:00,2023-03-01 08:01:00+08:00,2023-03-01 09:01:00+08:00,3600,0,115200.0
13,ub,1,0,4,Other,CANCELLED,2023-03-01 08:02:00+08:00,,2023-03-01 08:03:00+08:00,0,60,0.0
"""  # noqa: E501

KALOS = """\
job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,end_time,fail_time,stop_time,duration,queue,gpu_time
dlca,uc,8,64,960,1000,100.0,Other,FAILED,2023-05-17 11:00:00+00:00,2023-05-17 11:00:10+00:00,2023-05-17 11:00:20+00:00,2023-05-17 11:00:20+00:00,,20,10.0,1280.0
"""  # noqa: E501

HELIOS = """\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
21,ux,vca,1,1,1,COMPLETED,2020-06-09 18:00:00,2020-06-09 18:00:00,2020-06-09 19:00:00,3600,0
22,uy,vcb,16,64,2,FAILED,2020-06-09 18:10:00,2020-06-09 18:11:00,2020-06-09 18:12:00,60,60
"""

PHILLY = [
    {
        "status": "Pass", "vc": "aa", "jobid": "application_1_1", "user": "u1",
        "submitted_time": "2017-10-07 01:00:00",
        "attempts": [
            {"start_time": "2017-10-07 01:01:00", "end_time": "2017-10-07 01:02:00",
             "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}]},
            {"start_time": "2017-10-07 01:05:00", "end_time": "2017-10-07 01:15:00",
             "detail": [{"ip": "m2", "gpus": ["gpu0"]}, {"ip": "m3", "gpus": ["gpu4"]}]},
        ],
    },
    {
        "status": "Killed", "vc": "bb", "jobid": "application_1_2", "user": "u2",
        "submitted_time": "2017-10-07 01:00:30", "attempts": [],
    },
    {
        "status": "Killed", "vc": "bb", "jobid": "application_1_3", "user": "u2",
        "submitted_time": "2017-10-07 01:00:40",
        "attempts": [{"start_time": "2017-10-07 01:05:00", "end_time": "None",
                      "detail": [{"ip": "m2", "gpus": ["gpu0"]}]}],
    },
]  # fmt: skip


def at(minute: int) -> datetime:
    return datetime(2020, 6, 1, 10, minute, tzinfo=UTC)


def slurm_jobs(**columns: list) -> dict[str, list]:
    """Return four jobs of Marconi100's job table with different states and time limits."""
    return {
        "job_id": [1, 2, 3, 4],
        "submit_time": [at(0), at(1), at(2), at(3)],
        "start_time": [at(5), at(6), at(7), datetime(1970, 1, 1, tzinfo=UTC)],
        "end_time": [at(15), at(26), at(59), at(4)],
        "time_limit": [60, 4294967295, 60, 60],
        "user_id": [7, 7, 8, 8],
        "partition": ["0", "0", "1", "1"],
        "qos": ["3", "3", "3", "3"],
        "job_state": ["COMPLETED", "FAILED", "RUNNING", "CANCELLED"],
        **columns,
    }


M100 = slurm_jobs(
    num_nodes=[2, 4, 1, 1], min_memory_node=[0] * 4, sched_nodes=[""] * 4, time_limit_str=[""] * 4,
    nodes=["[1, 2]"] * 4, run_time=[600, 1200, 0, 0],
)  # fmt: skip
PM100 = slurm_jobs(
    num_nodes_req=[1, 4, 1, 1], num_nodes_alloc=[2, 4, 1, 1], power_consumption=[[1.0, 2.0]] * 4,
    num_cores_alloc=[64] * 4, run_time=[600, 1200, 0, 0],
)  # fmt: skip

FDATA = {
    "jid": ["jid_0", "jid_1", "jid_2"],
    "usr": ["usr_0", "usr_0", "usr_1"],
    "nnumr": [12, 384, 1],
    "nnuma": [12, 385, 1],
    "adt": ["2021-04-01 10:00:00+09", "2021-04-01 10:05:00+09", "2021-04-01 10:06:00+09"],
    "sdt": ["2021-04-01 10:01:00+09", "2021-04-01 10:06:00+09", "2021-04-01 10:09:00+09"],
    "edt": ["2021-04-01 10:11:00+09", "2021-04-01 10:36:00+09", "2021-04-01 10:08:00+09"],
    "elpl": [3600.0, 7200.0, 60.0],
    "usctmut": [1.0, 1.0, 1.0],
    "pclass": ["memory-bound"] * 3,
    "exit state": ["completed", "failed", "completed"],
    "duration": [600.0, 1800.0, 0.0],
    "embedding": [[0.1, 0.2]] * 3,
}


def parquet(path: Path, columns: dict[str, list]) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def text(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


def rows(workload: Workload) -> list[tuple]:
    """Return id, submission (s), size, run time (s) and user of each job."""
    delay = workload.profiles
    return [
        (job.id, job.submit_us / 1e6, job.n_nodes, delay[job.profile]["delay"], job.extra["user"])
        for job in workload.jobs
    ]


def limits(workload: Workload) -> list[float | None]:
    return [job.walltime_us and job.walltime_us / 1e6 for job in workload.jobs]


def test_acmetrace_seren(tmp_path: Path) -> None:
    workload = read_table(text(tmp_path / "trace_seren.csv", SEREN), n_nodes=4)
    assert rows(workload) == [("11", 0, 1, 120, "ua"), ("12", 60, 4, 3600, "ub")]
    assert workload.name == "trace_seren"
    assert workload.notes[0] == "1 job dropped: no run time or no nodes"


def test_acmetrace_kalos_has_memory(tmp_path: Path) -> None:
    path = tmp_path / "trace_kalos.csv.gz"
    path.write_bytes(gzip.compress(KALOS.encode()))
    workload = read_table(path, n_nodes=8)
    assert rows(workload) == [("dlca", 0, 8, 10, "uc")]
    assert workload.jobs[0].extra["requested_memory_mb"] == 1_024_000


def test_helios(tmp_path: Path) -> None:
    workload = read_table(text(tmp_path / "cluster_log.csv", HELIOS), n_nodes=8, tz="Asia/Shanghai")
    assert rows(workload) == [("21", 0, 1, 3600, "ux"), ("22", 600, 2, 60, "uy")]
    assert [job.extra["queue"] for job in workload.jobs] == ["vca", "vcb"]


def test_philly_uses_the_last_attempt(tmp_path: Path) -> None:
    path = text(tmp_path / "cluster_job_log", json.dumps(PHILLY))
    workload = read_table(path, n_nodes=8, missing_walltime="none")
    assert rows(workload) == [("application_1_1", 0, 2, 600, "u1")]
    assert workload.notes[0] == "2 jobs dropped: no run time or no nodes"
    lines = text(tmp_path / "lines.json", "\n".join(map(json.dumps, PHILLY)))
    assert read_table(lines, mapping="philly", n_nodes=8).jobs == read_table(path, n_nodes=8).jobs


@pytest.mark.parametrize(
    ("columns", "sizes"), [(M100, [2, 4]), (PM100, [1, 4])], ids=["m100", "pm100"]
)
def test_marconi100(tmp_path: Path, columns: dict[str, list], sizes: list[int]) -> None:
    workload = read_table(parquet(tmp_path / "a_0.parquet", columns), missing_walltime="none")
    assert [row[:2] for row in rows(workload)] == [("1", 0), ("2", 60)]
    assert [row[2:4] for row in rows(workload)] == [(sizes[0], 600), (sizes[1], 1200)]
    assert limits(workload) == [3600, None]
    assert workload.n_nodes == 980
    assert workload.machine is not None
    assert workload.machine["cores_per_node"] == 32
    assert set(workload.notes) >= {
        "1 job dropped: no end (RUNNING)",
        "1 job dropped: no run time or no nodes",
    }


def test_pm100_allocated(tmp_path: Path) -> None:
    workload = read_table(parquet(tmp_path / "pm100.parquet", PM100), size="allocated")
    assert [job.n_nodes for job in workload.jobs] == [2, 4]


def test_a_time_limit_of_text(tmp_path: Path) -> None:
    """According to the documentation time_limit may be INFINITE."""
    columns = {**PM100, "time_limit": ["60", "INFINITE", "60", "60"]}
    path = parquet(tmp_path / "pm100.parquet", columns)
    assert limits(read_table(path, missing_walltime="none")) == [3600, None]


def test_f_data(tmp_path: Path) -> None:
    workload = read_table(parquet(tmp_path / "21_04.parquet", FDATA))
    assert rows(workload) == [("jid_0", 0, 12, 600, "usr_0"), ("jid_1", 300, 384, 1800, "usr_0")]
    assert (workload.n_nodes, limits(workload)) == (158_976, [3600, 7200])
    assert workload.notes == ("1 job dropped: end before start",)


def test_months_follow_the_zone_of_the_data(tmp_path: Path) -> None:
    path = parquet(tmp_path / "21_04.parquet", FDATA)
    workload = read_table(path, months="2021-04", tz="Asia/Tokyo", origin="month")
    assert workload.jobs[0].submit_us == 10 * 3600 * 1_000_000


def test_the_format_and_the_mapping_are_detected(tmp_path: Path) -> None:
    texts = {"acmetrace": SEREN, "helios": HELIOS, "philly": json.dumps(PHILLY)}
    for name, content in texts.items():
        assert detected(text(tmp_path / name, content)) == "table"
    assert detected(parquet(tmp_path / "any", {"a": [1]})) == "table"
    headers = {"m100": M100, "pm100": PM100, "f-data": FDATA, "philly": PHILLY[0]}
    for name, header in headers.items():
        assert detected_mapping(list(header)) == name
    assert detected_mapping(HELIOS.splitlines()[0].split(",")) == "helios"
    assert detected_mapping(KALOS.splitlines()[0].split(",")) == "acmetrace"
    assert detected_mapping(["job_id"]) is None


def test_every_mapping_has_a_title_and_a_source() -> None:
    assert list(shipped_mappings()) == ["acmetrace", "f-data", "helios", "m100", "philly", "pm100"]
    for name in shipped_mappings():
        mapping = open_mapping(name)
        assert mapping.title
        assert mapping.source.startswith("https://")


def test_python(tmp_path: Path) -> None:
    """The library reads Parquet files without a mapping, and other tables with one."""
    assert len(load_workload(parquet(tmp_path / "a.parquet", FDATA)).jobs) == 2
    path = text(tmp_path / "a.csv", SEREN)
    assert len(load_workload(path, mapping="acmetrace", n_nodes=4).jobs) == 2


def test_the_help_lists_the_mappings(capsys) -> None:
    main(["workload", "import", "--help"])
    printed = capsys.readouterr().out
    for name in shipped_mappings():
        assert f"\n  {name} " in printed


def test_a_mapping_selects_the_format(tmp_path: Path, capsys) -> None:
    """The columns of a data set are read also from a file format that its README does not use."""
    rows = [line.split(",") for line in SEREN.splitlines()]
    columns = dict(zip(rows[0], map(list, zip(*rows[1:], strict=True)), strict=True))
    path, out = parquet(tmp_path / "trace.parquet", columns), tmp_path / "jobs.json"
    options = ["--format", "table", "--mapping", "acmetrace", "--nodes", "8", "-o", str(out)]
    main(["workload", "import", str(path), *options])
    assert capsys.readouterr().out.splitlines()[-2].endswith("jobs.json: 2 jobs, 8 nodes")
    main(["workload", "import", str(path), "--nodes", "8", "--force", "-o", str(out)])
    assert len(load_workload(out).jobs) == 2
