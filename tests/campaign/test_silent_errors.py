"""Silent-error units of campaigns: resumable, the same bytes whoever ran them, and their report."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from rebat.campaign.opening import Campaign, open_campaign
from rebat.campaign.reporting import write_report
from rebat.campaign.run import run_campaign
from rebat.campaign.silent import GridIn, play
from rebat.campaign.store import Store
from rebat.campaign.worker import Task, lost
from rebat.cli.campaign import campaign as command
from rebat.cli.main import fail
from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload
from rebat.kernels import resilient
from rebat.models.silent_errors import (
    PAPER_SCENARIOS,
    draw_failures,
    error_rate,
    lower_bounds,
    synthetic_jobs,
)
from rebat.policies.priority_rules import ranks
from rebat.reports.silent_errors.published import PRINTED, PRINTED_FAILURES
from rebat.workloads.batsim_json import write_workload
from rebat.workloads.day_sets import day_sets, read_day_sets
from rebat.workloads.generate import synthetic
from tests.campaign.builders import contents, n_run, run_here

CAMPAIGNS = Path(__file__).parents[2] / "campaigns" / "silent-errors"
MIRA = Path("traces") / "ANL-ALCF-DJC-MIRA_20200101_20201231.csv.gz"

SMALL = """
name = "small"
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
    """The table of results."""
    return pq.read_table(results / "results.parquet").to_pylist()


def means(results: Path) -> list[dict]:
    """Its rows with mean makespans over their bounds."""
    return [row for row in rows(results) if row["metric"] == "makespan_ratio_mean"]


def untraced(opened: Campaign) -> bool:
    return any("[days.mira] is left out: no trace" in note for note in opened.notes)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Campaign, Path]:
    """A campaign that ran without a break, and its results."""
    folder = tmp_path_factory.mktemp("silent")
    file = small(folder)
    run_here(file, folder / "r")
    return open_campaign(file), folder / "r"


# ---- the units


def test_a_unit_is_the_mean_and_maximum_over_its_scenarios(done) -> None:
    campaign, _ = done
    unit = next(u for u in campaign.units if u.labels["q"] == 0.5 and u.spec.jobs.name == "1")
    times, sizes = synthetic_jobs(3, 1, 12)
    failures = draw_failures(
        times, sizes, error_rate(times, sizes, 0.5), range(4), seed=3, job_set=1
    )
    rank = ranks("LA", times, sizes, n_procs=10_000)
    spans = resilient.makespans("R-SHELF-B", times, sizes, rank, failures, n_procs=10_000)
    ratios = spans / np.array(lower_bounds(times, sizes, failures, 10_000))
    found = play(unit)
    assert found["failures"] == failures.sum(axis=1).mean()
    assert {"heuristic": "R-SHELF-B", "rule": "LA", "mean": ratios.mean(), "max": ratios.max()} in (
        found["makespans"]
    )


def test_the_table_has_a_row_per_unit_heuristic_rule_and_metric(done) -> None:
    table = rows(done[1])
    by_metric = {
        metric: {
            tuple(row[name] for name in ("key", "heuristic", "rule")): row["value"]
            for row in table
            if row["metric"] == metric
        }
        for metric in ("jobs", "failures", "makespan_ratio_mean", "makespan_ratio_max")
    }
    mean, largest = by_metric["makespan_ratio_mean"], by_metric["makespan_ratio_max"]
    assert len(mean) == len(largest) == 4 * 5 * 7 + 4 * 2 * 2
    assert sum(map(len, by_metric.values())) == len(table)
    assert all(1 <= value <= largest[which] for which, value in mean.items())
    assert {row["reservations"] for row in table} == {"paper", "stale"}
    assert set(by_metric["jobs"].values()) == {12.0}
    failed = {row["value"] for row in table if row["metric"] == "failures" and row["q"] == 0}
    assert failed == {0.0}


def test_the_table_says_what_the_results_say(done) -> None:
    campaign, results = done
    store = Store(results)
    for unit in campaign.units:
        metrics = store.read(unit.key).metrics
        found = [row for row in means(results) if row["key"] == unit.key]
        assert [(row["heuristic"], row["rule"], row["value"]) for row in found] == [
            (cell["heuristic"], cell["rule"], cell["mean"]) for cell in metrics["makespans"]
        ]
        assert {(row["grid"], row["source"], row["set"]) for row in found} == {
            (unit.grid, "drawn", unit.spec.jobs.name)
        }


# ---- resuming


def test_a_second_start_plays_only_what_is_missing(tmp_path: Path, done) -> None:
    file, results = small(tmp_path), tmp_path / "r"
    assert n_run(run_here(file, results, limit=3)[1]) == 3
    status, told = run_here(file, results)
    assert n_run(told) == 5
    assert (status.total, status.ok, status.failed, status.missing) == (8, 8, 0, 0)
    assert contents(results) == contents(done[1])


