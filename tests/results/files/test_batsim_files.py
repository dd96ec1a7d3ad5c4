# SPDX-License-Identifier: Apache-2.0
"""Reading jobs.csv of Batsim and of rebat, or some of its columns; other files are errors."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from rebat.campaign.batsched import recorded
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.results.files.batsim_files import REQUIRED, find_jobs_file, read_jobs
from tests.support.recordings import folder_of
from tests.support.tables import edited, only, table, toy_csv


def test_our_table_is_read(tmp_path: Path) -> None:
    records = {record.job_id: record for record in table(tmp_path, toy_csv()).records}
    again = records["3#1"]
    assert (again.key, again.n_nodes, again.nodes) == ("w0!3#1", 6, NodeSet.parse("1 3-7"))
    assert again.end_us - again.start_us == again.run_us


def test_the_real_batsims_tables_are_read() -> None:
    jobs = read_jobs(folder_of("dyn_submitter") / "dyn_submitter_jobs.csv")
    assert len(jobs.records) == 15
    assert not jobs.unique_ids  # job 0 is in two workloads
    assert not jobs.repeated()
    assert jobs.records[0].key == "dynamic!0"
    assert jobs.records[0].wait_us == 135


def test_an_extract_of_five_columns_is_read(tmp_path: Path) -> None:
    record = read_jobs(recorded()["mira-like-june-2017"]["batsched-easy"]).records[0]
    assert (record.start_us, record.end_us, record.submit_us) == (229_000_000, 312_000_000, None)
    short = table(tmp_path, only(toy_csv(), *REQUIRED))
    assert {record.workload for record in short.records} == {""}


def test_a_rejected_job_never_ran(tmp_path: Path) -> None:
    empty = dict.fromkeys(
        ("starting_time", "execution_time", "finish_time", "waiting_time", "turnaround_time",
         "stretch", "allocated_resources"), ""
    )  # fmt: skip
    jobs = table(tmp_path, edited(toy_csv(), "4", final_state="REJECTED", **empty))
    assert [record.job_id for record in jobs.records if not record.ran] == ["4"]


def test_a_scattered_allocation_on_a_large_machine_is_read(tmp_path: Path) -> None:
    nodes = " ".join(str(node) for node in range(0, 49_152, 2))
    jobs = table(tmp_path, f"{','.join(REQUIRED)}\n1,COMPLETED_KILLED,0,1,{nodes}\n")
    assert len(jobs.records[0].nodes) == 24_576


def test_the_walltime_minus_one_is_none(tmp_path: Path) -> None:
    jobs = table(tmp_path, edited(toy_csv(), "1", requested_time="-1.000000"))
    assert [record.job_id for record in jobs.records if record.walltime_us is None] == ["1"]


def test_gz_and_folders(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/rebat_jobs.csv").write_text("something else")
    (tmp_path / "run/out_jobs.csv.gz").write_bytes(gzip.compress(toy_csv().encode()))
    assert len(read_jobs(tmp_path / "run").records) == 7
    (tmp_path / "run/jobs.csv").write_text(toy_csv())
    assert find_jobs_file(tmp_path / "run").name == "jobs.csv"


def test_a_folder_of_runs_means_its_only_run_and_names_several(tmp_path: Path) -> None:
    (tmp_path / "comparison.csv").write_text("metric,policy,value\n")
    with pytest.raises(InputError, match="the folder contains no table of jobs"):
        read_jobs(tmp_path)
    for name in ("baseline", "sfsj"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "jobs.csv").write_text(toy_csv())
        if name == "baseline":
            assert read_jobs(tmp_path).path == tmp_path / "baseline/jobs.csv"
    with pytest.raises(InputError, match=r"runs of 2 policies: baseline, sfsj .*/baseline\)"):
        read_jobs(tmp_path)


HEADER = ",".join(REQUIRED)
BAD = {
    "empty file": ("", ":1"),
    "no such columns": ("a,b\n1,2\n", "job_id"),
    "one column missing": (",".join(REQUIRED[:-1]) + "\n", "allocated_resources"),
    "a short row": (f"{HEADER}\n1,COMPLETED_KILLED,0\n", ":2"),
    "a long row": (f"{HEADER}\n1,COMPLETED_KILLED,0,1,0,0\n", ":2"),
    "no id": (f"{HEADER}\n,COMPLETED_KILLED,0,1,0\n", "job_id"),
    "unknown state": (f"{HEADER}\n1,DONE,0,1,0\n", "DONE"),
    "a date in words": (f"{HEADER}\n1,COMPLETED_KILLED,noon,1,0\n", "starting_time is 'noon'"),
    "a date without end": (f"{HEADER}\n1,COMPLETED_KILLED,0,inf,0\n", "finish_time is 'inf'"),
    "not a number": (f"{HEADER}\n1,COMPLETED_KILLED,nan,1,0\n", "starting_time"),
    "half a run": (f"{HEADER}\n1,COMPLETED_KILLED,0,,0\n", "both times or neither"),
    "broken nodes": (f"{HEADER}\n1,COMPLETED_KILLED,0,1,0-\n", "0-"),
    "a node beyond reason": (f"{HEADER}\n1,COMPLETED_KILLED,0,1,99999999999\n", "99999999999"),
    "an open quote": (f'{HEADER}\n1,COMPLETED_KILLED,0,1,"0\n', "invalid CSV"),
    "broken size": (
        f"{HEADER},requested_number_of_resources\n1,COMPLETED_KILLED,0,1,0,2.5\n", "2.5",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_tables_are_told_with_file_and_line(tmp_path: Path, name: str) -> None:
    text, told = BAD[name]
    with pytest.raises(InputError) as error:
        table(tmp_path, text)
    assert "jobs.csv" in str(error.value)
    assert told in str(error.value)


def test_missing_and_binary_files_are_told(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"\xff\xfe\x00\x01")
    for name in ("x.csv", "absent.csv"):
        with pytest.raises(InputError, match=name):
            read_jobs(tmp_path / name)
