# SPDX-License-Identifier: Apache-2.0
"""Reports from a saved table: neither the runs nor their inputs are needed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from rebat.campaign.opening import open_campaign
from rebat.campaign.reporting import ReportFiles, write_pages, write_report
from rebat.campaign.tables import read_data
from rebat.cli.campaign import campaign as command
from rebat.core.errors import InputError
from rebat.figures.canvas import FileForms
from tests.support.campaigns import GRID, WORKLOADS, campaign_file, run_here

FINDINGS = Path(__file__).parents[2] / "docs" / "findings"

SETS = """
[synthetic.drawn]
sets = 2
jobs = 6
[[grid]]
name = "played"
sets = ["drawn"]
failure_probability = [0.0, 0.3]
scenarios = 2
"""


@pytest.fixture(scope="module")
def reported(tmp_path_factory) -> Path:
    """A folder with the reports of two kinds. One run of the campaign is left."""
    folder = tmp_path_factory.mktemp("kept")
    file = campaign_file(folder)
    file.write_text('units = "silent_errors/units.py"\n' + WORKLOADS + SETS + GRID)
    run_here(file, folder / "r", limit=13)
    write_report(open_campaign(file), folder / "r", folder / "report")
    return folder / "report"


def main(*words: object) -> None:
    command.main(["report", *map(str, words)], standalone_mode=False)


@pytest.mark.slow
def test_the_same_report_is_made_of_the_table_alone(reported: Path, tmp_path: Path) -> None:
    kept = tmp_path / "elsewhere" / "mine.parquet"
    kept.parent.mkdir()
    shutil.copy(reported / "results.parquet", kept)
    told = CliRunner().invoke(command, ["report", "--from", str(kept)])
    assert told.exit_code == 0
    pages = sorted(path.name for path in reported.iterdir() if path.suffix != ".parquet")
    assert len(pages) == 4
    for name in pages:
        assert f"wrote {kept.parent / name}" in told.output
        assert (kept.parent / name).read_bytes() == (reported / name).read_bytes()
    assert "partial: 13 of 14 runs done" in (kept.parent / "report-simulation.md").read_text()


@pytest.mark.slow
def test_it_may_go_elsewhere(reported: Path, tmp_path: Path) -> None:
    main("--from", reported / "results.parquet", "--out", tmp_path / "out")
    assert (tmp_path / "out" / "report-simulation.html").is_file()


def test_the_rows_are_those_of_the_results(reported: Path) -> None:
    kept, results = (
        pq.read_table(folder / "results.parquet") for folder in (reported, reported.parent / "r")
    )
    assert kept.to_pylist() == results.to_pylist()
    assert kept.schema.equals(results.schema)


def test_nothing_in_it_names_a_folder(reported: Path) -> None:
    kept = read_data(reported / "results.parquet")
    assert str(reported.parent) not in "".join([*kept.provenance, *map(str, kept.kinds.values())])


def test_other_files_are_refused(reported: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="contains results, but no report data"):
        main("--from", reported.parent / "r" / "results.parquet")
    spoilt = pq.read_table(reported / "results.parquet").replace_schema_metadata(
        {b"rebat.report": b"nothing"}
    )
    pq.write_table(spoilt, tmp_path / "spoilt.parquet")
    with pytest.raises(InputError, match="contains damaged report data"):
        main("--from", tmp_path / "spoilt.parquet")
    with pytest.raises(InputError, match=r"nosuch.parquet: there is no such file .expected a res"):
        main("--from", tmp_path / "nosuch.parquet")
    text = tmp_path / "text.parquet"
    text.write_text("no table")
    with pytest.raises(InputError, match="not a table of results"):
        main("--from", text)


def test_what_has_no_effect_is_refused(reported: Path, tmp_path: Path) -> None:
    table = reported / "results.parquet"
    with pytest.raises(InputError, match="FILE: has no effect with --from"):
        main(table, "--from", table)
    with pytest.raises(InputError, match="--results: has no effect with --from"):
        main("--results", tmp_path, "--from", table)
    with pytest.raises(InputError, match="FILE: is missing"):
        main()


@pytest.mark.slow
def test_the_findings_that_are_shipped_can_be_reported_again(tmp_path: Path) -> None:
    page, text = write_pages(FINDINGS / "silent-errors" / "results.parquet", tmp_path)
    assert "Claims of the paper: 68 of 111 hold" in text.read_text()
    assert "n = 30 job sets x 1,000 failure scenarios" in page.read_text()


@pytest.mark.slow
def test_the_figures_of_a_report_are_also_files(tmp_path: Path) -> None:
    """PDF and SVG contain text as text. The pages and the figures do not depend on the option."""
    table = FINDINGS / "torus" / "results.parquet"
    paths = write_pages(table, tmp_path / "a", files=ReportFiles(FileForms(("svg", "pdf"))))
    figures = [path for path in paths if path.parent.name == "figures"]
    assert [path.suffix for path in figures] == [".svg", ".pdf"] * (len(figures) // 2)
    page, _ = write_pages(table, tmp_path / "b")
    assert page.read_bytes() == (tmp_path / "a/report.html").read_bytes()
    assert not (tmp_path / "b/figures").exists()
    for svg, pdf in zip(figures[::2], figures[1::2], strict=True):
        assert svg.read_text() in page.read_text()
        assert "<text" in svg.read_text()
        assert b"/FontFile2" in pdf.read_bytes()
