# SPDX-License-Identifier: Apache-2.0
"""Tables of jobs: units, time zones, sizes, filters; random jobs are read back unchanged."""

from __future__ import annotations

import json
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebat.records.clock import to_utc
from rebat.records.mapping import SECONDS
from tests.support.amount import few
from tests.support.importing import read_table

EPOCH_S = 1_600_000_000
SIZED = 'submit = {column = "submit", unit = "s"}\nrun = "run"\n'


def mapping(folder: Path, columns: str, rest: str = "") -> Path:
    path = folder / "mapping.toml"
    path.write_text(f'title = "a test"\n{rest}\n[columns]\n{columns}\n')
    return path


def table(folder: Path, *lines: str, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def submissions(workload) -> list[float]:
    return [job.submit_us / 1e6 for job in workload.jobs]


def runs(workload) -> list[float]:
    return [workload.profiles[job.profile]["delay"] for job in workload.jobs]


# ---------------------------------------------------------------- jobs are read back unchanged

counts = st.integers(0, 2_000)
jobs = st.lists(
    st.tuples(counts, counts, st.integers(1, 2_000), st.integers(1, 64), st.integers(1, 3_000)),
    min_size=1,
    max_size=8,
)  # submission, wait, run time in units; nodes; walltime in units


@settings(max_examples=few(25))
@given(jobs=jobs, origin=st.integers(0, 1_000), per_node=st.integers(1, 8))
@pytest.mark.parametrize("form", ["csv", "parquet", "json"])
@pytest.mark.parametrize("unit", SECONDS)
def test_a_list_of_jobs_comes_back(unit: str, form: str, jobs, origin: int, per_node: int) -> None:
    """Times are integers in any unit. The table has starts and ends, and sizes in cores."""
    step = {"us": 1, "ns": 1000}.get(unit, 1)  # rebat's resolution is 1 us
    rows = [
        {
            "id": f"j{number}",
            "submit": step * (origin + submit),
            "start": step * (origin + submit + wait),
            "end": step * (origin + submit + wait + run),
            "cores": nodes * per_node - (per_node - 1) // 2,
            "limit": step * limit,
        }
        for number, (submit, wait, run, nodes, limit) in enumerate(jobs)
    ]
    columns = "\n".join(
        [f'{name} = {{column = "{name}", unit = "{unit}"}}' for name in ("submit", "start", "end")]
        + [f'walltime = {{column = "limit", unit = "{unit}"}}', 'id = "id"']
        + [f'allocated = {{column = "cores", per_node = {per_node}}}']
    )
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), form, rows)
        rules = mapping(Path(folder), columns)
        workload = read_table(path, mapping=rules, n_nodes=64, overrun="keep")
    second = SECONDS[unit] * step
    first = min(submit for submit, *_ in jobs)
    expected = sorted(
        (round((submit - first) * second * 1e6), number, nodes, round(run * second * 1e6),
         round(limit * second * 1e6))
        for number, (submit, _, run, nodes, limit) in enumerate(jobs)
    )  # fmt: skip
    read = [
        (job.submit_us, int(job.id[1:]), job.n_nodes, round(delay * 1e6), job.walltime_us)
        for job, delay in zip(workload.jobs, runs(workload), strict=True)
    ]
    assert read == expected


def written(folder: Path, form: str, rows: list[dict]) -> Path:
    path = folder / f"t.{form}"
    if form == "csv":
        lines = [",".join(map(str, row.values())) for row in rows]
        path.write_text("\n".join([",".join(rows[0]), *lines]) + "\n")
    elif form == "json":
        path.write_text(json.dumps(rows))
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)
    return path


@settings(max_examples=few(25))
@given(
    times=st.lists(st.integers(0, 40_000_000), min_size=1, max_size=8),
    zone=st.sampled_from(["UTC", "Asia/Tokyo", "Europe/Paris", "America/New_York"]),
)
@pytest.mark.parametrize("form", ["iso", "local", "parquet", "parquet-local", "format"])
def test_dates_come_back(form: str, times: list[int], zone: str) -> None:
    dates = [datetime.fromtimestamp(EPOCH_S + time, ZoneInfo(zone)) for time in times]
    real = [date.replace(fold=0).timestamp() for date in dates]  # the first of two equal hours
    option = ', format = "%d/%m/%Y %H:%M:%S"' if form == "format" else ""
    with tempfile.TemporaryDirectory() as folder:
        path = dated(Path(folder), form, dates)
        rules = mapping(
            Path(folder), f'submit = {{column = "at"{option}}}\nrun = "run"\nallocated = "n"'
        )
        workload = read_table(path, mapping=rules, n_nodes=4, tz=zone)
    expected = real if form in ("local", "parquet-local", "format") else map(
        datetime.timestamp, dates
    )  # fmt: skip
    since = sorted(expected)
    assert submissions(workload) == [time - since[0] for time in since]


