# SPDX-License-Identifier: Apache-2.0
"""`rebat advise`: the runs of the design, the answers, and advice within a short time."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

import rebat
from rebat.api.workloads import load_workload
from rebat.cli.main import main
from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload
from rebat.core.numbers import node_hours, percent
from rebat.core.numbers import share as share_of
from rebat.figures.charts import Panel, _drawn, lines_figure
from rebat.models.checkpoint import young_daly_period_s
from rebat.models.failures.events import write_events
from rebat.models.failures.renewal import Renewal
from rebat.report.runs_index import RunIndex
from rebat.results.intervals import Interval
from rebat.runs.labels import scenario_of
from rebat.runs.scenario import CheckpointModel, ScenarioOptions
from rebat.studies.advice.answers import answers
from rebat.studies.advice.design import (
    FACTORS,
    RULES,
    AdvisedSite,
    fitted_law,
    site_of,
    specs,
    turned,
    with_options,
)
from rebat.studies.advice.evidence import Evidence, WorkOwner, losers, rules
from rebat.studies.losses import recorded_losses
from rebat.workloads.checkpoint_table import read_checkpoints, with_checkpoints_of
from tests.support.slurm_site import Truth, write_site

OPTIONS = ScenarioOptions(mtbf=1800.0, downtime=600.0, checkpoint="young-daly")
METRICS = ("flow_mean_s", "flow_max_s", "useful_utilisation", "platform_waste_failure",
           "platform_checkpoint", "platform_recovery", "platform_total")  # fmt: skip


def site(checkpoints: str = "young-daly", **changes) -> AdvisedSite:
    options = msgspec.structs.replace(OPTIONS, **changes)
    return site_of(load_workload("toy"), "easy", options, checkpoints=checkpoints)


def made_up(of: AdvisedSite, seeds: range, flow) -> Evidence:
    """Return evidence with a flow per run from a function, and 100 s without failures.

    Of 1,000 node-seconds, the flow is destroyed by failures. Jobs with checkpoints lose half of it,
    and need a tenth of it to write and as much to read checkpoints.
    """
    rows = []
    for spec in specs(of, seeds):
        scenario = scenario_of(spec)
        failures = spec.scenario.failures
        where = rebat.report.runs_index.Setting(spec.grid, "toy", scenario)
        at = (-1, failures.seed if failures else -1)
        value = flow(spec) if failures else 100.0
        written = spec.scenario.checkpoint is not None
        others = {"useful_utilisation": 0.9 - value / 1e4, "platform_total": 1000.0,
                  "platform_waste_failure": value / (1 + written),
                  "platform_checkpoint": value / 10 * written,
                  "platform_recovery": value / 10 * written}  # fmt: skip
        for name in METRICS:
            of_metric = others.get(name, value)
            rows.append((where, spec.policy, name, "all" if "flow" in name else "", at, of_metric))
    return Evidence(RunIndex(rows), len(seeds), len(rows), 1.0, 1.0)


def harmful(of: AdvisedSite, spec) -> bool:
    """Whether a run has spare nodes, or a period that is not Young/Daly's."""
    model = spec.scenario.checkpoint
    return ("spares=" in spec.policy and "spares=0" not in spec.policy) or (
        spec.grid == "periods" and (model is None or model.mtbf_s != of.mtbf_s)
    )


def noisy(spec, value: float) -> float:
    return value * (1 + 0.01 * (spec.scenario.failures.seed % 3))


def test_the_design_has_each_rule_spare_count_and_period_once_per_seed() -> None:
    of = site()
    runs = specs(of, range(2))
    drawn = [spec for spec in runs if spec.scenario.failures]
    assert len(runs) - len(drawn) == 1  # one run without failures
    per_seed = 1 + 2 + len(of.rules) + len(of.spares) + len(FACTORS) + 1
    assert len(drawn) == 2 * per_seed
    assert of.rules[0] == "easy" and set(RULES) == set(of.rules)
    periods = {
        young_daly_period_s(1, of.n_nodes, model.mtbf_s, model.cost_s)
        for spec in drawn
        if spec.grid == "periods" and isinstance(model := spec.scenario.checkpoint, CheckpointModel)
    }
    usual = young_daly_period_s(1, of.n_nodes, of.mtbf_s, 300.0)
    assert sorted(period / usual for period in periods) == pytest.approx(FACTORS)


