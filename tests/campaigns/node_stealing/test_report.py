# SPDX-License-Identifier: Apache-2.0
"""The report of node stealing is complete, needs no other files, and its verdicts follow rules."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rebat.campaign.opening import open_campaign
from rebat.campaign.reporting import write_report
from rebat.core import numbers
from rebat.core.attempts import Attempt, Cause
from rebat.core.errors import InputError
from rebat.core.node_events import NodeEvents
from rebat.core.nodes import NodeSet
from rebat.core.numbers import percent
from rebat.figures.steal_hour import steal_hour
from rebat.report.claims import Claim, Rule, judge
from rebat.report.runs_index import RunIndex, Setting, simulations
from rebat.results.intervals import Interval, interval
from rebat.runs.labels import USUAL_CHECKPOINTS, ScenarioLabel
from rebat.shipped.campaigns.node_stealing import report as code
from rebat.shipped.campaigns.node_stealing.claims import MONTHS, judgements, rows_of
from rebat.shipped.campaigns.node_stealing.differences import gain
from rebat.shipped.campaigns.node_stealing.report import pictures
from rebat.shipped.campaigns.node_stealing.runs import (
    idle_as_program,
    index_of,
    main_settings,
    printed_for,
)
from rebat.state.ledger import AttemptRecord, Ledger, attempts_of
from tests.support.campaigns import campaign_file, run_here

FINDINGS = Path(__file__).parents[3] / "docs/findings"


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    file = campaign_file(folder, jobs=60, report="node_stealing/report.py")
    run_here(file, folder / "results")
    write_report(open_campaign(file), folder / "results", folder / "report")
    return folder


class Links(HTMLParser):
    """A parser that collects what a page would load, and checks that its tags are balanced."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs) -> None:
        self.loads += [v for k, v in attrs if k in ("src", "href") and not (v or "").startswith(("#", "data:"))]  # noqa: E501  # fmt: skip
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs) -> None:
        pass

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag


@pytest.mark.slow
def test_the_page_is_whole_and_loads_nothing(report: Path) -> None:
    text = (report / "report" / "report.html").read_text()
    page = Links()
    page.feed(text)
    assert page.open == []
    assert page.loads == []
    assert "<script" not in text
    assert 'name="viewport"' in text


def test_tables_and_figures_name_the_papers(report: Path) -> None:
    text = (report / "report" / "report.html").read_text()
    for paper in (
        "Table 2",
        "Table 3",
        "Tables 4, 7, 8",
        "Tables 5a, 8",
        "Tables 5b, 9",
        "Figure 3",
        "Figure 8",
    ):
        assert paper in text
    assert text.count("<svg") >= 6
    markdown = (report / "report" / "report.md").read_text()
    checkpoints = "checkpoints: Young/Daly (cost 5 min, recovery 5 min, floor)"
    scenario = f"MTBF 30 min, downtime 10 min, {checkpoints}, failures up to 10 d"
    assert f"All settings: {scenario}" in markdown
    assert " | SFSJ has a higher useful utilisation than Baseline |" in markdown


@pytest.mark.slow
def test_every_figure_says_on_how_many_seeds_it_rests(report: Path) -> None:
    runs = index_of(report / "results" / "results.parquet")
    notes = [picture.note for picture in pictures(runs)]
    assert notes
    assert all(re.search(r"\b2 seeds", note) for note in notes)


def table(numbers: dict[Setting, dict[str, dict[str, tuple[float, ...]]]]) -> RunIndex[str]:
    """Return runs from setting -> policy -> metric -> values per seed."""
    return RunIndex(
        (setting, policy, metric, "all" if metric.startswith("flow_") else "", (-1, seed), value)
        for setting, policies in numbers.items()
        for policy, metrics in policies.items()
        for metric, values in metrics.items()
        for seed, value in enumerate(values or (0.0,))
    )


