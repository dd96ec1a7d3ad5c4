# SPDX-License-Identifier: Apache-2.0
"""Tables of runs as Parquet: readers of the CSV files read the same values from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rebat
from rebat.cli.main import main
from rebat.core.errors import InputError
from rebat.core.formatting import csv_field
from rebat.core.table import Texts
from rebat.results.files.batsim_files import read_jobs
from rebat.results.files.run_folder import read_timeline
from rebat.results.files.tables import (
    Names,
    Reals,
    Rows,
    Seconds,
    Words,
    row_reader,
    table_in,
    write_table,
)
from rebat.workloads.generate import synthetic
from tests.results.files.test_timelines import same

pytest.importorskip("pyarrow")

TABLES = ("jobs", "rebat_jobs", "rebat_attempts")


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> tuple[Path, Path]:
    """The same run, written in both formats."""
    out = tmp_path_factory.mktemp("formats")
    failures = rebat.failures(mtbf="20min", downtime="10min")
    result = rebat.run(synthetic(0, 100), "sfsj", failures=failures, checkpoint="young-daly")
    for form in ("csv", "parquet"):
        result.write(out / form, format=form)
    return out / "csv" / "sfsj", out / "parquet" / "sfsj"


def test_the_large_tables_are_parquet_and_the_other_files_are_equal(folders) -> None:
    text, parquet = ({file.name: file for file in folder.iterdir()} for folder in folders)
    assert {f"{name}.parquet" for name in TABLES} == parquet.keys() - text.keys()
    assert {f"{name}.csv" for name in TABLES} == text.keys() - parquet.keys()
    for name in text.keys() & parquet.keys():
        assert text[name].read_bytes() == parquet[name].read_bytes()


@pytest.mark.parametrize("name", TABLES)
def test_the_cells_are_equal(folders, name: str) -> None:
    tables = []
    for folder in folders:
        with row_reader(table_in(folder, name)) as reader:
            tables.append(list(reader))
    assert tables[0] == tables[1]
    assert len(tables[0]) > 10


def test_readers_read_both(folders, tmp_path: Path, capsys) -> None:
    assert same(*map(tuple, map(read_timeline, folders)))
    assert read_jobs(folders[0]).records == read_jobs(folders[1]).records
    traces = []
    for folder in folders:
        assert main(["validate", str(folder)]) is None
        main(["workload", "export", str(folder), "-o", str(tmp_path / "t.swf"), "--force"])
        traces.append((tmp_path / "t.swf").read_bytes())
    assert traces[0] == traces[1]
    main(["compare", str(folders[0]), str(folders[1])])
    assert "differ" not in capsys.readouterr().out.splitlines()[0]


def names(*texts: str, **fields: Any) -> Names:
    return Names(lambda part: Texts.of(texts[part]), **fields)


def test_guarded_names_are_plain_in_parquet(tmp_path: Path) -> None:
    start_us = np.array([1_500_000, -1])
    columns = {
        "job_id": names('a,"b', "=x"),
        "cause": Words(np.array([1, 0]), ["", "=1+1"]),
        "start_time": Seconds(start_us, start_us < 0),
    }
    for form in ("csv", "parquet"):
        write_table(tmp_path, "rebat_jobs", columns, 2, form)
    text = (tmp_path / "rebat_jobs.csv").read_text()
    assert text == 'job_id,cause,start_time\n"a,""b",\'=1+1,1.500000\n\'=x,,\n'
    for ending in ("csv", "parquet"):
        rows = Rows(tmp_path / f"rebat_jobs.{ending}", ("job_id",))
        assert rows.names("job_id") == ['a,"b', "=x"]
        assert rows.names("cause") == ["=1+1", ""]
        assert rows.times("start_time", empty=-1).tolist() == [1_500_000, -1]
    write_table(tmp_path, "jobs", {"job_id": names("'=x", field=csv_field)}, 1, "parquet")
    assert Rows(tmp_path / "jobs.parquet", ()).texts("job_id") == ["'=x"]


def test_errors_name_the_row(folders, tmp_path: Path) -> None:
    columns = {"job_id": names("1", "2"), "start_time": Reals(np.array([5.0, -1.0]))}
    write_table(tmp_path, "rebat_jobs", columns, 2, "parquet")
    with pytest.raises(InputError, match=r"rebat_jobs.parquet:3: start_time is '-1.000000'"):
        Rows(tmp_path / "rebat_jobs.parquet", ()).times("start_time")
    (tmp_path / "rebat_jobs.parquet").write_bytes(b"no")
    with pytest.raises(InputError, match="broken Parquet"):
        Rows(tmp_path / "rebat_jobs.parquet", ())


def test_the_format_is_checked_before_the_run(tmp_path: Path, capsys) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["run", "toy", "-p", "easy", "--seeds", "2", "--format", "parquet",
              "--out", str(tmp_path / "o")])  # fmt: skip
    assert exit_.value.code == 2
    assert "--format: has no effect (expected a single seed)" in capsys.readouterr().err
    with pytest.raises(InputError, match="format: unknown format 'orc'"):
        rebat.run("toy", "easy").write(tmp_path / "o", format="orc")
