# SPDX-License-Identifier: Apache-2.0
"""``rebat goodput``: a training job on the engine, closed forms and a slow oracle agree."""

from __future__ import annotations

import json

import msgspec
import pytest

import rebat
from rebat.cli.main import main
from rebat.core.errors import InputError
from rebat.core.numbers import spread
from rebat.models.ettr import ettr, spare_nodes
from rebat.results.intervals import Interval
from rebat.studies.training.case import TrainingCase, failures_of, run_once, simulated, workload_of
from rebat.studies.training.goodput import ETTR
from tests.oracles.training import end_of_job, one_job_with_spares, ratio_with_error

MINUTE = 60


def case(nodes: int, rate: float, detect: float, load: float, interval: float, write: float):
    """Return a case of the reference's table; times are in minutes."""
    return TrainingCase(
        nodes=nodes, law=failures_of(rate, None, None), interval_s=interval * MINUTE,
        write_s=write * MINUTE, load_s=load * MINUTE, stages={"detect": f"{detect}min"},
    )  # fmt: skip


ROWS = {
    "A": (case(128, 6.5, 5, 10, 60, 0), 0.974290),
    "B": (case(2048, 6.5, 5, 5, 30, 0), 0.791934),
    "C": (case(2048, 3.78870, 2, 8, 15, 1), 0.850627),  # M = 3.093079 h
    "D": (case(16384, 6.5, 1, 2, 2, 2 / 60), 0.732041),
}


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS)
def test_the_engine_has_the_exact_ettr(row):
    """The simulated ETTR is within three standard errors of the reference's number."""
    of_row, printed = ROWS[row]
    simulation = simulated(of_row, seed=1000, runs=20, failures=150)
    error = (simulation.high - simulation.low) / (2 * 2.093)  # Student's t with 19 degrees
    assert abs(simulation.ettr - printed) < 3 * error
    assert error < 0.004


@pytest.mark.parametrize("row", ROWS)
def test_a_job_ends_when_the_oracle_says(row):
    """With the same failures the end is equal to the microsecond."""
    of_row, _ = ROWS[row]
    workload = workload_of(of_row, 40)
    n_periods = round(workload.profiles["training"]["delay"] / (of_row.period_s + of_row.write_s))
    for seed in range(3):
        result = run_once(of_row, workload, seed)
        strikes = [at for at, up, _ in result.ledger.node_events if not up] + [2**62]
        parts = (of_row.period_s, of_row.write_s, of_row.mean_stage_s("detect"), of_row.load_s)
        period, write, hang, load = (round(seconds * 1e6) for seconds in parts)
        end = end_of_job(n_periods * period, period, write, hang, load, strikes)
        assert max(record.end_us for record in result.ledger.attempts) == end
        assert result.ledger.interrupted


ROW_11 = TrainingCase(
    nodes=2048,
    law=failures_of(None, "fleet:rate=3.7887,causes=light=80+deep=20,software=light", None),
    tiers="memory=1s/3min@2.6min+remote=30s/10min@31.2min",
)


@pytest.mark.slow
def test_two_tiers_on_the_engine():
    """Row 11 of the reference is 0.932953 if failures can occur during loads."""
    assert ROW_11.closed_ettr == pytest.approx(0.932953, abs=2e-6)
    assert ROW_11.pattern.per_pattern == 12
    simulation = simulated(ROW_11, seed=1000, runs=20, failures=250)
    error = (simulation.high - simulation.low) / (2 * 2.093)
    assert abs(simulation.ettr - ROW_11.closed_ettr) < 3 * error
    assert error < 0.001
    assert simulation.shares["checkpoint"] == pytest.approx(
        simulation.ettr * (12 + 30) / (12 * 156), rel=1e-3
    )


@pytest.mark.slow
def test_three_tiers_on_the_engine():
    law = failures_of(
        None, "fleet:rate=3.7887,causes=gpu=50+software=50,switch=8,switch_rate=8", None
    )
    case = TrainingCase(
        nodes=2048, law=law, tiers="memory=1s/1min+peer=5s/3min+remote=60s/10min",
        stages={"detect": "2min"},
    )  # fmt: skip
    assert case.light_share == pytest.approx((0.5 * 3.7887 / 4.7887, 3.7887 / 4.7887))
    simulation = simulated(case, seed=1000, runs=60, failures=250)
    error = (simulation.high - simulation.low) / (2 * 2.093)
    assert abs(simulation.ettr - case.closed_ettr) < 3 * error
    assert error < 0.001
    two = msgspec.structs.replace(case, tiers="peer=5s/3min+remote=60s/10min")
    assert case.closed_ettr > two.closed_ettr


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["0", "4min"])
def test_tiers_are_better_than_remote_storage_alone(stage):
    law = failures_of(None, "llama3", None)
    both = TrainingCase(
        nodes=2048, law=law, tiers="peer=1s/30s+remote=30s/2min", stages={"init": stage}
    )
    alone = TrainingCase(nodes=2048, law=law, tiers="remote=30s/2min", stages={"init": stage})
    assert both.closed_ettr > alone.closed_ettr
    for of_tiers in (both, alone):
        simulation = simulated(of_tiers, seed=5, runs=10, failures=60)
        error = (simulation.high - simulation.low) / (2 * 2.262)
        assert abs(simulation.ettr - of_tiers.closed_ettr) < 3 * error