def test_printed_values_are_drawn_beside_ours_counted_alike() -> None:
    """If no node is idle in 10 % of June 2017, the paper's way of counting results in 6.67 %."""
    scenario = ScenarioLabel(
        "authors", 3600.0, 3600.0, checkpoint=USUAL_CHECKPOINTS, accounting="program"
    )
    setting = Setting("", "june-2017", scenario)
    numbers = {
        "baseline": {"platform_idle_share": (0.9, 0.9)}, "h111": {"steals": ()},
        "authors-h111": {"useful_utilisation": (0.7, 0.8)},
    }  # fmt: skip
    runs = table({setting: numbers})
    ours = {one.metric: code.ours(runs, setting, one) for one in code.PRINTED}
    idle = ours["platform_idle_share"]["as in the paper"]["baseline"]
    assert idle.mean == pytest.approx(100 * (1 - 0.1 * 20 / 30))
    useful = ours["useful_utilisation"]["as in the program"]["h111"]
    assert (useful.mean, useful.n) == (pytest.approx(75.0), 2)
    assert [one.values["june-2017"]["h111"] for one in code.PRINTED] == [80.69, 90.67, 63.4]
    (picture,) = code.printed_pictures(runs, setting)
    assert picture.note == "means over 2 seeds"
    for said in ("published", "as in the program", "as in the paper", "steals in the window"):
        assert f">{said}<" in picture.svg
    assert not [*code.printed_pictures(runs, setting._replace(workload="one's own"))]


@pytest.mark.slow
def test_the_same_results_give_the_same_report(report: Path) -> None:
    campaign = open_campaign(report / "small.toml")
    write_report(campaign, report / "results", report / "again")
    for name in ("report.html", "report.md"):
        assert (report / "again" / name).read_bytes() == (report / "report" / name).read_bytes()


def test_verdicts_follow_their_rules(report: Path) -> None:
    """The small campaign has too few seeds for a verdict."""
    runs = index_of(report / "results" / "results.parquet")
    verdicts = list(judgements(runs))
    assert verdicts
    for verdict in verdicts:
        if verdict.estimate and verdict.estimate.n:
            assert verdict.direction == "too few seeds"
            assert verdict.estimate.low is None


def one(rule: Rule, estimate: Interval, why: str = ""):
    claim = Claim("falls", "", rule, "as published", lambda on: estimate, why=why)
    (verdict,) = judge([claim], None, "a month")
    return verdict


def test_a_claim_holds_if_its_entire_interval_is_in_the_range() -> None:
    estimate = Interval(0.9, 0.8, 1.05, 5)
    assert one(Rule("below 1", 0.0, 1.0), estimate).direction == "undecided"
    assert one(Rule("below 1.1", 0.0, 1.1), estimate).direction == "holds"
    wrong = one(Rule("above 1.1", 1.1, 2.0), estimate)
    assert (wrong.direction, wrong.why) == ("contradicted", "")
    assert wrong.ours == "0.90 [0.80, 1.05]"
    assert one(Rule("below 1", 0.0, 1.0), Interval(0.9, n=4)).direction == "too few seeds"


@pytest.mark.parametrize(
    ("interval", "closed", "direction"),
    [((1, 1), False, "contradicted"), ((1, 1), True, "holds"), ((1, 1.5), False, "undecided"),
     ((1, 2), True, "holds"), ((2, 3), False, "contradicted"), ((0.5, 3), True, "undecided"),
     ((0, 1), False, "contradicted")],
)  # fmt: skip
def test_bounds_pass_if_the_rule_says_so(interval, closed, direction) -> None:
    low, high = interval
    rule = Rule("from 1 to 2", 1.0, 2.0, closed)
    assert one(rule, Interval((low + high) / 2, low, high, 9)).direction == direction


MONTH = Setting("", "june-2017", ScenarioLabel("authors", 3600.0, 3600.0))


def verdicts(used: tuple[float, ...], workload: str = "june-2017", scenario=None):
    """Return verdicts by claim; SFSJ's utilisation and mean flow are Baseline's times ``used``."""
    setting = MONTH._replace(workload=workload, scenario=scenario or MONTH.scenario)
    base = tuple(range(1, len(used) + 1))
    ours = tuple(share * value for share, value in zip(used, base, strict=True))
    metrics = ("useful_utilisation", "flow_mean_s")
    runs = table({setting: {"baseline": dict.fromkeys(metrics, base),
                            "h111": dict.fromkeys(metrics, ours)}})  # fmt: skip
    return {verdict.claim: verdict for verdict in judgements(runs)}