def test_options_of_todays_policy_are_kept() -> None:
    assert with_options("easy", react="replacement", spares=3) == "easy:react=replacement,spares=3"
    assert with_options("sfsj:react=stealing", react="x") == "sfsj:react=x"


def test_a_rule_that_helps_is_named_with_its_interval() -> None:
    of = site()
    better = {"easy-sfsj": 90.0}

    def flow(spec) -> float:
        usual = 125.0 if harmful(of, spec) else 120.0
        return noisy(spec, better.get(spec.policy, usual))

    evidence = made_up(of, range(6), flow)
    cost, saving, _, rule, spares, periods = answers(of, evidence, [])
    assert all(answer.answered for answer in (cost, saving, rule, spares, periods))
    assert rule.sentence.startswith(
        "EASY with node stealing (easy-sfsj): mean flow \N{MINUS SIGN}25.0 %"
    )
    assert "No size class has a significantly longer mean flow" in rule.sentence
    assert spares.sentence.startswith("None: no number of spare nodes")
    assert periods.sentence.startswith("Every ")
    assert "+21.2 %" in cost.sentence  # 120 x 1.01 on average, compared with 100
    named = next(item for item in rules(of, evidence.runs) if "easy-sfsj" in item.title)
    assert named.changes["flow_mean_s", None].mean == pytest.approx(0.75)


def test_a_cost_whose_interval_includes_0_is_not_significant() -> None:
    of = site()

    def flow(spec) -> float:
        return 105.0 if spec.scenario.failures.seed % 2 else 95.0

    cost = answers(of, made_up(of, range(6), flow), [])[0]
    assert "useful utilisation by" in cost.sentence
    assert cost.sentence.count("(not significant)") == 2  # useful utilisation and mean flow


def test_a_period_that_is_better_is_advised() -> None:
    of = site()

    def flow(spec) -> float:
        model = spec.scenario.checkpoint
        return noisy(spec, 50.0 if model and model.mtbf_s == of.mtbf_s * 4 else 120.0)

    answer = answers(of, made_up(of, range(6), flow), [])[5]
    assert "(2 times the Young/Daly period): useful utilisation is 0.707 points" in answer.sentence


def test_few_seeds_with_a_change_give_no_interval() -> None:
    of = site()

    def flow(spec) -> float:
        return 90.0 if spec.policy == "easy-sfsj" and spec.scenario.failures.seed < 4 else 120.0

    replies = answers(of, made_up(of, range(30), flow), [])
    assert replies[3].sentence == "No answer: fewer than 5 of 30 seeds show any change."
    assert not replies[3].answered and replies[3].figures[0].low is None


@pytest.mark.slow
def test_no_answer_without_intervals() -> None:
    of = site()
    few = made_up(of, range(4), lambda spec: noisy(spec, 120.0))
    replies = answers(of, few, [])
    assert not any(reply.answered for reply in replies)
    assert all("No answer: 4 seeds are too few" in reply.sentence for reply in replies)
    assert replies[0].sentence.startswith("The recorded loss is unknown: set --past")
    assert not any(figure.low for reply in replies for figure in reply.figures)


def test_who_loses_more_than_it_uses() -> None:
    owners = [
        WorkOwner("user", "a", 0.5, 0.2, 1.0),
        WorkOwner("user", "b", 0.1, 0.7, 5.0),
        WorkOwner("queue", "q", 0.6, 0.7, 5.0),
        WorkOwner("queue", "r", 0.4, 0.3, 5.0),
    ]
    assert [owner.name for owner in losers(owners)] == ["b"]
    assert owners[1].text == "User b has 10 % of the node time, but 70 % of the lost node time."


def test_the_fitted_law_has_the_gaps_and_repairs_of_the_record(tmp_path: Path) -> None:
    true = Renewal(mtbf_s=7200.0, repair_s=1800.0, shape=0.8, sigma=0.9)
    events = list(true.events(256, seed=3, horizon_s=500 * 86_400.0))
    write_events(events, tmp_path / "site.events")
    law = fitted_law(turned(tmp_path / "site.events", 256), 256)
    assert law is not None
    assert law.mtbf_s == pytest.approx(7200, rel=0.05)
    assert law.repair_s == pytest.approx(1800, rel=0.05)
    assert law.shape == pytest.approx(0.8, rel=0.05)
    assert law.sigma == pytest.approx(0.9, rel=0.05)