def test_a_killed_command_goes_on_where_it_was(tmp_path: Path) -> None:
    """Killed as soon as there is a result; what it had is kept, the rest is played."""
    file, results = (
        small(tmp_path, SMALL.replace("scenarios = 4", "scenarios = 60")),
        tmp_path / "r",
    )
    command = "from rebat.cli.campaign import campaign; campaign()"
    options = ["run", str(file), "--results", str(results), "--workers", "2"]
    process = subprocess.Popen([sys.executable, "-c", command, *options], stderr=subprocess.PIPE)
    try:
        end = time.monotonic() + 60
        while not list(results.glob("runs/[!.]*.json")) and time.monotonic() < end:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.005)
    finally:
        process.kill()
        process.communicate(timeout=20)
    had = len(list(results.glob("runs/[!.]*.json")))
    status, told = run_here(file, results)
    assert had >= 1
    assert (n_run(told), status.ok) == (8 - had, 8)
    run_here(file, tmp_path / "unbroken")
    assert contents(results) == contents(tmp_path / "unbroken")


def test_a_torn_result_is_played_again(tmp_path: Path, done) -> None:
    results = tmp_path / "r"
    shutil.copytree(done[1], results)
    torn = next((results / "runs").iterdir())
    torn.write_bytes(torn.read_bytes()[:40])
    assert n_run(run_here(small(tmp_path), results)[1]) == 1
    assert contents(results) == contents(done[1])


def test_a_changed_file_plays_only_what_it_touches(tmp_path: Path, done) -> None:
    results = tmp_path / "r"
    shutil.copytree(done[1], results)
    renamed = SMALL.replace('"true"', '"figure 2"').replace("[0, 0.5]", "[0, 0.5, 0.7]", 1)
    assert n_run(run_here(small(tmp_path, renamed), results)[1]) == 2


@pytest.mark.parametrize("workers", [1, 2])
def test_the_same_bytes_for_any_number_of_workers(tmp_path: Path, done, workers: int) -> None:
    status = run_campaign(open_campaign(small(tmp_path)), tmp_path / "r", workers=workers)
    assert status.ok == 8
    assert contents(tmp_path / "r") == contents(done[1])


def test_a_unit_that_cannot_be_played_does_not_stop_the_rest(tmp_path: Path) -> None:
    """One giant among many small jobs fails for ever at the probability of the average job."""
    jobs = [Job(str(i), 1, 0, None, "short") for i in range(400)]
    jobs.append(Job("giant", 400, 0, None, "long"))
    profiles = {"short": {"type": "delay", "delay": 1}, "long": {"type": "delay", "delay": 10**6}}
    write_workload(Workload("w", 400, tuple(jobs), profiles), tmp_path / "w.json")
    text = SMALL.replace("[[grid]]", '[days.trace]\nfile = "w.json"\n[[grid]]', 1)
    text = text.replace('sets = ["drawn"]', 'sets = ["trace"]', 1)
    file, results = small(tmp_path, text), tmp_path / "r"
    status, _ = run_here(file, results)
    assert (status.ok, status.failed) == (5, 1)
    (failure,) = json.loads((results / "campaign.json").read_text())["failures"]
    assert (failure["source"], failure["set"]) == ("trace", "day-0001")
    assert failure["error"].startswith("job 400: would fail")
    run = CliRunner().invoke(command, ["status", str(file), "--results", str(results)])
    assert "failed: true, trace day-0001, q-bar = 0.5" in run.output
    assert ": job 400: would fail" in run.output
    assert n_run(run_here(file, results)[1]) == 0


# ---- as any campaign


def call(verb: str, file: Path, results: Path, *more: str) -> str:
    """What `rebat campaign VERB` says."""
    run = CliRunner().invoke(command, [verb, str(file), "--results", str(results), *more])
    assert run.exit_code == 0, run.output
    return run.output


def test_the_same_bytes_on_dask(tmp_path: Path, done) -> None:
    pytest.importorskip("distributed")
    opened = open_campaign(small(tmp_path))
    assert run_campaign(opened, tmp_path / "r", workers=2, executor="dask").ok == 8
    assert contents(tmp_path / "r") == contents(done[1])


def test_status_says_how_far_each_grid_is(tmp_path: Path) -> None:
    file, results = small(tmp_path), tmp_path / "r"
    run_here(file, results, limit=5)
    told = call("status", file, results)
    assert "true: 4 of 4 runs done, 0 failed, 0 left" in told
    assert "stale: 1 of 4 runs done, 0 failed, 3 left" in told
    assert "all, each run once: 5 of 8 runs done, 0 failed, 3 left" in told