def dated(folder: Path, form: str, dates: list[datetime]) -> Path:
    local = [date.replace(tzinfo=None) for date in dates]
    if form.startswith("parquet"):
        values = dates if form == "parquet" else local
        utc = [value.astimezone(UTC) for value in values] if form == "parquet" else values
        columns = {"at": utc, "run": [timedelta(seconds=5)] * len(dates), "n": [1] * len(dates)}
        pq.write_table(pa.table(columns), folder / "t.parquet")
        return folder / "t.parquet"
    show = {"format": "%d/%m/%Y %H:%M:%S"}.get(form, "%Y-%m-%d %H:%M:%S")
    texts = [f"{date:{show}}" if form != "iso" else date.isoformat() for date in local]
    if form == "iso":
        texts = [date.isoformat() for date in dates]
    return table(folder, "at,run,n", *(f"{text},5,1" for text in texts))


@given(st.integers(0, 3_000_000_000), st.sampled_from(["Europe/Paris", "Australia/Lord_Howe"]))
def test_local_times_are_those_of_python(second: int, zone: str) -> None:
    local = datetime(1970, 1, 1) + timedelta(seconds=second)
    expected = local.replace(tzinfo=ZoneInfo(zone)).timestamp()
    assert to_utc(np.array([float(second)]), ZoneInfo(zone))[0] == [expected]


# ---------------------------------------------------------------- options of a mapping


def test_gpus_are_nodes_of_eight_rounded_up(tmp_path: Path) -> None:
    rules = mapping(tmp_path, SIZED + 'requested = {column = "gpus", per_node = 8}\nid = "id"')
    rows = ["id,submit,run,gpus", "a,0,5,1", "b,1,5,8", "c,2,5,9", "d,3,5,0", "e,4,5,"]
    workload = read_table(table(tmp_path, *rows), mapping=rules, n_nodes=4)
    assert [(job.id, job.n_nodes) for job in workload.jobs] == [("a", 1), ("b", 1), ("c", 2)]
    assert workload.notes[0] == "2 jobs dropped: no run time or no nodes"


def test_rows_are_selected_by_values(tmp_path: Path) -> None:
    rest = 'where = {cluster = "Seren", kind = ["a", "b"]}\nmachine = {nodes = 9}'
    rules = mapping(tmp_path, SIZED + 'requested = "n"', rest)
    rows = ["submit,run,n,cluster,kind", "0,5,1,Seren,a", "1,broken,1,Kalos,a", "2,6,1,Seren,c",
            "3,7,1,Seren,b"]  # fmt: skip
    workload = read_table(table(tmp_path, *rows), mapping=rules)
    assert (runs(workload), workload.n_nodes) == ([5, 7], 9)
    assert workload.notes[0] == "2 of 4 rows have the values of 'where'"


def test_states_that_are_no_jobs(tmp_path: Path) -> None:
    state = 'state = {column = "s", never_ran = ["PENDING"], running = ["RUNNING"]}'
    rules = mapping(tmp_path, SIZED + f'requested = "n"\n{state}')
    rows = ["submit,run,n,s", "0,5,1,DONE", "1,5,1,PENDING", "2,5,1,RUNNING", "3,5,1,PENDING"]
    workload = read_table(table(tmp_path, *rows), mapping=rules, n_nodes=4)
    assert submissions(workload) == [0]
    assert workload.notes[:2] == (
        "2 jobs dropped: never ran (PENDING)",
        "1 job dropped: no end (RUNNING)",
    )


def test_wait_gives_the_start(tmp_path: Path) -> None:
    columns = """
    submit = {column = "t", unit = "min"}
    wait = {column = "w", unit = "min"}
    end = {column = "e", unit = "min"}
    requested = "n"
    """
    path = table(tmp_path, "t,w,e,n", "10,5,20,1")
    assert runs(read_table(path, mapping=mapping(tmp_path, columns), n_nodes=4)) == [300]