def test_the_mean_number_of_down_nodes_decides_the_spares() -> None:
    assert site(downtime=600.0).down_nodes == pytest.approx(1 / 3, rel=0.1)
    assert site(downtime=600.0).spares == [0, 1]  # at most an eighth of 8 nodes


def command(tmp_path: Path, *more: str) -> list[str]:
    options = ["--mtbf", "5min", "--downtime", "5s", "--checkpoint-cost", "1s", "--workers", "1"]
    return ["advise", "toy", *options, "--out", str(tmp_path / "out"), *more]


@pytest.mark.slow
def test_the_command_writes_page_and_numbers_and_continues(tmp_path: Path, capsys) -> None:
    main(command(tmp_path, "--seeds", "5"))
    first = capsys.readouterr().out.splitlines()
    assert [line.split("?")[0] for line in first[:6]] == [
        "What do failures cost today", "What would checkpoints of all jobs save",
        "Which jobs bear the cost of the failures",
        "Which scheduler rule would help, and which jobs would it hurt",
        "How many spare nodes are worth keeping", "How often should jobs checkpoint",
    ]  # fmt: skip
    record = json.loads((tmp_path / "out/advice.json").read_text())
    assert record["seeds"] == 5 and len(record["answers"]) == 6
    page = (tmp_path / "out/advice.html").read_text()
    assert page.count("<svg") >= 4 and "Assumptions: " in page
    main(command(tmp_path, "--seeds", "5", "--json"))
    assert json.loads(capsys.readouterr().out) == record


@pytest.mark.slow
def test_short_time_gives_no_verdict_but_a_page(tmp_path: Path, capsys) -> None:
    main(command(tmp_path, "--minutes", "0.0001"))
    assert "No answer: 1 seed is too few" in capsys.readouterr().out
    assert (tmp_path / "out/advice.html").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["advise", "toy", "--out", "OUT"], "failures: is missing"),
        (["advise", "toy", "--failures", "toy", "--mtbf", "1h", "--downtime", "1h", "--out", "OUT"],
         "--downtime: has no effect"),
        (["advise", "toy", "--mtbf", "1h", "--minutes", "0", "--out", "OUT"], "--minutes"),
    ],
)  # fmt: skip
def test_wrong_input_is_one_line(arguments, words: str, tmp_path: Path, capsys) -> None:
    out = str(tmp_path / "out")
    with pytest.raises(SystemExit, match="2"):
        main([out if text == "OUT" else text for text in arguments])
    assert words in capsys.readouterr().err
    assert not Path(out).exists()


def test_a_folder_of_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="contains other files"):
        rebat.advise("toy", failures=rebat.failures(mtbf="1h"), out=tmp_path)


@pytest.mark.slow
def test_in_python(tmp_path: Path) -> None:
    failures = rebat.failures(mtbf="5min", downtime="5s")
    advice = rebat.advise("toy", failures=failures, most_seeds=5, out=tmp_path / "out", workers=1)
    assert len(advice.answers) == 6 and "What do failures cost today?" in repr(advice)


def test_the_saving_is_the_difference_of_both_assumptions() -> None:
    """Half of 120 of 1,000 node-seconds is saved, and a fifth is needed for checkpoints."""
    of = site("none")
    cost, saving, *_ = answers(of, made_up(of, range(6), lambda spec: noisy(spec, 120.0)), [])
    share = 0.1212  # 120 x 1.01 on average
    month = of.n_nodes * 720
    lost = {figure.name: figure.mean for figure in cost.figures if figure.kind == "node-hours"}
    assert lost["no checkpoints"] == pytest.approx(share * month)
    assert lost["all checkpoints"] == pytest.approx(share / 2 * month)
    named = {figure.name: figure.mean for figure in saving.figures}
    assert named["saved"] == pytest.approx(share / 2 * month)
    assert named["written and read"] == pytest.approx(share / 5 * month)
    assert named["net"] == pytest.approx(share * 0.3 * month)
    assert (
        f"{share / 2 * month:,.1f} node-hours [" in saving.sentence
        and "in 30 d of 8 nodes" in saving.sentence
    )
    assert "(+3.6 % of the node time)" in saving.sentence


