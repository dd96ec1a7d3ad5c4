# SPDX-License-Identifier: Apache-2.0
"""Captions mention intervals only if the figure or table shows at least one interval.

The results are the committed results of campaigns, reduced to a few seeds.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest

from rebat.campaign.kinds import kinds_of
from rebat.campaign.simulations import SimulationExtras
from rebat.campaign.tables import decoded, read_data
from rebat.report.parts import Report, html, markdown

FINDINGS = Path(__file__).parents[2] / "docs/findings"


class Part(NamedTuple):
    """A folder with results, and the part of the results that the test uses."""

    folder: str
    workload: str = ""
    grid: str = ""
    report: str = ""
    """The report of simulations, without tables of workloads and pictures of runs."""


RESULTS = {
    "node-stealing": Part("node-stealing", grid="synthetic", report="node_stealing/report.py"),
    "differences": Part("differences", "june-2017", report="node_stealing/differences.py"),
    "partitions": Part("torus-stealing", "june-2017", report="partitions/report.py"),
    "replacement": Part("replacement", "mixed", report="replacement/report.py"),
    "migration": Part("migration", "load-50", report="migration/report.py"),
    "training": Part("training", grid="spare nodes", report="training/report.py"),
    "runs": Part("months", "june"),
    "silent-errors": Part("silent-errors-bounds", grid="figure 2"),
    "torus": Part("torus"),
}

WITHOUT_INTERVALS = {"partitions", "silent-errors"}
"""Reports whose figures never show intervals."""


def reduced(frame: pd.DataFrame, n: int, part: Part) -> pd.DataFrame:
    """Return the rows of the first ``n`` seeds, generated workloads and job sets."""
    keep = ~(frame["seed"] >= n)
    if part.grid:
        keep &= frame["grid"] == part.grid
    if "workload" in frame:
        names = frame["workload"].str.partition("#")
        keep &= ~(pd.to_numeric(names[2], errors="coerce") >= n)
        if part.workload:
            keep &= names[0] == part.workload
    if "set" in frame:
        keep &= ~(pd.to_numeric(frame["set"], errors="coerce") >= n)
    return frame[keep]


def report_of(name: str, n: int, folder: Path) -> Report:
    part = RESULTS[name]
    table = FINDINGS / part.folder / "results.parquet"
    rows = reduced(pd.read_parquet(table), n, part)
    assert len(rows)
    rows.to_parquet(folder / "results.parquet")
    if part.report:
        kind = kinds_of({"report": part.report}, None)["simulation"]
        return kind.report(folder / "results.parquet", SimulationExtras([], [], []), [])
    data = read_data(table)
    ((name, extras),) = data.kinds.items()
    kind = kinds_of(data.code, None)[name]
    return kind.report(folder / "results.parquet", decoded(extras, kind.extras, table), [])


def mentions(*texts: str) -> bool:
    return any(re.search(r"intervals\b|whiskers?\b|95 %", text, re.IGNORECASE) for text in texts)


def check(report: Report) -> None:
    """Check that each caption mentions intervals if there are intervals, and only then."""
    about = mentions(*report.about_figures)
    assert not about or any(picture.intervals for picture in report.pictures)
    for table in report.tables:
        shown = any("[" in cell for _, *cells in table.rows for cell in cells)
        assert shown or not mentions(table.paper, table.title, table.note), table.title
    for picture in report.pictures:
        words = re.findall(r"<text[^>]*>([^<]*)|<!--(.*?)-->", picture.svg, re.DOTALL)
        own = mentions(picture.title, picture.note, *(word for pair in words for word in pair))
        assert picture.intervals or not own, picture.title
        assert own or about or not picture.intervals, picture.title


@pytest.mark.slow
@pytest.mark.parametrize("name", RESULTS)
def test_with_one_seed_no_caption_promises_intervals(name: str, tmp_path: Path) -> None:
    report = report_of(name, 1, tmp_path)
    check(report)
    assert not mentions(report.lead, *report.about_figures)
    assert not any(picture.intervals for picture in report.pictures)
    for text in report.verdict:
        assert re.fullmatch(r"[\w ]+: \d+ (has|have) too few seeds\.|No claim .*", text)
    few = "There are too few seeds for a verdict if"
    assert all((few in page(report)) == bool(report.judgements) for page in (html, markdown))


@pytest.mark.slow
@pytest.mark.parametrize("name", RESULTS)
def test_captions_mention_the_intervals_that_there_are(name: str, tmp_path: Path) -> None:
    """A mean needs five seeds, a median six."""
    report = report_of(name, 6 if name == "replacement" else 5, tmp_path)
    check(report)
    shown = any(picture.intervals for picture in report.pictures)
    assert shown == (name not in WITHOUT_INTERVALS)
    assert any(
        "[" in cell for table in report.tables for row in table.rows for cell in row[1:]
    ) or (name == "silent-errors")
    assert "too few seeds" not in markdown(report)
