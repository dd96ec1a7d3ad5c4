# SPDX-License-Identifier: Apache-2.0
"""`rebat advise`: the runs of the design, the answers, and advice within a short time."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

import rebat
from rebat.cli.main import main
from rebat.core.errors import InputError
from rebat.library.advice.answers import answers
from rebat.library.advice.compared import rules
from rebat.library.advice.design import (
    FACTORS,
    RULES,
    AdvisedSite,
    fitted_law,
    site_of,
    specs,
    turned,
    with_options,
)
from rebat.library.advice.owners import WorkOwner, losers
from rebat.library.advice.rounds import Evidence
from rebat.library.workloads import load_workload
from rebat.models.checkpoint import young_daly_period_s
from rebat.models.failures.events import write_events
from rebat.models.failures.renewal import Renewal
from rebat.papers.common.runs_index import RunIndex
from rebat.runs.labels import scenario_of
from rebat.runs.options import ScenarioOptions
from rebat.runs.spec import CheckpointModel

OPTIONS = ScenarioOptions(mtbf=1800.0, downtime=600.0, checkpoint="young-daly")
METRICS = ("flow_mean_s", "flow_max_s", "useful_utilisation", "platform_waste_failure")


def site(**changes) -> AdvisedSite:
    return site_of(load_workload("toy"), "easy", msgspec.structs.replace(OPTIONS, **changes))


def made_up(of: AdvisedSite, seeds: range, flow) -> Evidence:
    """Return evidence with a flow per run from a function, and 100 s without failures."""
    rows = []
    for spec in specs(of, seeds):
        scenario = scenario_of(spec)
        failures = spec.scenario.failures
        where = rebat.papers.common.runs_index.Setting(spec.grid, "toy", scenario)
        at = (-1, failures.seed if failures else -1)
        value = flow(spec) if failures else 100.0
        for name in METRICS:
            of_metric = 0.9 - value / 1e4 if name == "useful_utilisation" else value
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
    per_seed = 1 + len(of.rules) + len(of.spares) + len(FACTORS) + 1
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
    cost, _, rule, spares, periods = answers(of, evidence, [])
    assert all(answer.answered for answer in (cost, rule, spares, periods))
    assert rule.sentence.startswith("EASY with node stealing (easy-sfsj): mean flow -25.0 %")
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
    assert "of useful utilisation" in cost.sentence
    assert cost.sentence.count("(not significant)") == 2  # useful utilisation and mean flow


def test_a_period_that_is_better_is_advised() -> None:
    of = site()

    def flow(spec) -> float:
        model = spec.scenario.checkpoint
        return noisy(spec, 50.0 if model and model.mtbf_s == of.mtbf_s * 4 else 120.0)

    answer = answers(of, made_up(of, range(6), flow), [])[4]
    assert "(2 times the Young/Daly period): useful utilisation is 0.71 points" in answer.sentence


def test_few_seeds_with_a_change_give_no_interval() -> None:
    of = site()

    def flow(spec) -> float:
        return 90.0 if spec.policy == "easy-sfsj" and spec.scenario.failures.seed < 4 else 120.0

    replies = answers(of, made_up(of, range(30), flow), [])
    assert replies[2].sentence == "No answer: fewer than 5 of 30 seeds show any change."
    assert not replies[2].answered and replies[2].figures[0].low is None


def test_no_answer_without_intervals() -> None:
    of = site()
    few = made_up(of, range(4), lambda spec: noisy(spec, 120.0))
    replies = answers(of, few, [])
    assert not any(reply.answered for reply in replies)
    assert all(reply.sentence.startswith("No answer: 4 seeds are too few") for reply in replies)
    assert not any(figure.low for reply in replies for figure in reply.figures)


def test_who_loses_more_than_it_uses() -> None:
    owners = [
        WorkOwner("user", "a", 0.5, 0.2, 1.0),
        WorkOwner("user", "b", 0.1, 0.7, 5.0),
        WorkOwner("queue", "q", 0.6, 0.7, 5.0),
        WorkOwner("queue", "r", 0.4, 0.3, 5.0),
    ]
    assert [owner.name for owner in losers(owners)] == ["b"]
    assert owners[1].text == "User b has 10% of the node time, but 70% of the lost node time."


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


def test_the_command_writes_page_and_numbers_and_continues(tmp_path: Path, capsys) -> None:
    main(command(tmp_path, "--seeds", "5"))
    first = capsys.readouterr().out.splitlines()
    assert [line.split("?")[0] for line in first[:5]] == [
        "What do failures cost today", "Which jobs bear the cost of the failures",
        "Which scheduler rule would help, and which jobs would it hurt",
        "How many spare nodes are worth keeping", "How often should jobs checkpoint",
    ]  # fmt: skip
    record = json.loads((tmp_path / "out/advice.json").read_text())
    assert record["seeds"] == 5 and len(record["answers"]) == 5
    page = (tmp_path / "out/advice.html").read_text()
    assert page.count("<svg") >= 4 and "Assumptions: " in page
    main(command(tmp_path, "--seeds", "5", "--json"))
    assert json.loads(capsys.readouterr().out) == record


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


def test_in_python(tmp_path: Path) -> None:
    failures = rebat.failures(mtbf="5min", downtime="5s")
    advice = rebat.advise("toy", failures=failures, most_seeds=5, out=tmp_path / "out", workers=1)
    assert len(advice.answers) == 5 and "What do failures cost today?" in repr(advice)
