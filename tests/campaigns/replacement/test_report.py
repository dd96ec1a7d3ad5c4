# SPDX-License-Identifier: Apache-2.0
"""The report of node replacement: its content, and the campaigns that have this report."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from rebat.campaign.opening import open_campaign
from rebat.campaign.reporting import write_report
from rebat.campaign.store import Store
from rebat.cli import main as cli
from rebat.core import numbers
from rebat.core.errors import InputError
from rebat.report.runs_index import RunIndex, Setting
from rebat.results.intervals import (
    ANY_SEED,
    Interval,
    combined,
    interval,
    minus,
    relative,
)
from rebat.runs.labels import ScenarioLabel
from rebat.shipped.campaigns.replacement import beyond, claims
from rebat.shipped.campaigns.replacement.report import replacement_pictures, small_run
from rebat.shipped.campaigns.replacement.runs import (
    DERIVED,
    SOURCES,
    ReplacementCase,
    Runs,
    case_of,
    index_of,
    rise,
    with_failures,
)
from tests.support.campaigns import campaign_of, specs_of

ROOT = Path(__file__).parents[3]

FAILURES = """
cores_per_node = 4
[grid.failures]
law = "renewal"
mtbf = "1h"
seeds = "workload"
[grid.checkpoint]
model = "perfect"
"""
FILE = f"""
report = "replacement/report.py"
[workloads.mixed]
generator = "cirne-berman:mix=mixed,jobs=60"
seeds = [3, 1]

[workloads.moldable-rigid]
generator = "cirne-berman:mix=moldable-rigid,jobs=60"
seeds = [3, 1]

[workloads.mixed-again]
generator = "cirne-berman:mix=mixed,jobs=60"
seeds = [3, 1]

[[grid]]
name = "malleable"
workloads = ["mixed"]
policies = [
    "baseline", "pra", "pra:react=replacement", "pwa", "pwa:react=replacement",
    "dbes", "dbes:react=replacement", "dbes:react=replacement,steps=local+idle+remote+wait",
]
failure_free = ["baseline", "pra", "pwa", "dbes"]
{FAILURES}
[[grid]]
name = "moldable"
workloads = ["moldable-rigid"]
policies = ["sa", "sa:react=replacement", "sfsj"]
failure_free = ["sa"]
{FAILURES}
[[grid]]
name = "as above"
workloads = ["mixed-again"]
policies = ["baseline", "pra", "pwa", "dbes"]
failure_free = ["baseline", "pra", "pwa", "dbes"]
{FAILURES}
[[grid]]
name = "even"
workloads = ["mixed-again"]
policies = ["baseline"]
failure_free = ["baseline"]
{FAILURES.replace("seeds", "shape = [1.0, 2.0]" + chr(10) + "seeds")}
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return campaign_of(tmp_path_factory.mktemp("replacement"), FILE)


@pytest.fixture(scope="module")
def evidence(ran) -> Runs:
    return index_of(ran[1] / "results.parquet")


@pytest.mark.slow
def test_a_workload_with_seeds_meets_the_failures_of_its_own(ran) -> None:
    specs = specs_of(open_campaign(ran[0]))
    failing = [spec for spec in specs if spec.scenario.failures]
    assert {spec.workload for spec in failing if spec.grid == "malleable"} == {"mixed#3", "mixed#1"}
    for spec in failing:
        drawn = int(spec.workload.partition("#")[2])
        assert (spec.source.seed, spec.scenario.failures.seed) == (drawn, drawn)


@pytest.mark.slow
def test_the_page_has_claims_tables_choices_and_figures(ran, tmp_path) -> None:
    for path in write_report(open_campaign(ran[0]), ran[1], tmp_path):
        text = path.read_text()
        for told in (
            "Dynamic node replacement: evaluation repeated",
            "without failures the makespan of PWA is shorter than that of rigid",
            "DBES: more jobs are requeued if moldable jobs may not start over",
            "SA: moldable jobs that start over and waiting provide almost equal shares",
            "outcomes of jobs that a failure hits",
            "mixed: one parameter changed at a time",
            "even, shape=2.0",
        ):
            assert told in text
        html = path.suffix == ".html"
        assert ("a small example" in text) == html
        assert ("Figure 9" in text) and (text.count("<svg") == (5 if html else 0))