def test_todays_checkpoints_decide_only_the_runs_of_today(tmp_path: Path) -> None:
    """The runs without and with checkpoints of all jobs are the same for each site."""
    table = tmp_path / "checkpoints.csv"
    table.write_text("job,period,cost\n2,4s,1s\n3,4s,1s\n")
    sites = [site("none"), site("young-daly"), tabled(table, tmp_path)]
    grids = [grid_of(of) for of in sites]
    for name in ("checkpoints of no job and of all jobs", "periods"):
        assert grids[0][name] == grids[1][name] == grids[2][name]
    no_job, all_jobs, some = (grid["today"][1] for grid in grids)
    assert no_job.scenario.checkpoint is None and some.scenario.checkpoint is None
    assert isinstance(all_jobs.scenario.checkpoint, CheckpointModel)
    assert no_job.source == all_jobs.source != some.source


def grid_of(of: AdvisedSite) -> dict[str, list]:
    runs: dict[str, list] = {}
    for spec in specs(of, range(2)):
        runs.setdefault(spec.grid, []).append(spec)
    return runs


def tabled(table: Path, folder: Path) -> AdvisedSite:
    return site_of(load_workload("toy"), "easy", OPTIONS, checkpoints=str(table), folder=folder)


def test_a_table_of_checkpoints_describes_jobs_by_owner(tmp_path: Path) -> None:
    jobs = [
        Job("1", 2, 0, None, "p", {"user": "a", "queue": "q"}),
        Job("2", 2, 0, None, "p", {"user": "a", "queue": "r"}),
        Job("3", 2, 0, None, "p", {"user": "b", "queue": "q"}),
        Job("4", 2, 0, None, "p", {}),
    ]
    workload = Workload("w", 8, jobs, {"p": {"type": "delay", "delay": 7200}})
    table = tmp_path / "table.csv"
    table.write_text("User,queue,period,cost\na,r,1h,10s\na,,2h,\n,q,young-daly,2min\n")
    rows = read_checkpoints(table, CheckpointModel(1e6, 300.0, 200.0, "floor"))
    found, count = with_checkpoints_of(workload, rows, 8, 1e6)
    profiles = [found.profiles[job.profile] for job in found.jobs]
    assert count == 3 and [profile["delay"] for profile in profiles] == [7200] * 4
    own = young_daly_period_s(2, 8, 1e6, 120.0)
    assert [profile.get("checkpoint_period") for profile in profiles] == [7200, 3600, own, None]
    assert [profile.get("checkpoint_cost") for profile in profiles] == [300, 10, 120, None]
    assert [profile.get("recovery_cost") for profile in profiles] == [200, 200, 200, None]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("user,cost\na,1s\n", "table.csv:1: has the columns user, cost"),
        ("period\n1h\n", "table.csv:1: has the columns period"),
        ("user,period\n", "table.csv: has no row"),
        ("user,period\na,soon\n", "table.csv:2: period is 'soon'"),
        ("user,period\na,1h\nb,0\n", "table.csv:3: period is '0'"),
        ("user,period,cost\na,young-daly,0\n", "table.csv:2: cost is '0'"),
        ("user,period\na,1h,2\n", "table.csv:2: has more fields"),
    ],
)
def test_an_invalid_table_of_checkpoints(text: str, words: str, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text(text)
    with pytest.raises(InputError, match=words):
        tabled(table, tmp_path)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth]:
    """Return a folder with the imported records of a made-up site, and the truth."""
    folder = tmp_path_factory.mktemp("site")
    truth = write_site(folder)
    main(["workload", "import", str(truth.jobs), "--events", str(truth.events),
          "-o", str(folder / "jobs.json"), "--schedule", str(folder / "past")])  # fmt: skip
    main(["failures", "import", str(truth.events), "--workload", str(folder / "jobs.json"),
          "-o", str(folder / "site.events")])  # fmt: skip
    return folder, truth


