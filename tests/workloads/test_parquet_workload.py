# SPDX-License-Identifier: Apache-2.0
"""Workloads as Parquet: the same workload as in JSON, and errors that name the row."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rebat
from rebat.cli.main import main
from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload
from rebat.workloads.batsim_json import to_json
from rebat.workloads.generate import generator
from rebat.workloads.load import load_workload, save_workload
from rebat.workloads.parquet_workload import KEY, is_workload
from tests.support.amount import few

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

PROFILES = {
    "a": {"type": "delay", "delay": 5},
    "both": {"type": "composed", "seq": ["a", "unused"], "repeat": 2},
    "unused": {"type": "delay", "delay": 0.5, "ret": 1},
}
JOBS = st.builds(
    Job,
    id=st.text(st.characters(exclude_characters="(),|}!", exclude_categories="CZ"), min_size=1),
    n_nodes=st.integers(1, 8),
    submit_us=st.integers(0, 10**15),
    walltime_us=st.none() | st.integers(1, 10**15),
    profile=st.sampled_from(["a", "both"]),
    extra=st.sampled_from(
        [{}, {"array": "a%2"}, {"user": "ä", "shape": {"kind": "malleable", "min": 1, "max": 8}}]
    ),
)


def saved(workload: Workload, folder: Path, ending: str = "parquet") -> Path:
    path = folder / f"w.{ending}"
    save_workload(workload, path)
    return path


def small(**changes) -> Workload:
    jobs = tuple(Job(str(n), 2, n * 10**6, 9 * 10**6, "a") for n in range(3))
    return msgspec.structs.replace(Workload("w", 8, jobs, PROFILES, ("a note",)), **changes)


@settings(max_examples=few(50))
@given(jobs=st.lists(JOBS, min_size=1, max_size=9, unique_by=lambda job: job.id))
def test_a_workload_is_the_same_after_writing_and_reading(tmp_path_factory, jobs) -> None:
    folder = tmp_path_factory.mktemp("parquet")
    workload = small(jobs=tuple(jobs), machine={"origin_s": 5})
    again = load_workload(saved(workload, folder))
    assert again == workload
    assert to_json(again) == to_json(load_workload(saved(workload, folder, "json")))


def test_equal_workloads_are_equal_bytes(tmp_path: Path) -> None:
    first, second = (tmp_path / name for name in ("one", "two"))
    first.mkdir()
    second.mkdir()
    assert saved(small(), first).read_bytes() == saved(small(), second).read_bytes()


def test_a_run_is_the_same_from_both_files(tmp_path: Path) -> None:
    month = generator("cluster-day:hours=3")(0)
    runs = [
        rebat.run(saved(month, tmp_path, ending), "easy", failures=rebat.failures(mtbf="2h"))
        for ending in ("json", "parquet")
    ]
    assert runs[0].attempts.equals(runs[1].attempts)


def test_commands_write_and_read_it(tmp_path: Path, capsys) -> None:
    there, back = tmp_path / "day.parquet", tmp_path / "day.json"
    main(["workload", "generate", "cluster-day:hours=1", "-o", str(there)])
    main(["workload", "export", str(there), "--format", "batsim4", "-o", str(back)])
    main(
        [
            "workload",
            "export",
            str(back),
            "--format",
            "parquet",
            "-o",
            str(tmp_path / "again.parquet"),
        ]
    )
    assert load_workload(tmp_path / "again.parquet").jobs == load_workload(there).jobs
    assert is_workload(there)
    assert main(["workload", "describe", str(there)]) is None
    assert "jobs" in capsys.readouterr().out


def changed(path: Path, column: str, values: list, kind: str | None = None) -> Path:
    """Replace a column of a file."""
    table = pq.read_table(path)
    at = table.schema.get_field_index(column)
    array = pa.array(values, kind or table.schema.field(column).type)
    pq.write_table(table.set_column(at, column, array), path)
    return path


@pytest.mark.parametrize(
    ("column", "values", "match"),
    [
        ("id", ["1", "1", "2"], "row 2: duplicate job id '1'"),
        ("id", ["1", "a!b", "2"], "row 2: id is 'a!b'"),
        ("id", ["1", "", "2"], "row 2: id is ''"),
        ("id", ["1", None, "2"], "row 2: id is None"),
        ("n_nodes", [1, 2, 0], "row 3: n_nodes is 0"),
        ("submit_us", [1, -2, 0], "row 2: submit_us is -2"),
        ("walltime_us", [0, 2, 3], "row 1: walltime_us is 0"),
        ("extra", [None, '{"shape": 5}', None], "job 1"),
        ("extra", [None, "[]", None], "row 2: extra"),
        ("extra", [None, "{", None], "row 2: extra"),
    ],
)  # fmt: skip
def test_invalid_rows_are_named(tmp_path, column, values, match) -> None:
    with pytest.raises(InputError, match=match):
        load_workload(changed(saved(small(), tmp_path), column, values))


def test_invalid_files_are_named(tmp_path: Path) -> None:
    path = saved(small(), tmp_path)
    with pytest.raises(InputError, match="column n_nodes is string"):
        load_workload(changed(path, "n_nodes", ["1", "2", "3"], pa.string()))
    table = pq.read_table(saved(small(), tmp_path))
    pq.write_table(table.replace_schema_metadata({KEY: b"no"}), path)
    with pytest.raises(InputError, match="invalid metadata"):
        load_workload(path)
    path.write_bytes(b"PAR1")
    with pytest.raises(InputError, match="broken Parquet"):
        load_workload(path)
    unknown = small(jobs=(Job("1", 1, 0, None, "no"),))
    with pytest.raises(InputError, match="row 1: profile is 'no'"):
        load_workload(saved(unknown, tmp_path))
    circle = small(jobs=(Job("1", 1, 0, None, "a", {"dependency": "after:1"}),))
    with pytest.raises(InputError, match="job 1: dependency: is a cycle"):
        load_workload(saved(circle, tmp_path))
    with pytest.raises(InputError, match="no effect on a workload"):
        load_workload(saved(small(), tmp_path), months="2018-11")