def test_a_ratio_is_paired_and_holds_or_not() -> None:
    rises = "SFSJ has a higher useful utilisation than Baseline"
    assert verdicts((1.02, 1.03, 1.02, 1.04, 1.03))[rises].direction == "holds"
    contradicted = verdicts((0.98, 0.97, 0.99, 0.98, 0.98))[rises]
    assert (contradicted.direction, contradicted.why) == ("contradicted", "")
    assert verdicts((1.05, 0.99, 1.06, 0.98, 1.0))[rises].direction == "undecided"
    assert verdicts((1.02, 1.03, 1.02, 1.04))[rises].direction == "too few seeds"


def test_the_published_gain_is_compared_with_the_interval() -> None:
    """Table 4: 80.69 / 79.32 = 1.0173 on June 2017, in the paper's scenario only."""
    rises = "SFSJ has a higher useful utilisation than Baseline"
    paper = MONTH.scenario.replaced(checkpoint=USUAL_CHECKPOINTS, accounting="program")
    for used, size in (
        ((1.01, 1.02, 1.02, 1.02, 1.02), "inside"), ((1.03, 1.03, 1.05, 1.05, 1.04), "near"),
        ((1.03, 1.03, 1.03, 1.03, 1.031), "outside"),
    ):  # fmt: skip
        assert verdicts(used, scenario=paper)[rises].size == size
    assert verdicts((1.01, 1.02, 1.02, 1.02, 1.02))[rises].size == "not published"


def test_the_report_explains_why_a_generated_month_differs() -> None:
    claim = "SFSJ raises the mean flow by less than 10 %"
    used = (1.5, 1.4, 1.6, 1.5, 1.5)
    verdict = verdicts(used)[claim]
    assert verdict.direction == "contradicted"
    assert "Mira's November 2018" in verdict.why
    assert verdicts(used, "my-own-month")[claim].why == ""
    assert not any(claim.why for claim in rows_of("my-own-month"))


def _variants(metric: str = "useful_utilisation", **values: float) -> dict:
    """Return the verdicts by claim if each policy has the same value for every seed."""
    runs = table({MONTH: {name: {metric: (value,) * 5} for name, value in values.items()}})
    return {verdict.claim: verdict for verdict in judgements(runs)}


def test_h311_is_compared_with_the_lowest_of_the_others() -> None:
    lowest = "H311 (wait for the next checkpoint) has the lowest useful utilisation"
    for own, holds in ((0.78, True), (0.795, False)):
        assert _variants(baseline=0.8, h111=0.81, h112=0.79, h311=own)[lowest].holds == holds


def test_no_variant_is_really_better_than_h111() -> None:
    claim = "no variant really raises the utilisation above H111's"
    assert _variants(baseline=0.8, h111=0.81, h112=0.812, h222=0.7)[claim].holds
    better = _variants(baseline=0.8, h111=0.81, h112=0.816, h222=0.7)[claim]
    assert (better.direction, better.number) == ("contradicted", pytest.approx(0.006))


def test_other_victims_and_criteria_steal_less() -> None:
    claim = "other victims and other criteria lead to fewer steals"
    assert _variants("steals", h111=50.0, h112=40.0, h121=45.0, h311=70.0)[claim].number == -5.0


def test_impact_falls_with_idle_time() -> None:
    """Variants with idle shares of 0.9, 0.8, 0.7 gain 0.01, 0.02, 0.03, a correlation of -1."""
    numbers = {"baseline": {"useful_utilisation": (0.5,) * 5}} | {
        name: {"platform_idle_share": (0.9 - i / 10,) * 5,
               "useful_utilisation": (0.51 + i / 100,) * 5}
        for i, name in enumerate(("h111", "h112", "h113"))
    }  # fmt: skip
    claim = "the more often a node is idle, the smaller the impact of stealing"
    judged = {v.claim: v for v in judgements(table({MONTH: numbers}))}[claim]
    assert (judged.holds, judged.number) == (True, pytest.approx(-1.0))