def test_values_are_paired_by_workload(ran, evidence) -> None:
    """A rise is the makespan divided by that of the same jobs without failures, minus 1."""
    units = open_campaign(ran[0]).units
    results = {
        (u.spec.workload, u.spec.policy, u.spec.scenario.failures is not None): u.key
        for u in units
        if u.grid == "malleable"
    }

    def makespan(*run: object) -> float:
        return Store(ran[1]).read(results[run]).metrics["makespan_s"]

    setting = evidence.main("mixed")
    found = rise(evidence, setting, case_of("dbes:react=replacement"))
    assert found == {
        seed: makespan(f"mixed#{seed}", "dbes:react=replacement", True)
        / makespan(f"mixed#{seed}", "dbes", False)
        - 1
        for seed in (3, 1)
    }


def test_medians_and_their_intervals_by_hand() -> None:
    """An interval lies between the j-th least and the j-th greatest of n values.

    It misses the median with probability 2 P(Bin(n, 1/2) < j). For (n, j) = (6, 1) this is
    2 / 2**6 = 3.1 %, for (10, 2) it is 2 (1 + 10) / 2**10 = 2.1 %. It is too large for (10, 3) with
    2 (1 + 10 + 45) / 2**10 = 10.9 %, and for (5, 1) with 2 / 2**5 = 6.3 %.
    """
    values = {seed: float(seed**2) for seed in range(10)}
    assert interval(values, of_median=True) == Interval(20.5, 1.0, 64.0, 10, (0.0, 81.0))
    six, five = (
        interval({seed: values[seed] for seed in range(n)}, of_median=True) for n in (6, 5)
    )
    assert (six.mean, six.low, six.high) == (6.5, 0.0, 25.0)
    assert (five.mean, five.low, five.high) == (4.0, None, None)
    assert interval({}, of_median=True) is None
    assert numbers.spread(interval(values, of_median=True), numbers.number) == "20 [1, 64]"
    assert numbers.spread(interval({7: 3.0}, of_median=True), numbers.number) == "3"


def test_the_sources_of_a_run_are_all_of_its_hits(evidence) -> None:
    setting = evidence.main("mixed")
    case = case_of("pwa:react=replacement")
    shares = [evidence.values(setting, case, f"share_{name}") for name in SOURCES]
    assert shares[0]
    for seed, hits in evidence.values(setting, case, "hits").items():
        assert sum(share[seed] for share in shares) == pytest.approx(1.0)
        assert hits >= evidence.values(setting, case, "failures_hit")[seed] > 0


def test_the_same_runs_in_two_grids_are_the_same(evidence) -> None:
    first, second = evidence.main("mixed"), evidence.main("mixed-again")
    for name in ("baseline", "dbes"):
        case = case_of(name)
        assert rise(evidence, first, case) == rise(evidence, second, case)


@pytest.mark.parametrize(
    ("policy", "case", "label"),
    [
        ("baseline", ReplacementCase("baseline", False, False, "", ""), "rigid"),
        ("sfsj", ReplacementCase("sfsj", False, True, "", ""), "stealing"),
        (
            "dbes:react=replacement",
            ReplacementCase("dbes", True, False, "", ""),
            "DBES with replacement",
        ),
        (
            "baseline:react=replacement+stealing",
            ReplacementCase("baseline", True, True, "", ""),
            "stealing and replacement",
        ),
        (
            "sa:spares=8,react=replacement,resize_cost=60",
            ReplacementCase("sa", True, False, "resize_cost=60", "spares=8"),
            "SA with replacement (spares=8, resize_cost=60)",
        ),
    ],
)
def test_policies_are_read_as_campaigns_write_them(
    policy: str, case: ReplacementCase, label: str
) -> None:
    assert case_of(policy) == case
    assert case_of(policy).label == label


def test_differences_go_seed_by_seed() -> None:
    ours, base = {0: 3.0, 1: 6.0, 2: 5.0}, {0: 2.0, 1: 4.0}
    assert relative(ours, base) == {0: 0.5, 1: 0.5}
    assert relative(ours, {-1: 2.0}) == {0: 0.5, 1: 2.0, 2: 1.5}
    assert minus(ours, base) == {0: 1.0, 1: 2.0}
    assert combined(max, ours, {0: 9.0, 2: 1.0}) == {0: 9.0, 2: 5.0}


def told(rises: dict[str, list[float]], requeued: float = 0.0) -> Runs:
    """Return runs with these rises of a makespan of 100 s, and with sources of replacements."""
    setting = Setting("g", "mixed", ScenarioLabel("renewal"))
    calm = setting._replace(scenario=setting.scenario.failure_free[0])
    rows = []
    for name, values in rises.items():
        for seed, value in enumerate(values):
            at = (ANY_SEED, seed)
            rows.append((setting, case_of(name), "makespan_s", "", at, 100 * (1 + value)))
            rows.append((calm, case_of(name), "makespan_s", "", at, 100.0))
            for source in SOURCES:
                number = requeued if source == "requeued" else 1.0
                rows.append((setting, case_of(name), f"resizes_{source}", "", at, number))
    return with_failures(RunIndex(rows, DERIVED))