def test_clean_removes_what_the_file_asks_for_no_more(tmp_path: Path, done) -> None:
    results = tmp_path / "r"
    shutil.copytree(done[1], results)
    file = small(tmp_path, SMALL.replace("[0, 0.5]", "[0.5]"))
    assert "4 results of other runs" in call("status", file, results)
    assert "removed 4 results" in call("clean", file, results)
    assert len(list((results / "runs").iterdir())) == 4
    assert {row["q"] for row in rows(results)} == {0.5}
    assert n_run(run_here(file, results)[1]) == 0


def test_what_failed_is_played_again_on_request(tmp_path: Path, done) -> None:
    file, results = small(tmp_path), tmp_path / "r"
    opened = open_campaign(file)
    assert lost(Task(opened.units[0], results, False), "the worker died").error
    status, told = run_here(file, results)
    assert (status.ok, status.failed, n_run(told)) == (7, 1, 7)
    status, told = run_here(file, results, retry_failed=True)
    assert (status.ok, status.failed, n_run(told)) == (8, 0, 1)
    assert contents(results) == contents(done[1])


def test_files_to_keep_are_refused_where_there_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--keep-runs: has no effect"):
        run_here(small(tmp_path), tmp_path / "r", keep_runs=True)
    assert not (tmp_path / "r").exists()


def test_a_folder_of_another_campaign_is_refused(tmp_path: Path) -> None:
    file, results = small(tmp_path), tmp_path / "r"
    run_here(file, results, limit=1)
    file.write_text(SMALL.replace('"small"', '"other"'))
    for verb in ("run", "status", "report", "clean"):
        with pytest.raises(InputError, match="results of campaign 'small'"):
            command.main([verb, str(file), "--results", str(results)], standalone_mode=False)


# ---- the file


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("sets = 2", "sets = 0", "synthetic.drawn.sets"),
        ("seed = 3", "sed = 3", "unknown key 'sed'"),
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
    assert GridIn("", (), ()).scenarios == PAPER_SCENARIOS


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
    with pytest.raises(InputError, match="job a: 9 nodes"):
        day_sets(Workload("w", 8, jobs, {"p": {"type": "delay", "delay": 2}}))


def test_the_days_of_mira(shared: Path) -> None:
    found = read_day_sets(shared / MIRA, ["2020-01", "2020-02"], size="allocated", overrun="keep")
    assert (found[0].name, found[-1].name) == ("2020-01-01", "2020-02-29")
    assert len(found) == 59  # nobody submitted on 19 January
    assert sum(len(day.sizes) for day in found) == 5464
    assert {day.n_nodes for day in found} == {49152}
    assert min(day.sizes.min() for day in found) == 512


def test_a_campaign_on_the_days_of_mira(tmp_path: Path, shared: Path) -> None:
    text = """
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


# ---- the report


def test_the_report_shows_both_kinds_of_reservations_and_says_why(tmp_path: Path, done) -> None:
    campaign, results = done
    page, text = (path.read_text() for path in write_report(campaign, results, tmp_path))
    assert "never cancels a reservation" in text
    assert "never cancels a reservation" in page
    for words in ("(Algorithm 1)", "(stale reservations)"):
        assert f"R-LIST-Q is far above R-LIST-0 at q-bar = 0.5 {words}" in text
    assert page.count("<svg") == 4
    assert "workload</th>" not in page
    again = write_report(campaign, results, tmp_path / "again")
    assert [path.read_text() for path in again] == [page, text]


def test_stale_reservations_have_the_published_shape(tmp_path: Path) -> None:
    """R-LIST-Q 26 % above R-LIST-0 at q-bar = 0.5 (section 5.2); Algorithm 1 has 1 to 2 %."""
    text = """
name = "shape"
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
    assert "1 of 8 runs done" in (results / "report" / "report.md").read_text()


def test_a_report_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no results yet"):
        command.main(
            ["report", str(small(tmp_path)), "--results", str(tmp_path / "r")],
            standalone_mode=False,
        )
    with pytest.raises(InputError, match="no results of this file"):
        write_report(open_campaign(small(tmp_path)), tmp_path / "r", tmp_path / "out")


def test_a_days_file_is_looked_for_beside_the_campaign(tmp_path: Path) -> None:
    write_workload(synthetic(0, 20), tmp_path / "one.json")
    text = SMALL.replace("[[grid]]", '[days.one]\nfile = "one.json"\n[[grid]]', 1)
    text = text.replace('sets = ["drawn"]', 'sets = ["one"]', 1)
    with pytest.raises(InputError, match=r"days.one"):
        open_campaign(small(tmp_path, text.replace("one.json", "two.json")))
    assert open_campaign(small(tmp_path, text)).units[0].spec.source == "one"


def test_results_hold_no_names(done) -> None:
    campaign, results = done
    stored = Store(results).read(campaign.units[0].key)
    assert stored is not None
    assert not {"grid", "source", "name"} & set(msgspec.to_builtins(stored.identity))