def test_the_shares_add_up():
    simulation = simulated(ROWS["C"][0], runs=5, failures=20)
    assert sum(simulation.shares.values()) == pytest.approx(1, abs=1e-6)
    assert simulation.shares["useful"] == pytest.approx(simulation.ettr, rel=1e-9)


def test_too_few_spares_make_the_job_wait():
    law = failures_of(6.5, None, "1d")
    few, many = (
        simulated(
            TrainingCase(nodes=512, law=law, interval_s=1800, load_s=60, spares=spares),
            runs=5, failures=40,
        )
        for spares in (0, 20)
    )  # fmt: skip
    assert few.ettr < 0.4
    assert many.ettr > 0.9
    assert few.shares["waiting"] > 0.5
    assert many.shares["waiting"] < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("failing", ["all", "job"])
def test_which_nodes_fail_decides_the_ettr(failing):
    """With few spare nodes, the engine agrees with a slow simulation of the same assumption."""
    of_spares = TrainingCase(
        nodes=100, law=failures_of(130, None, "6h"), interval_s=1800, write_s=60, load_s=300,
        stages={"detect": "5min"}, spares=2, failing=failing,
    )  # fmt: skip
    simulation = simulated(of_spares, seed=7, runs=20, failures=150)
    error = (simulation.high - simulation.low) / (2 * 2.093)
    rate = 130 / 1000 / 86_400
    expected, expected_error = ratio_with_error(
        lambda rng: one_job_with_spares(
            of_spares.job(), (100, 2), rate, 6 * 3600, 1000, rng, failing == "job"
        ),
        20,
    )
    assert abs(simulation.ettr - expected) < 3 * (error**2 + expected_error**2) ** 0.5
    assert error < 0.015
    others = {"all": "job", "job": "all"}[failing]
    other = simulated(msgspec.structs.replace(of_spares, failing=others), 7, 5, 150)
    assert (other.ettr > simulation.ettr + 0.03) == (failing == "all")


@pytest.mark.slow
def test_each_failure_hits_the_job_if_only_its_nodes_fail():
    law = failures_of(None, "fleet:rate=40,causes=gpu=3+host=1,software=host,lemons=0.05,rack=4,"
                      "rack_share=0.2,repair=uniform:1h:9h", None)  # fmt: skip
    stages = {"detect": "uniform:1min:9min", "reschedule": "gpu=2min/0", "init": "uniform:10s:60s"}
    of_spares = TrainingCase(nodes=200, law=law, interval_s=900, stages=stages, spares=3,
                             failing="job")  # fmt: skip
    for seed in range(5):
        result = run_once(of_spares, workload_of(of_spares, 80), seed)
        failures = [nodes for _, up, nodes in result.ledger.node_events if not up]
        assert len(failures) > 50
        assert len(failures) == sum(result.ledger.interrupted.values())


def test_the_text_states_what_decides_the_answer(capsys):
    words = ["goodput", "--nodes", "64", "--rate", "20", "--interval", "30min", "--runs", "5",
             "--failures", "5"]  # fmt: skip
    main(words)
    assert "repair time of a node: 6.6 h on average (--repair 90%*" in capsys.readouterr().out
    for failing, words_of in (("all", "including spare nodes"), ("job", "only the nodes on which")):
        main([*words, "--spares", "1", "--failing", failing, "--repair", "2h"])
        text = capsys.readouterr().out
        assert words_of in text and f"(--failing {failing})" in text
        assert "2 h on average (--repair 2h)" in text


@pytest.mark.slow
def test_the_page_has_one_number_per_case_and_other_seeds_per_point(tmp_path, monkeypatch):
    seeds: list[int] = []

    def counted(case, seed, runs, *others):
        seeds.extend(range(seed, seed + runs))
        return simulated(case, seed, runs, *others)

    monkeypatch.setattr("rebat.studies.training.goodput.simulated", counted)
    result = rebat.goodput(64, rate=20, interval="30min", spares=2, runs=5, failures=5)
    result.write(tmp_path / "page.html")
    assert len(seeds) > 40 and len(seeds) == len(set(seeds))
    text = (tmp_path / "page.html").read_text()
    simulation = result.simulation
    own = spread(Interval(simulation.ettr, simulation.low, simulation.high), ETTR)
    assert text.count(own) == 3  # the sentence, and a row of each table