def _verdicts(evidence: Runs) -> dict[str, bool]:
    return {
        judged.claim: judged.holds for judged in claims.judgements(evidence) if judged.direction
    }


def test_claims_follow_from_their_numbers() -> None:
    rises = {
        "baseline": [0.18, 0.19, 0.17, 0.18, 0.16, 0.18],
        "dbes": [0.05, 0.06, 0.07, 0.05, 0.06, 0.06],
        "dbes:react=replacement": [0.01, 0.0, 0.01, 0.015, 0.01, 0.01],
    }
    found = _verdicts(told(rises))
    assert found["rigid: failures lengthen the makespan by 18 % without replacement"]
    assert found["DBES: with replacement the makespan stays close to the makespan without failures"]
    assert found["failures lengthen the makespan of DBES less than that of rigid"]
    assert found["replacement shortens the makespan of DBES under failures"]
    assert found["DBES: no job is requeued because a replacement is missing"]
    shrinking = "DBES: more replacements come from malleable jobs that shrink than from idle nodes"
    assert not found[shrinking]
    rises["baseline"] = [0.01, 0.02, 0.01, 0.03, 0.02, 0.02]
    rises["dbes:react=replacement"] = [0.08, 0.1, 0.1, 0.1, 0.1, 0.1]
    found = _verdicts(told(rises, requeued=1.0))
    assert not found[
        "DBES: with replacement the makespan stays close to the makespan without failures"
    ]
    assert not found["failures lengthen the makespan of DBES less than that of rigid"]
    assert not found["replacement shortens the makespan of DBES under failures"]
    assert not found["DBES: no job is requeued because a replacement is missing"]


def test_published_values_are_compared_with_the_interval() -> None:
    claim = "rigid: failures lengthen the makespan by 18 % without replacement"

    def size(*rises: float) -> str:
        judged = {j.claim: j for j in claims.judgements(told({"baseline": [*rises]}))}
        return judged[claim].size

    assert size(0.17, 0.19, 0.17, 0.18, 0.16, 0.18) == "inside"
    assert size(0.01, 0.1, 0.1, 0.12, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.11, 0.2) == "near"
    assert size(0.01, 0.02, 0.01, 0.03, 0.02, 0.02) == "outside"
    assert size(0.18, 0.19) == "too few seeds"


def test_a_single_workload_does_not_decide() -> None:
    """One makespan that a long repair triples changes the mean, but not the verdict."""
    rises = {"baseline": [0.18, 0.17, 0.19, 0.18, 2.0, 0.18]}
    judged = {j.claim: j for j in claims.judgements(told(rises))}
    rigid = judged["failures lengthen the makespan of rigid"]
    assert (rigid.number, rigid.holds) == (pytest.approx(0.18), True)
    assert rigid.ours == "0.2 [0.2, 2.0]"


def test_seeds_may_leave_a_claim_undecided() -> None:
    """Five of six rises are above 0, but the interval of the median extends below 0."""
    rises = {"sa": [], "dbes": [0.1, 0.2, 0.1, 0.3, 0.2, -0.1]}
    judged = {j.claim: j for j in claims.judgements(told(rises))}
    assert judged["failures lengthen the makespan of DBES"].direction == "undecided"


@pytest.mark.parametrize(
    ("used", "direction"),
    [([0.74, 0.74, 0.75, 0.74, 0.74], "holds"), ([0.66, 0.67, 0.66, 0.66, 0.66], "contradicted"),
     ([0.9, 0.71, 0.6, 0.7, 0.7], "undecided")],
)  # fmt: skip
def test_stealing_is_compared_with_the_baseline(used: list[float], direction: str) -> None:
    setting = Setting("g", "june", ScenarioLabel("renewal"))
    numbers = {"baseline": [0.7] * 5, "sfsj": used, "baseline:react=replacement": used}
    rows = [
        (setting, case_of(policy), "useful_utilisation", "", (ANY_SEED, seed), value)
        for policy, values in numbers.items()
        for seed, value in enumerate(values)
    ]
    found = {one.claim: one for one in beyond.stealing_judgements(RunIndex(rows, DERIVED))}
    one = found["stealing has a higher useful utilisation than baseline"]
    assert (one.direction, one.own) == (direction, True)


