# SPDX-License-Identifier: Apache-2.0
"""Invalid mappings and tables: one line with the place, exit status 2, no output file."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rebat.cli.main import main

COLUMNS = 'submit = {column = "t", unit = "s"}\nrun = "r"\nrequested = "n"\nid = "id"'
DATES = 'submit = "t"\nrun = "r"\nrequested = "n"\nid = "id"'


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


def mapping(columns: str = COLUMNS, rest: str = "") -> None:
    Path("m.toml").write_text(f'title = "a test"\n{rest}\n[columns]\n{columns}\n')


def refused(capsys, *options: str, table: str = "t.csv") -> str:
    """Run an import that fails, and return its error, which is one line."""
    with pytest.raises(SystemExit) as exit_:
        main(["workload", "import", table, "--nodes", "8", *options, "-o", "out.json"])
    printed = capsys.readouterr().err
    assert exit_.value.code == 2
    assert len(printed.splitlines()) == 1, printed
    assert len(printed) < 500, printed
    assert not Path("out.json").exists()
    return printed


def import_error(capsys, *rows: str, columns: str = COLUMNS) -> str:
    mapping(columns)
    Path("t.csv").write_text("".join(f"{row}\n" for row in ("id,t,r,n", *rows)))
    return refused(capsys, "--mapping", "m.toml", "--strict")


ROWS = {
    "a text": (["a,0,5,1", "b,zero,5,1"], "t.csv:3: t is 'zero' (expected a number)"),
    "infinite": (["a,0,inf,1"], "t.csv:2: r is inf (expected a number)"),
    "negative time": (["a,-5,5,1"], "t.csv:2: t is -5 s"),
    "negative run time": (["a,0,-5,1"], "t.csv:2: run time of job a is -5"),
    "negative size": (["a,0,5,-7"], "t.csv:2: number of nodes of job a is -7"),
    "a part of a node": (["a,0,5,1.5"], "t.csv:2: number of nodes of job a is 1.5"),
    "milliseconds read as seconds": (["a,1600000000000,5,1"], "t.csv:2: t is 1600000000000 s"),
    "dates read as seconds": (["a,2020-01-01,5,1"], "t.csv:2: t is '2020-01-01'"),
    "a comma in an id": (['"a,b",0,5,1'], "t.csv:2: id is 'a,b'"),
    "no id": ([",0,5,1"], "t.csv:2: id is ''"),
    "fewer fields": (["a,0,5,1", "b,0"], "t.csv:3: has 2 fields (expected 4 as in the header)"),
    "only NaN": (["a,NaN,5,1", "b,0,NaN,1", "c,0,5,NaN"], "no job is left (1 job dropped: no sub"),
    "no rows": ([], "t.csv: has no rows (expected a row per job)"),
}


@pytest.mark.parametrize("case", ROWS)
def test_rows(case: str, capsys) -> None:
    rows, expected = ROWS[case]
    assert f"rebat: error: {expected}" in import_error(capsys, *rows).replace("t.csv: no", "no")


DATED = {
    "mixed zones": (
        ["a,2020-01-01 00:00:00Z,5,1", "b,2020-01-01 00:00:00,5,1"],
        "t.csv:3: t is '2020-01-01 00:00:00' (expected all dates like the dates with a zone above",
    ),
    "seconds read as dates": (["a,1600000000.5,5,1"], "t.csv:2: t is '1600000000.5' (expected Y"),
    "no date": (["a,2020-13-01,5,1"], "t.csv:2: t is '2020-13-01' (expected YYYY-MM-DD HH:MM:SS)"),
    "year 1": (["a,0001-01-01,5,1"], "t.csv:2: t is -62135596800 seconds since 1970"),
    "year 9999": (["a,9999-01-01,5,1"], "t.csv:2: t is 253370764800 seconds since 1970"),
}


@pytest.mark.parametrize("case", DATED)
def test_dates(case: str, capsys) -> None:
    rows, expected = DATED[case]
    assert f"rebat: error: {expected}" in import_error(capsys, *rows, columns=DATES)


def test_missing_and_repeated_columns(capsys) -> None:
    mapping()
    Path("t.csv").write_text("id,t,r\n1,2,3\n")
    assert "t.csv:1: has no column n (expected the columns t, id, r, n)" in (
        refused(capsys, "--mapping", "m.toml")
    )
    Path("t.csv").write_text("id,t,r,n,t\n1,2,3,4,5\n")
    assert "t.csv:1: has 2 columns t" in refused(capsys, "--mapping", "m.toml")
    pq.write_table(pa.table({"id": [1]}), "t.parquet")
    assert "t.parquet: has no column t, r, n" in (
        refused(capsys, "--mapping", "m.toml", table="t.parquet")
    )
    Path("t.json").write_text('[{"id": 1}]')
    assert "t.json: has no column t, r, n" in refused(capsys, "--mapping", "m.toml", table="t.json")


FILES = {
    "binary": random.Random(1).randbytes(5_000),
    "nothing": b"",
    "NUL": b"id,t,r,n\n\0\0\0",
    "broken gzip": b"\x1f\x8b\x08 no",
    "broken Parquet": b"PAR1" + bytes(50) + b"PAR1",
    "half a Parquet": b"PAR1",
    "broken JSON": b'[{"id": 1}',
    "JSON of numbers": b"[1, 2]",
    "JSON in Latin-1": b'[{"id": "\xe9"}]',
    "lines in Latin-1": b'{"id": 1}\n{"id": "\xe9"}',
    "deep JSON": b"[" * 100_000,
    "an empty list": b"[]",
    "a broken quote": b'id,t,r,n\n"a,0,5,1',
}


@pytest.mark.parametrize("ending", ["csv", "parquet", "json", "csv.gz"])
@pytest.mark.parametrize("case", FILES)
def test_files(case: str, ending: str, capsys) -> None:
    mapping()
    path = Path(f"t.{ending}")
    path.write_bytes(gzip.compress(FILES[case]) if ending.endswith("gz") else FILES[case])
    assert f"rebat: error: {path}" in refused(capsys, "--mapping", "m.toml", table=str(path))
    assert "rebat: error: " in refused(capsys, "--format", "table", table=str(path))
    assert "rebat: error: " in refused(capsys, table=str(path))


def test_files_that_are_not_readable(capsys) -> None:
    assert "absent.csv: cannot read" in refused(capsys, "--format", "table", table="absent.csv")
    Path("t.csv.gz").write_bytes(b"id,t\n")
    assert "t.csv.gz: cannot read" in refused(capsys, "--format", "table", table="t.csv.gz")


def test_types_of_parquet(capsys) -> None:
    mapping()
    wrong = {"t": [[1], [2]], "r": [1, 2], "n": [1, 2], "id": ["a", "b"]}
    pq.write_table(pa.table(wrong), "t.parquet")
    printed = refused(capsys, "--mapping", "m.toml", table="t.parquet")
    assert "t.parquet: the column t has the type list<" in printed
    mapping(DATES)
    pq.write_table(pa.table({**wrong, "t": [1, 2]}), "t.parquet")
    printed = refused(capsys, "--mapping", "m.toml", table="t.parquet")
    assert "t.parquet:1: t is 1 (expected dates, or another unit)" in printed


def test_a_parquet_file_without_rows(capsys) -> None:
    mapping(rest='where = {t = "1"}')
    times = pa.array([], pa.timestamp("s"))
    pq.write_table(pa.table({"t": times, "r": [], "n": [], "id": []}), "t.parquet")
    printed = refused(capsys, "--mapping", "m.toml", table="t.parquet")
    assert "t.parquet: has no rows (expected a row per job)" in printed


MAPPINGS = {
    "not TOML": ("= 1", "m.toml: is not TOML"),
    "unknown key": (
        'titel = "x"',
        "m.toml: unknown key 'titel'; did you mean title? (expected one of",
    ),
    "no title": ("[columns]\nsubmit = 'a'\nrun = 'b'\nrequested = 'c'", "m.toml: Object missing"),
    "no columns": ('title = "x"', "m.toml: Object missing required field `columns`"),
    "columns are a text": (
        'title = "x"\ncolumns = "y"',
        "m.toml: columns: is 'y' (expected a table",
    ),
    "unknown field": (
        'title = "x"\n[columns]\nsubmitted = "y"',
        "m.toml: columns: unknown key 'sub",
    ),
}

FIELDS = {
    "unknown option": (
        'submit = {column = "t", units = "s"}',
        "columns.submit: unknown key 'units';",
    ),
    "unknown unit": (
        'submit = {column = "t", unit = "furlong"}',
        "columns.submit.unit: Invalid enum value 'furlong' (expected date, any, d, h, min, s",
    ),
    "a number": ("submit = 5", "columns.submit: is 5 (expected a table"),
    "zone and unit": (
        'submit = {column = "t", unit = "s", zone = "UTC"}',
        "columns.submit: format and",
    ),
    "unknown zone": (
        'submit = {column = "t", zone = "Mars"}',
        "columns.submit.zone: unknown time zone",
    ),
    "no format": ('submit = {column = "t", format = "now"}', "columns.submit.format: is 'now'"),
    "no size": (
        'submit = "t"',
        "columns: contain no number of nodes (expected requested or allocated)",
    ),
    "zero per node": (
        'submit = "t"\nrequested = {column = "n", per_node = 0}',
        "columns.requested.per",
    ),
    "a state": ('submit = "t"\nrequested = "n"\nstate = "s"', "columns.state: has no effect"),
}


@pytest.mark.parametrize("case", MAPPINGS)
def test_mappings(case: str, capsys) -> None:
    content, expected = MAPPINGS[case]
    Path("m.toml").write_text(content)
    Path("t.csv").write_text("id,t,r,n\n1,0,5,1\n")
    assert f"rebat: error: {expected}" in refused(capsys, "--mapping", "m.toml")


@pytest.mark.parametrize("case", FIELDS)
def test_fields(case: str, capsys) -> None:
    columns, expected = FIELDS[case]
    mapping(f'run = "r"\n{columns}')
    Path("t.csv").write_text("id,t,r,n\n1,0,5,1\n")
    printed = refused(capsys, "--mapping", "m.toml")
    assert f"rebat: error: m.toml: {expected}" in printed


def test_a_mapping_without_a_run_time(capsys) -> None:
    mapping('submit = "t"\nend = "e"\nrequested = "n"')
    assert "m.toml: columns: contain no run time (expected run, or end with start or wait)" in (
        refused(capsys, "--mapping", "m.toml")
    )


def test_unknown_and_needless_mappings(capsys) -> None:
    Path("t.csv").write_text("id,t,r,n\n1,0,5,1\n")
    printed = refused(capsys, "--mapping", "acme")
    assert (
        "'acme'; did you mean acmetrace? (expected a file, or one of: acmetrace, f-data" in printed
    )
    assert "absent.toml: cannot read" in refused(capsys, "--mapping", "absent.toml")
    assert "no mapping fits the columns" in refused(capsys, "--format", "table")
    assert "--mapping: has no effect with --format swf (expected --format table)" in (
        refused(capsys, "--format", "swf", "--mapping", "pm100")
    )
