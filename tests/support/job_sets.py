# SPDX-License-Identifier: Apache-2.0
"""Small silent-error campaigns for tests, and the contents of their tables."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from rebat.campaign.opening import Campaign

CAMPAIGNS = Path(__file__).parents[2] / "campaigns" / "silent_errors"
MIRA = Path("traces") / "ANL-ALCF-DJC-MIRA_20200101_20201231.csv.gz"

SMALL = """
name = "small"
units = "silent_errors/units.py"
seed = 3

[synthetic.drawn]
sets = 2
jobs = 12

[[grid]]
name = "true"
sets = ["drawn"]
failure_probability = [0, 0.5]
scenarios = 4

[[grid]]
name = "stale"
sets = ["drawn"]
failure_probability = [0, 0.5]
heuristics = ["R-LIST-1", "R-LIST-Q"]
rules = ["LPT", "LA"]
reservations = ["stale"]
scenarios = 4
"""
"""2 sets x 2 probabilities x 2 kinds of reservations = 8 units."""


def small(folder: Path, text: str = SMALL) -> Path:
    file = folder / "small.toml"
    file.write_text(text)
    return file


def rows(results: Path) -> list[dict]:
    """Return the table of results."""
    return pq.read_table(results / "results.parquet").to_pylist()


def means(results: Path) -> list[dict]:
    """Return the rows with mean ratios of makespan to lower bound."""
    return [row for row in rows(results) if row["metric"] == "makespan_ratio_mean"]


def untraced(opened: Campaign) -> bool:
    return any("[days.mira] is skipped: no trace" in note for note in opened.notes)