def test_the_first_choice_is_the_reference(evidence) -> None:
    ((table, sentence),) = beyond.choices(evidence)
    labels = [row[0] for row in table.rows]
    assert labels == ["as above", "even, shape=1.0", "even, shape=2.0", "paper"]
    assert table.rows[-1][1] == "+18.0 %"
    assert table.rows[0][-1] and not table.rows[1][-1]
    assert "The row 'as above' is closest to the published increases of the makespan" in sentence


def test_replacement_is_compared_with_stealing_where_both_ran(evidence) -> None:
    assert [setting.workload for setting in beyond.compared(evidence)] == ["moldable-rigid"]
    assert [table.title for table in beyond.stealing_tables(evidence)]


def test_the_small_run_shows_a_replacement_a_shrink_and_growths() -> None:
    """Job 1 has 8 node-hours, job 2 has 16: the run is as in the docstring of `small_run`."""
    ran = small_run()
    stops = {(r.attempt.job_id, r.end_us / 3.6e9): r.why for r in ran.ledger.attempts if r.why}
    assert stops == {
        ("w0!1", 1.0): "remote", ("w0!2", 1.0): "lend", ("w0!2", 2.0): "grow",
        ("w0!2", 3.0): "local", ("w0!2", 3.5): "grow", ("w0!2", 4.0): "grow",
    }  # fmt: skip
    # job 2 does 4 + 2 + 4 + 2/2 + 4/2 = 13 of its 16 node-hours until 4 h, the rest on six nodes
    assert ran.summary.makespan_s / 3600 == pytest.approx(4 + 3 / 6)


def test_the_picture_of_it_says_what_happens() -> None:
    (picture,) = replacement_pictures()
    for word in ("hit: nodes of the other", "shrinks for the other", "hit: shrinks", "grows"):
        assert word in picture.svg


@pytest.mark.slow
@pytest.mark.parametrize(("name", "runs", "malleable"), [("quick", 81, 5), ("full", 1_024, 2 * 12)])
def test_shipped_campaigns_are_of_replacement(name: str, runs: int, malleable: int) -> None:
    campaign = open_campaign(ROOT / f"campaigns/replacement/{name}.toml")
    assert campaign.kinds["simulation"].code == "replacement/report.py"
    assert len(campaign.distinct) == runs
    of = Counter(unit.grid for unit in campaign.units)
    seeds = len(
        {u.spec.source.seed for u in campaign.units if u.spec.workload.startswith("mixed#")}
    )
    assert of["malleable jobs"] == seeds * malleable
    assert of["moldable jobs"] == seeds * 5


BAD = {
    "seed beside seeds": ("seeds = [3, 1]", "seed = 1\nseeds = [3, 1]", "workloads.mixed.seed"),
    "no list": ("seeds = [3, 1]", "seeds = 3", "workloads.mixed.seeds"),
    "no seed": ("seeds = [3, 1]", "seeds = []", "workloads.mixed.seeds"),
    "no number": ("seeds = [3, 1]", 'seeds = ["x"]', "workloads.mixed.seed"),
    "below zero": ("seeds = [3, 1]", "seeds = [-1]", "workloads.mixed.seed"),
    "twice": ("seeds = [3, 1]", "seeds = [3, 3]", "workloads.mixed.seeds"),
    "a hash": ("[workloads.mixed]", '[workloads."mixed#3"]', "workloads.mixed#3"),
    "one seed of several": ('["mixed"]', '["mixed#3"]', "grid[0].workloads"),
    "another word": ('"workload"', '"jobs"', "grid[0].failures.seeds"),
    "unknown option": ("mix=mixed", "mixes=mixed", "workloads.mixed"),
    "unknown step": ("steps=local", "steps=locally", "policies"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_keys_are_refused_in_a_line(name: str, tmp_path: Path, capsys) -> None:
    old, new, told = BAD[name]
    assert old in FILE
    file = tmp_path / "bad.toml"
    file.write_text(FILE.replace(old, new, 1))
    with pytest.raises(SystemExit) as left:
        cli.main(["campaign", "run", str(file), "--results", str(tmp_path / "out")])
    assert left.value.code == 2
    error = capsys.readouterr().err
    assert told in error
    assert len(error.strip().splitlines()) == 1


def test_a_file_has_no_seed_for_the_failures(tmp_path: Path) -> None:
    (tmp_path / "jobs.json").write_text((ROOT / "workloads/toy.json").read_text())
    file = tmp_path / "bad.toml"
    file.write_text('[workloads.w]\nfile = "jobs.json"\n[[grid]]\nname = "g"\nworkloads = ["w"]\n'
                    'policies = ["baseline"]\n' + FAILURES)  # fmt: skip
    with pytest.raises(InputError, match=r"grid\[0\].failures.seeds"):
        open_campaign(file)
