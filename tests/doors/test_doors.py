# SPDX-License-Identifier: Apache-2.0
"""All doors to a simulation give equal numbers, or the same error at the same place."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import rebat
from rebat.cli.main import cli
from rebat.core.errors import InputError
from rebat.models.failures.laws import parse_law, prefabs, text_of
from rebat.runs.case import PYTHON, Case, Door, case_of, combinations, expand
from rebat.runs.scenario import OPTIONS
from rebat.runs.unit import Source
from rebat.workloads.batsim_json import write_workload
from rebat.workloads.generate import synthetic
from tests.support.amount import few
from tests.support.doors import difference, drawn, law, seed_with


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_has_equal_numbers_at_all_doors(name: str) -> None:
    assert difference(seed_with(name)) == ""


@pytest.mark.slow
@pytest.mark.sampled
def test_random_options_have_equal_numbers_or_errors_at_all_doors() -> None:
    differences = [difference(10_000 + seed) for seed in range(few(300))]
    assert [text for text in differences if text] == []


def test_every_text_option_has_examples() -> None:
    for name, option in OPTIONS.items():
        assert option.kind is not str or option.choices or option.extra.get("examples"), name


def test_a_law_is_read_again_from_its_text(tmp_path: Path) -> None:
    rng = random.Random(3)
    for text in [law(rng, tmp_path) for _ in range(200)] + [*prefabs()]:
        assert parse_law(text_of(parse_law(text))) == parse_law(text)


# ---- a site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with failures and checkpoints, and its recorded schedule."""
    folder = tmp_path_factory.mktemp("site")
    write_workload(synthetic(1, 120), folder / "jobs.json")
    outages = [(1_200 * k, 1_200 * k + 900, 7 * k % 100) for k in range(1, 25)]
    lines = [
        {"timestamp": at, "type": f"machine_{kind}available", "resources": str(node)}
        for down, up, node in outages
        for at, kind in ((down, "un"), (up, ""))
    ]
    lines.sort(key=lambda line: line["timestamp"])
    (folder / "site.events").write_text("".join(json.dumps(line) + "\n" for line in lines))
    rebat.run(folder / "jobs.json", "easy", failures=folder / "site.events").write(folder / "past")
    (folder / "site.toml").write_text(
        'jobs = "jobs.json"\npast = "past/easy"\nfailures = "site.events"\n'
        '[scheduler]\npolicy = "easy"\n'
        '[[checkpoints]]\nperiod = "2h"\ncost = "5min"\nrecovery = "5min"\n'
    )
    return folder / "site.toml"


def test_a_site_states_policy_and_failures_at_all_doors(site: Path, tmp_path: Path) -> None:
    cli.main(["run", str(site), "--out", str(tmp_path / "run")], standalone_mode=False)
    command = json.loads((tmp_path / "run/easy/summary.json").read_text())["metrics"]
    called = rebat.run(site)
    assert called.runs[0].summary.useful_utilisation == command["useful_utilisation"]
    assert command["failures_hit"] > 0
    over = ["--over", "load=0.9,1", "--seeds", "2", "--workers", "1"]
    cli.main(["sweep", str(site), *over, "--out", str(tmp_path / "a")], standalone_mode=False)
    rebat.sweep(site, load=[0.9, 1.0], seeds=2, workers=1, out=tmp_path / "b")
    tables = [pd.read_parquet(tmp_path / name / "results.parquet") for name in "ab"]
    assert tables[0].equals(tables[1])
    seeds = rebat.run(site, seeds=2, workers=1).seeds.of("easy", ("failures_hit", None))
    rows = tables[0][(tables[0]["metric"] == "failures_hit") & tables[0]["load"].isna()]
    assert dict(zip(rows["seed"], rows["value"], strict=True)) == seeds