def _sweep(gains: dict[float, float], downtime_s: float = 3600.0) -> dict:
    """Return the verdicts by claim if the gain at each MTBF is the same for every seed."""
    runs = table({
        MONTH._replace(scenario=MONTH.scenario.replaced(mtbf_s=mtbf_s, downtime_s=downtime_s)):
        {"baseline": {"useful_utilisation": (0.5, 0.6, 0.5, 0.6, 0.5)},
         "h111": {"useful_utilisation": tuple(gain * v for v in (0.5, 0.6, 0.5, 0.6, 0.5))}}
        for mtbf_s, gain in gains.items()
    })  # fmt: skip
    return {verdict.claim: verdict for verdict in judgements(runs)}


def test_frequent_failures_gain_more() -> None:
    claim = "downtime 1 h: SFSJ gains more if failures are frequent"
    for gains, holds in (((1.03, 1.01), True), ((1.01, 1.03), False)):
        verdict = _sweep(dict(zip((3600.0, 7200.0), gains, strict=True)))[claim]
        assert verdict.holds == holds
        assert "MTBF of 1 h minus the ratio at 2 h" in verdict.rule


def test_gains_of_short_and_of_long_downtimes() -> None:
    gains = {1200.0: 1.03, 3600.0: 1.021, 36000.0: 0.98}
    ten = _sweep(gains, 600.0)
    rises = ten["downtime 10 min: SFSJ raises the utilisation at every MTBF below 5 h"]
    assert (rises.direction, rises.size) == ("holds", "inside")
    assert rises.number == pytest.approx(1.021)
    falls = ten["downtime 10 min: SFSJ lowers the utilisation at an MTBF of 10 h"]
    assert (falls.direction, falls.size) == ("holds", "outside")
    day = _sweep(gains, 86400.0)["downtime 1 d: SFSJ hardly changes the utilisation"]
    assert (day.direction, day.number) == ("contradicted", pytest.approx(1.03))


@pytest.mark.slow
def test_what_the_report_says_of_experiments_is_what_the_kept_results_say() -> None:
    """Numbers in the explanations of contradicted claims equal those of the stored results."""
    months = RunIndex(simulations(FINDINGS / "differences/results.parquet", str))
    ends = {setting.grid: setting for setting in months.settings}
    quoted = [claim for claim in MONTHS if claim.why]
    metrics = ["flow_weighted_mean_s", "flow_mean_s"]
    for claim, metric in zip(quoted, metrics, strict=True):
        for grid, ours in (("from the paper", "h111"), ("from the program", "authors-h111")):
            found = interval(gain(months, ends[grid], ours, metric))
            assert numbers.spread(found, numbers.ratio) in claim.why


def test_no_results_are_told(tmp_path: Path) -> None:
    (tmp_path / "results.parquet").write_text("no table")
    with pytest.raises(InputError, match="not a table of results"):
        index_of(tmp_path / "results.parquet")


def test_idle_share_as_the_program_counts_it() -> None:
    """The program divides the time measured in 20 days by 30 days, so that 10 % become 6.67 %."""
    assert idle_as_program(0.9) == pytest.approx(1 - 0.1 * 20 / 30)


def test_the_hour_around_a_steal_tells_jobs_and_escapes_their_names() -> None:
    attempt = Attempt("w0!<b>", "w0!<b>", 1, 1, 0, 2, 10**9, 0, 0)
    record = AttemptRecord(
        attempt, "p", None, 0, 10**9, Cause.STOLEN, "COMPLETED_KILLED", 0, NodeSet.parse("0-1")
    )
    failed = 5 * 10**8, False, NodeSet.of([3])
    ledger = Ledger(attempts=attempts_of([record]), node_events=NodeEvents([failed]))
    svg = steal_hour(ledger, 4, 10**9)
    assert "job &lt;b&gt;, attempt 0, 2 nodes" in svg
    assert "interrupted for another job" in svg
    assert "node 3 down" in svg
    assert not re.search(r"<b>", svg)


# ---- scenarios are never merged

TWICE = """
[[grid]]
name = "{name}"
workloads = ["one"]
policies = ["baseline", "h111"]
{keys}
[grid.failures]
mtbf = {mtbf}
downtime = "10min"
{failures}
{checkpoint}
"""