def test_durations_of_slurm_and_fields_of_owners(tmp_path: Path) -> None:
    columns = """
    submit = {column = "t", unit = "s"}
    run = {column = "r", unit = "hms"}
    walltime = {column = "l", unit = "hms"}
    allocated = "n"
    user = {column = "u", unset = ["nobody"]}
    queue = "q"
    account = "a"
    memory = {column = "m", unit = "GB"}
    """
    rows = ["t,r,l,n,u,q,a,m", "0,01:00:00,1-00:00:00,1,alice,debug,p1,4", "1,00:30,,1,nobody,,,"]
    workload = read_table(table(tmp_path, *rows), mapping=mapping(tmp_path, columns), n_nodes=4)
    assert [job.walltime_us for job in workload.jobs] == [86_400_000_000, 31_000_000]
    assert workload.jobs[0].extra == {
        "user": "alice", "queue": "debug", "account": "p1", "requested_memory_mb": 4096,
    }  # fmt: skip
    assert workload.jobs[1].extra == {}


def test_other_delimiters_and_no_header(tmp_path: Path) -> None:
    rest = 'csv = {delimiter = ";", names = ["submit", "run", "n", "other"]}'
    path = table(tmp_path, '0;5;1;"a;b"', "", "7;5;1;")
    rules = mapping(tmp_path, SIZED + 'requested = "n"', rest)
    assert submissions(read_table(path, mapping=rules, n_nodes=4)) == [0, 7]


def test_repeated_ids_and_hours(tmp_path: Path) -> None:
    rules = mapping(tmp_path, 'submit = "at"\nrun = "r"\nrequested = "n"\nid = "id"')
    path = table(tmp_path, "id,at,r,n", "a,2020-10-25 02:30:00,5,1", "a,2020-10-25 03:30:00,5,1")
    workload = read_table(path, mapping=rules, n_nodes=4, tz="Europe/Paris")
    assert [job.id for job in workload.jobs] == ["a", "a-2"]
    assert submissions(workload) == [0, 7200]
    assert "1 local times are in the hour that clocks repeat in autumn" in workload.notes[0]


def test_zones_may_differ_from_row_to_row(tmp_path: Path) -> None:
    rules = mapping(tmp_path, 'submit = "at"\nrun = "r"\nrequested = "n"')
    path = table(tmp_path, "at,r,n", "2020-01-01 00:00:00Z,5,1", "2020-01-01 08:00:30+08:00,5,1")
    assert submissions(read_table(path, mapping=rules, n_nodes=4)) == [0, 30]


def test_a_zone_of_the_mapping_is_for_dates_without_zone(tmp_path: Path) -> None:
    columns = 'submit = {column = "at", zone = "Asia/Tokyo"}\nrun = "r"\nrequested = "n"'
    path = table(tmp_path, "at,r,n", "2020-01-01 09:00:00,5,1", "2020-01-01 00:00:30Z,5,1")
    assert submissions(read_table(path, mapping=mapping(tmp_path, columns), n_nodes=4)) == [0, 30]


def test_types_of_parquet(tmp_path: Path) -> None:
    columns = {
        "id": pa.array([1.0, 2.0, None]),
        "at": pa.array([datetime(2020, 1, day).date() for day in (1, 2, 3)]),
        "run": pa.array([timedelta(seconds=5), None, timedelta(milliseconds=1500)]),
        "n": pa.array(["1", "2", "1"]).dictionary_encode(),
        "user": pa.array([True, False, None]),
        "queue": pa.nulls(3),
        "limit": pa.array([100, 200, 300], pa.decimal128(10, 2)),
    }
    pq.write_table(pa.table(columns).slice(0, 2), tmp_path / "t.parquet")
    rules = mapping(tmp_path, 'submit = "at"\nrun = "run"\nrequested = "n"\nid = "id"\n'
                    'user = "user"\nqueue = "queue"\nwalltime = "limit"')  # fmt: skip
    workload = read_table(tmp_path / "t.parquet", mapping=rules, n_nodes=4)
    assert [(job.id, job.n_nodes, job.extra) for job in workload.jobs] == [
        ("1", 1, {"user": "true"})
    ]
    assert workload.jobs[0].walltime_us == 100_000_000


def test_ids_without_a_column_are_numbers(tmp_path: Path) -> None:
    rules = mapping(tmp_path, SIZED + 'requested = "n"')
    path = table(tmp_path, "submit,run,n", "0,5,1", "1,5,1")
    assert [job.id for job in read_table(path, mapping=rules, n_nodes=4).jobs] == ["1", "2"]