def test_a_calibration_has_equal_numbers_by_command_and_function(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    past = site.parent / "past/easy"
    for options in ({}, {"max_attempts": 3}, {"nodes": 120}):
        flags = [w for n, v in options.items() for w in (f"--{n.replace('_', '-')}", str(v))]
        words = [str(site), str(past), "-p", "easy", "-p", "baseline", *flags, "--workers", "1"]
        cli.main(["calibrate", *words, "--json"], standalone_mode=False)
        told = capsys.readouterr().out
        ours = rebat.calibrate(site, past, ["easy", "baseline"], workers=1, **options)
        assert told.strip() == ours.json.strip()
    plain = rebat.calibrate(site.parent / "jobs.json", past, ["easy", "baseline"], workers=1)
    assert plain.verdict.configurations != ours.verdict.configurations


# ---- cases

FILES = {"jobs": Source(file="jobs.json")}


def case(policies: tuple[str, ...] = ("easy",), door: Door = PYTHON, **given: Any) -> Case:
    return case_of(given, policies, door, workloads=FILES)


def test_options_without_effect_in_some_combinations_are_dropped_there() -> None:
    """Costs have no effect without checkpoints: one run instead of two."""
    both = case(mtbf="1h", checkpoint=["none", "young-daly"], checkpoint_cost=["1min", "2min"])
    ((_, rows),) = combinations(both)
    assert [(row.checkpoint, row.checkpoint_cost) for row in rows] == [
        ("none", 300.0), ("young-daly", 60.0), ("young-daly", 120.0),
    ]  # fmt: skip
    with pytest.raises(InputError, match=r"checkpoint_cost: has no effect .*young-daly"):
        combinations(case(mtbf="1h", checkpoint_cost=["1min", "2min"]))


def test_a_run_without_randomness_has_one_seed() -> None:
    ((_, rows),) = combinations(case(mtbf=["1h"], seed=[3, 4]))
    assert [row.seed for row in rows] == [3, 4]
    ((_, rows),) = combinations(case(nodes=8, seed=[3, 4]))
    assert [row.seed for row in rows] == [3]
    explicit = Door({"seeds": "--seeds"})
    with pytest.raises(InputError, match=r"^--seeds: has no effect: nothing is random"):
        combinations(case(door=explicit, nodes=8, seed=[3, 4]))


LISTS = {"nodes": [4, 8], "shape": [1, 2], "seed": [0, 1], "x": [5, 6]}


def test_the_loops_are_in_order() -> None:
    runs = [
        (of.nodes, of.failures.law.shape, of.failures.seed, spec.policy)
        for spec in expand(case(("a", "b:x={x}"), law="weibull", scale="1d", **LISTS))
        for of in [spec.scenario]
    ]
    policies = ("a", "b:x=5", "b:x=6")
    assert runs == [
        (nodes, shape, seed, policy)
        for nodes in (4, 8) for shape in (1, 2) for seed in (0, 1) for policy in policies
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"mtbf": []}, "^mtbf: is empty"),
        ({"mtbf": ["1h", "60min"]}, "^mtbf: lists 3600.0 twice"),
        ({"speed": 3}, "^speed: unknown parameter 'speed'"),
        ({"law": "weibull"}, "^law: weibull: parameter scale is missing"),
        ({"law": "weibul", "scale": 3}, "^law: unknown failure law 'weibul'"),
        ({"law": 3}, "^law: is 3"),
        ({"load": float("inf")}, "^load: is inf"),
        ({"nodes": 2.5}, "^nodes: is 2.5 .expected a whole number"),
        ({"window": "x"}, "^window: 'x' is not a window"),
        ({"mtbf": [float(n + 1) for n in range(2000)], "seed": range(1000)}, "runs are too many"),
    ],
)
def test_wrong_values_are_refused_at_their_place(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        [*expand(case(**given))]


@pytest.mark.parametrize(
    ("door", "where", "expected"),
    [
        (Door({"model": "--failure-model"}), "--failure-model", "--mtbf as well"),
        (PYTHON, "model", "mtbf as well"),
        (
            Door({"model": "grid[0].of.model"}, "grid[0]."),
            "grid[0].of.model",
            "mtbf as",
        ),
    ],
)
def test_an_error_has_the_spelling_of_its_door(door: Door, where: str, expected: str) -> None:
    with pytest.raises(InputError) as error:
        combinations(case_of({"model": "poisson"}, (), door))
    assert (error.value.where, error.value.problem) == (where, "has no effect")
    assert expected in str(error.value.expected)


def test_a_quoted_command_keeps_its_dashes_in_python() -> None:
    with pytest.raises(InputError, match=r"'rebat workload prepare WORKLOAD --drop-checkpoints"):
        rebat.run("synthetic-small", "easy", checkpoint="perfect")


@pytest.mark.parametrize(
    ("over", "words"),
    [
        ("mtbf=1h..2h:99999999", "N from 2 to 1,000,000"),
        ("load=0.5..2:900000", "18,000,000 runs are too many .expected at most 1,000,000 runs"),
        ("downtime=0s..1h:3", "downtime: is 0.0 .expected a number, above 0"),
        ("checkpoint=none,perfect", "'none' is not a duration"),
    ],
)
def test_a_sweep_is_refused_before_it_runs(over: str, words: str, tmp_path: Path) -> None:
    command = ["sweep", "toy", "-p", "easy", "-p", "sfsj", "--over", over]
    with pytest.raises(InputError, match=words):
        cli.main([*command, "--out", str(tmp_path / "o")], standalone_mode=False)
    assert [*tmp_path.iterdir()] == []


def test_a_door_that_forgets_an_option_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The property fails if one of the readers leaves out a value."""
    from rebat.cli import scenario_options

    given_in: Callable[..., Any] = scenario_options.given_in

    def forgetful(values: dict[str, Any]) -> Any:
        given, door = given_in(values)
        given.pop("downtime", None)
        return given, door

    monkeypatch.setattr("rebat.cli.sweep.given_in", forgetful)
    assert "downtime" in str(drawn(random.Random(seed_with("mtbf")), tmp_path).given)
    assert difference(seed_with("mtbf")) != ""