def grid(name: str, keys="", mtbf='"30min"', failures="", checkpoint="[grid.checkpoint]") -> str:
    return TWICE.format(name=name, keys=keys, mtbf=mtbf, failures=failures, checkpoint=checkpoint)


def reported(folder: Path, *grids: str) -> tuple[RunIndex[str], str]:
    """Run a campaign with these grids; return its runs and the text of its report."""
    file = campaign_file(folder, "".join(grids), jobs=40, report="node_stealing/report.py")
    run_here(file, folder / "results")
    write_report(open_campaign(file), folder / "results", folder / "report")
    text = (folder / "report/report.md").read_text()
    return index_of(folder / "results/results.parquet"), text


SILENT = "[grid.checkpoint]\n[grid.silent_errors]\nrate = 1e-9"
OTHERWISE = {
    "checkpoints": ({"checkpoint": ""}, "checkpoints: none"),
    "checkpoint cost": ({"checkpoint": '[grid.checkpoint]\ncost = "1min"'}, "cost 1 min"),
    "silent errors": (
        {"checkpoint": SILENT},
        "rate 1e-09",
    ),
    "nodes": ({"keys": "nodes = 200"}, "200 nodes"),
    "window": ({"keys": 'window = "0:1h"'}, "window 0:1h"),
    "selection": ({"keys": 'select = "0.2:0.8"'}, "jobs 0.2:0.8"),
    "failure model": ({"failures": 'model = "poisson"'}, "failures poisson"),
    "horizon": ({"failures": 'horizon = "3h"'}, "failures up to 3 h"),
}


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("what", OTHERWISE)
def test_grids_that_differ_in_one_thing_stay_apart_and_say_so(what: str, tmp_path: Path) -> None:
    changes, told = OTHERWISE[what]
    runs, text = reported(tmp_path, grid("usual"), grid("other", **changes))
    main = [setting.scenario for setting, _ in main_settings(runs)]
    assert len(main) == 2
    for setting, _ in main_settings(runs):
        scenario = setting.scenario
        assert len(runs.values(setting, "baseline", "useful_utilisation")) == 1
        assert f"## one: useful utilisation ({scenario.label})" in text
    rows = [line for line in text.splitlines() if "| SFSJ has a higher useful util" in line]
    assert [told in row for row in rows] == [False, True]
    assert [told in scenario.label for scenario in main] == [False, True]


@pytest.mark.usefixtures("undrawn")
def test_several_mtbfs_are_one_sweep_of_which_every_number_is_shown(tmp_path: Path) -> None:
    runs, text = reported(tmp_path, grid("sweep", mtbf='["30min", "31min"]'))
    ((main, family),) = main_settings(runs)
    assert (main.workload, len(family)) == ("one", 2)
    assert "(MTBF 30 min, downtime 10 min" in text
    assert main.scenario.mtbf_s == 1800
    for setting in family:
        mean = runs.mean(setting, "h111", "useful_utilisation")
        assert mean is not None
        assert f"| {setting.scenario.mtbf_s / 60:g} min, 10 min | h111 | {percent(mean)} |" in text


def june(scenario: ScenarioLabel) -> Setting:
    return Setting("", "june-2017", scenario)


def test_printed_values_stand_beside_the_papers_scenario_only() -> None:
    paper = ScenarioLabel("authors", 3600.0, 3600.0, 5e6, USUAL_CHECKPOINTS, accounting="program")
    assert printed_for(june(paper.replaced(accounting=None)))  # results of earlier versions
    assert printed_for(june(paper))
    other = paper.replaced(mtbf_s=1800.0, downtime_s=600.0)
    assert printed_for(Setting("", "synthetic", other))
    others = [
        {"mtbf_s": 1800.0}, {"downtime_s": 600.0}, {"checkpoint": None}, {"nodes": 100},
        {"window": "0:1d"}, {"select": "all"}, {"failure_model": "poisson"}, {"horizon_s": 1e5},
        {"accounting": "exact"},
    ]  # fmt: skip
    assert not any(printed_for(june(paper.replaced(**other))) for other in others)
    assert not printed_for(Setting("", "mine", paper))
