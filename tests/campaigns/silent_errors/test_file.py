# SPDX-License-Identifier: Apache-2.0
"""Files of silent-error campaigns: their units, their errors, and days of a trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from rebat.campaign.opening import open_campaign
from rebat.campaign.reporting import write_report
from rebat.campaign.run import run_campaign
from rebat.cli.campaign import campaign as command
from rebat.cli.main import fail
from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload
from rebat.models.silent_errors import (
    PAPER_SCENARIOS,
)
from rebat.runs.reading import LARGEST_SEED
from rebat.shipped.campaigns.silent_errors.units import JobSetGrid
from rebat.workloads.batsim_json import write_workload
from rebat.workloads.cluster_day import day_sets, read_day_sets
from rebat.workloads.generate import synthetic
from tests.support.job_sets import CAMPAIGNS, MIRA, SMALL, rows, small, untraced


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("sets = 2", "sets = 0", "synthetic.drawn.sets"),
        ("seed = 3", "sed = 3", "unknown key 'sed'"),
        ("seed = 3", f"seed = {2**63}", f"seed: is {2**63}"),
        ("[0, 0.5]", "[0, 1.0]", "grid[0].failure_probability[1]"),
        ("[0, 0.5]", "[]", "is empty"),
        ("[0, 0.5]", "[0.5, 0.5]", "twice"),
        ('["drawn"]', '["none"]', "unknown set 'none'"),
        ('"R-LIST-1"', '"R-LIST-X"', "unknown heuristic"),
        ('"LPT"', '"LTP"', "unknown priority rule"),
        ('["stale"]', '["steel"]', "unknown kind of reservations"),
        ("scenarios = 4", "scenarios = 4\nprocs = [100]", "procs of at least"),
        ('"stale"\nsets', '"true"\nsets', "twice"),
        ('name = "small"', "name = small", "not TOML"),
        ('name = "small"', 'name = "../small"', "name: is '../small'"),
    ],
)  # fmt: skip
def test_a_bad_file_is_refused_with_its_place(tmp_path: Path, old, new, said) -> None:
    assert old in SMALL
    with pytest.raises(InputError) as error:
        open_campaign(small(tmp_path, SMALL.replace(old, new, 1)))
    assert "small.toml" in str(error.value)
    assert said in str(error.value)


@pytest.mark.slow
def test_the_largest_seed_is_that_of_other_campaigns(tmp_path: Path) -> None:
    file = small(tmp_path, SMALL.replace("seed = 3", f"seed = {LARGEST_SEED}", 1))
    assert run_campaign(open_campaign(file), tmp_path / "r", executor="inline").ok == 8
    assert {row["seed"] for row in rows(tmp_path / "r")} == {LARGEST_SEED}


def test_the_command_says_it_in_one_line_and_exits_with_2(tmp_path: Path, capsys) -> None:
    file = small(tmp_path, SMALL.replace("seed = 3", "sed = 3"))
    for verb in ("run", "report"):
        with pytest.raises(InputError) as error:
            command.main([verb, str(file)], standalone_mode=False)
        with pytest.raises(SystemExit) as left:
            fail(str(error.value))
        assert left.value.code == 2
    assert capsys.readouterr().err.count("\n") == 2


@pytest.mark.parametrize("name", ["quick", "full"])
def test_the_shipped_files_open_without_a_trace(name: str) -> None:
    campaign = open_campaign(CAMPAIGNS / f"{name}.toml")
    assert untraced(campaign)
    assert {unit.spec.source for unit in campaign.units} == {"synthetic"}


def test_figure_2_of_the_full_file_is_the_papers() -> None:
    campaign = open_campaign(CAMPAIGNS / "full.toml")
    units = [unit.identity for unit in campaign.units if unit.grid == "figure 2"]
    played = sum(u["scenarios"] * len(u["heuristics"]) * len(u["rules"]) for u in units)
    assert played == 10_500_000
    assert sorted({u["q"] for u in units}) == pytest.approx([k / 10 for k in range(10)])
    assert JobSetGrid("", (), ()).scenarios == PAPER_SCENARIOS


# ---- days of a trace


def test_days_begin_at_midnight_and_empty_ones_are_left_out() -> None:
    hour = 3600 * 10**6
    submits = [0, 23 * hour, 24 * hour, 72 * hour]
    jobs = tuple(Job(str(i), i + 1, us, None, "p") for i, us in enumerate(submits))
    found = day_sets(Workload("w", 8, jobs, {"p": {"type": "delay", "delay": 2}}))
    assert [day.name for day in found] == ["day-0001", "day-0002", "day-0004"]
    assert [day.sizes.tolist() for day in found] == [[1, 2], [3], [4]]
    assert found[0].times_us.tolist() == [2 * 10**6] * 2


def test_a_day_on_which_clocks_change_has_23_hours() -> None:
    hour = 3600 * 10**6
    jobs = tuple(Job(str(h), 1, h * hour, None, "p") for h in range(7 * 24, 9 * 24))
    workload = Workload("w", 1, jobs, {"p": {"type": "delay", "delay": 2}})
    found = {day.name: len(day.sizes) for day in day_sets(workload, "2020-03", "America/Chicago")}
    assert found == {"2020-03-08": 23, "2020-03-09": 24, "2020-03-10": 1}


def test_a_job_larger_than_the_machine_is_refused() -> None:
    jobs = (Job("a", 9, 0, None, "p"),)
    with pytest.raises(InputError, match="job a: requests 9 nodes"):
        day_sets(Workload("w", 8, jobs, {"p": {"type": "delay", "delay": 2}}))


def test_the_days_of_mira(shared: Path) -> None:
    found = read_day_sets(shared / MIRA, ["2020-01", "2020-02"], size="allocated", overrun="keep")
    assert (found[0].name, found[-1].name) == ("2020-01-01", "2020-02-29")
    assert len(found) == 59  # no job was submitted on 19 January
    assert sum(len(day.sizes) for day in found) == 5464
    assert {day.n_nodes for day in found} == {49152}
    assert min(day.sizes.min() for day in found) == 512


@pytest.mark.slow
def test_a_campaign_on_the_days_of_mira(tmp_path: Path, shared: Path) -> None:
    text = """