def test_the_record():
    result = rebat.goodput(
        128, rate=6.5, detect="5min", load="10min", interval="1h", write="30s", runs=5, failures=20
    )
    record = result.record
    assert record["ettr_closed"] == ettr(result.case.job())
    assert record["ettr_low"] < record["ettr"] < record["ettr_high"]
    assert record["spares"]["needed"] == spare_nodes(128 * 6.5 / 1000 / 24 * (0.9 * 2 + 0.1 * 48))
    assert record["best"]["ettr_closed"] > record["ettr_closed"]


def test_a_model_has_causes_and_stages_by_cause():
    stage = {"detect": "nccl=10min/30s"}
    of_model = TrainingCase(
        nodes=2048, law=failures_of(None, "llama3", None), interval_s=600, stages=stage
    )
    assert of_model.job().detect_s == pytest.approx((7 * 600 + 412 * 30) / 419)
    assert simulated(of_model, runs=5, failures=10).failures > 20


@pytest.mark.slow
def test_the_command_prints_json_and_writes_a_page(capsys, tmp_path):
    page = tmp_path / "page.html"
    words = ["goodput", "--nodes", "64", "--rate", "20", "--interval", "30min", "--runs", "5",
             "--failures", "5"]  # fmt: skip
    main([*words, "--json"])
    first = capsys.readouterr().out
    assert {"ettr_closed", "ettr", "ettr_low", "ettr_high"} <= json.loads(first).keys()
    main([*words, "--json"])
    assert capsys.readouterr().out == first
    main([*words, "-o", str(page)])
    assert "ETTR" in capsys.readouterr().out
    text = page.read_text()
    assert "Spare nodes" in text
    assert text.count("<svg") == 2


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"rate": 6.5, "interval": "1h", "spares": 11}, "spares: is 11 .expected 0 to 10"),
        ({"rate": 6.5}, "interval: is missing"),
        ({"interval": "1h"}, "rate, model: are both missing"),
        ({"rate": 1, "model": "rsc-1", "interval": "1h"}, "rate, model: are both set"),
        ({"model": "mira", "interval": "1h"}, "unknown training cluster 'mira'"),
        ({"rate": 6.5, "interval": "1h", "detect": "-5"}, "detect: '-5' is not a duration"),
        ({"rate": 6.5, "interval": "1h", "detect": "60%*1+30%*2"}, "add up to 90 %"),
        ({"rate": 6.5, "interval": "0"}, "interval: is 0 s"),
        ({"rate": 6.5, "interval": "1h", "write": "-3"}, "not a duration"),
        ({"rate": 6.5, "tiers": "memory=1s/1s"}, "memory does not survive all failures"),
        ({"rate": 6.5, "tiers": "tape=1s/1s"}, "unknown tier of checkpoints 'tape'"),
        ({"rate": 6.5, "tiers": "remote=1s"}, "'remote=1s' is not a storage tier"),
        ({"rate": 6.5, "tiers": "memory=1/1+disk=1/1+remote=1/1"}, "disk survives no more"),
        ({"rate": 6.5, "tiers": "remote=0/1"}, "has no interval"),
        ({"rate": 6.5, "tiers": "auto", "load": 3}, "have no effect with tiers"),
        ({"rate": 6.5, "interval": "1h", "failing": "job"}, "failing: has no effect"),
        ({"rate": 6.5, "interval": "1h", "failing": "no"}, "failing: is no .expected all or job"),
        (
            {"model": "rsc-1:shape=2", "interval": "1h", "spares": 2, "failing": "job"},
            "failing: is job .expected all",
        ),
    ],
)
def test_bad_input(options, error):
    with pytest.raises(InputError, match=error):
        rebat.goodput(10, **options)


@pytest.mark.parametrize(
    "options",
    [
        ["--nodes", "128", "--rate", "1e9"],
        ["--nodes", "100000", "--rate", "100", "--interval", "1h"],
    ],
)
def test_a_job_that_practically_never_advances_is_not_simulated(options, tmp_path, capsys):
    page = tmp_path / "page.html"
    main(["goodput", *options, "--write", "30s", "-o", str(page)])
    first = capsys.readouterr().out.splitlines()[0]
    assert first == (
        "ETTR 0.0000 in closed form, not simulated: the job practically never advances"
    )
    assert first in page.read_text()


@pytest.mark.slow
def test_progress_counts_the_failures():
    of_row, _ = ROWS["B"]
    counts: list[tuple[int, int]] = []
    simulation = simulated(of_row, 0, 5, 300, lambda *count: counts.append(count))
    assert len(counts) > 5
    assert counts == sorted(counts)
    assert counts[-1] == (simulation.failures, max(simulation.failures, counts[0][1]))
