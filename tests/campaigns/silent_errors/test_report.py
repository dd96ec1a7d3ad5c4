# SPDX-License-Identifier: Apache-2.0
"""The report of silent-error campaigns: both kinds of reservations and the printed values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from rebat.campaign.opening import open_campaign
from rebat.campaign.reporting import write_report
from rebat.campaign.run import run_campaign
from rebat.cli.campaign import campaign as command
from rebat.core.errors import InputError
from rebat.models import resilient
from rebat.shipped.campaigns.silent_errors.sets import PRINTED, PRINTED_FAILURES
from tests.support.job_sets import means, small


@pytest.mark.slow
def test_the_report_shows_both_kinds_of_reservations_and_says_why(tmp_path: Path, done) -> None:
    campaign, results = done
    page, text = (path.read_text() for path in write_report(campaign, results, tmp_path))
    assert "never deletes a reservation" in text
    assert "never deletes a reservation" in page
    for words in ("(Algorithm 1)", "(stale reservations)"):
        assert f"R-LIST-Q is far above R-LIST-0 at q-bar = 0.5 {words}" in text
    assert page.count("<svg") == 3 + 2 + 2 + 2 + 2  # panels of five figures
    assert "workload</th>" not in page
    assert "partial:" not in text
    again = write_report(campaign, results, tmp_path / "again")
    assert [path.read_text() for path in again] == [page, text]


def test_stale_reservations_have_the_published_shape(tmp_path: Path) -> None:
    """R-LIST-Q is 26 % above R-LIST-0 at q-bar = 0.5 (section 5.2), but 1 to 2 % in Algorithm 1."""
    text = """
name = "shape"
units = "silent_errors/units.py"
[synthetic.drawn]
sets = 3
[[grid]]
name = "both"
sets = ["drawn"]
failure_probability = [0.5]
heuristics = ["R-LIST-0", "R-LIST-Q"]
rules = ["LPT", "LA"]
reservations = ["paper", "stale"]
scenarios = 40
"""
    campaign = open_campaign(small(tmp_path, text))
    run_campaign(campaign, tmp_path / "r", executor="inline")
    found: dict[tuple[str, str, str], list[float]] = {}
    for row in means(tmp_path / "r"):
        found.setdefault((row["reservations"], row["heuristic"], row["rule"]), []).append(
            row["value"]
        )
    best = {
        (kept, name): min(np.mean(found[kept, name, rule]) for rule in ("LPT", "LA"))
        for kept in ("paper", "stale")
        for name in ("R-LIST-0", "R-LIST-Q")
    }
    assert best["stale", "R-LIST-Q"] / best["stale", "R-LIST-0"] >= 1.20
    assert best["paper", "R-LIST-Q"] / best["paper", "R-LIST-0"] <= 1.05


def test_printed_values_are_there_for_every_heuristic() -> None:
    assert {heuristic for _, heuristic in PRINTED} == set(resilient.HEURISTICS)
    assert {q for q, _ in PRINTED} == set(PRINTED_FAILURES)
    assert PRINTED[0.05, "R-LIST-Q"] == (1.061, 7.76e-2, 1.292)


def test_the_commands(tmp_path: Path) -> None:
    file, results = small(tmp_path), tmp_path / "r"
    runner = CliRunner()
    part = runner.invoke(command, ["run", str(file), "--results", str(results), "--limit", "1"])
    assert part.exit_code == 0
    assert "1 of 8 runs done, 0 failed, 7 left" in part.output
    told = runner.invoke(command, ["report", str(file), "--results", str(results)])
    assert told.exit_code == 0
    for page in ("report.md", "report.html"):
        assert "partial: 1 of 8 runs done" in (results / "report" / page).read_text()


def test_a_report_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="contains no results"):
        command.main(
            ["report", str(small(tmp_path)), "--results", str(tmp_path / "r")],
            standalone_mode=False,
        )
    with pytest.raises(InputError, match="contains no results of this campaign"):
        write_report(open_campaign(small(tmp_path)), tmp_path / "r", tmp_path / "out")