units = "silent_errors/units.py"
name = "mira"
[days.mira]
months = ["2020-01"]
least_jobs = 110
[[grid]]
name = "table 1"
sets = ["mira"]
failure_probability = [0, 0.1]
rules = ["LPT"]
scenarios = 2
"""
    file, results = small(tmp_path, text), tmp_path / "r"
    assert untraced(open_campaign(file))
    campaign = open_campaign(file, shared / MIRA)
    assert [unit.spec.jobs.name for unit in campaign.units[::2]] == ["2020-01-02", "2020-01-24"]
    assert run_campaign(campaign, results, executor="inline").ok == 4
    text = write_report(campaign, results, tmp_path / "out")[1].read_text()
    assert "| 0 | R-SHELF-NB | 0.0 | 0.0 |" in text
    assert "| 1.441 |" in text


def test_a_days_file_is_looked_for_beside_the_campaign(tmp_path: Path) -> None:
    write_workload(synthetic(0, 20), tmp_path / "one.json")
    text = SMALL.replace("[[grid]]", '[days.one]\nfile = "one.json"\n[[grid]]', 1)
    text = text.replace('sets = ["drawn"]', 'sets = ["one"]', 1)
    with pytest.raises(InputError, match=r"days.one"):
        open_campaign(small(tmp_path, text.replace("one.json", "two.json")))
    assert open_campaign(small(tmp_path, text)).units[0].spec.source == "one"


def test_more_failures_needs_a_trace() -> None:
    assert untraced(open_campaign(CAMPAIGNS / "more-failures.toml"))