def test_the_recorded_losses_are_those_of_the_site(slurm: tuple[Path, Truth]) -> None:
    folder, truth = slurm
    found = recorded_losses(folder / "past", load_workload(folder / "jobs.json"), lambda *_: [])
    assert found.attempts == truth.failures
    assert found.lost_h == pytest.approx(truth.all_lost_s / 3600)
    assert found.down_h == pytest.approx(truth.down_s / 3600)
    assert found.span_h == pytest.approx((truth.last_s - truth.first_s) / 3600)
    assert found.per_month_h == pytest.approx(found.lost_h / found.span_h * 720)
    groups = {(group.kind, group.name): group for group in found.groups}
    assert groups.keys() == truth.used_s.keys()
    for key, group in groups.items():
        assert group.lost_h == pytest.approx(truth.lost_s[key] / 3600), key
        assert group.used_h == pytest.approx(truth.used_s[key] / 3600), key
    lost = {name: s for (kind, name), s in truth.lost_s.items() if kind == "user"}
    assert found.worst("user").name == max(lost, key=lambda name: lost[name])


def test_down_times_come_from_the_failure_record_if_the_schedule_has_none(
    slurm: tuple[Path, Truth], tmp_path: Path
) -> None:
    folder, truth = slurm
    main(["workload", "import", str(truth.jobs), "-o", str(tmp_path / "jobs.json"),
          "--schedule", str(tmp_path / "past")])  # fmt: skip
    workload = load_workload(tmp_path / "jobs.json")
    options = ScenarioOptions(failures=folder / "site.events", checkpoint="young-daly")
    known = site_of(workload, "easy", options, past=tmp_path / "past").recorded
    assert known.down_h == pytest.approx(truth.down_s / 3600)
    options = ScenarioOptions(mtbf=3600.0, checkpoint="young-daly")
    assert site_of(workload, "easy", options, past=tmp_path / "past").recorded.down_h is None


@pytest.mark.slow
def test_the_first_answer_is_that_of_the_record(
    slurm: tuple[Path, Truth], tmp_path: Path, capsys
) -> None:
    folder, truth = slurm
    arguments = ["advise", str(folder / "jobs.json"), "--past", str(folder / "past"), "--failures",
                 str(folder / "site.events"), "--out", str(tmp_path / "out")]  # fmt: skip
    main([*arguments, "--seeds", "5"])
    first, saving, bearing, *_ = capsys.readouterr().out.splitlines()
    lost_h = truth.all_lost_s / 3600
    share = truth.all_lost_s / (32 * (truth.last_s - truth.first_s))
    assert f"destroyed {lost_h:,.0f} node-hours of work" in first
    assert f"{percent(share)} of the node time of the machine" in first
    assert "if no job writes checkpoints, and" in first and "The net saving is" in saving
    queue = truth.lost_s["queue", "wide"]
    part = share_of(queue / truth.all_lost_s)
    assert f"queue wide ({node_hours(queue)}, {part} of" in bearing
    record = json.loads((tmp_path / "out/advice.json").read_text())
    numbers = {figure["name"]: figure for figure in record["answers"][0]["figures"]}
    assert numbers["record"]["mean"] == record["recorded"]["lost_h"] == pytest.approx(lost_h)
    assert numbers["all checkpoints"]["high"] < numbers["no checkpoints"]["low"]
    page = (tmp_path / "out/advice.md").read_text()
    assert "| recorded |" in page and "in the record, by month" in page


def test_a_past_of_other_jobs(slurm: tuple[Path, Truth], tmp_path: Path) -> None:
    folder, _ = slurm
    failures = rebat.failures(mtbf="1h", downtime="5s")
    for past, words in ((folder / "past", "is not in toy"), (tmp_path, "no recorded schedule")):
        with pytest.raises(InputError, match=words):
            rebat.advise("toy", failures=failures, past=past, out=tmp_path / "out")


def test_no_axis_of_shares_shows_tiny_differences() -> None:
    nearly = Interval(0.99999, 0.99998, 1.0, 9)
    of_shares = lines_figure([Panel("useful_utilisation", {"easy": [(0, nearly), (4, nearly)]})],
                             "spare nodes", False)  # fmt: skip
    low, high = of_shares.axes[0].get_ylim()
    assert high - low == pytest.approx(0.02)
    of_ratios = _drawn({"useful utilisation": {"sfsj": nearly}}, "easy", "9 seeds")
    low, high = of_ratios.axes[0].get_xlim()
    assert high - low == pytest.approx(0.02)
