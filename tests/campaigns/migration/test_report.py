# SPDX-License-Identifier: Apache-2.0
"""The report of job migration: its content, and the campaigns that have this report."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from rebat.campaign.opening import open_campaign
from rebat.campaign.reporting import write_report
from rebat.core.numbers import MINUS, decimal, points, share, spread
from rebat.figures.torus import cores_at_instants
from rebat.policies.presets import preset
from rebat.report.runs_index import RunIndex, Setting
from rebat.results.intervals import ANY_SEED, Interval
from rebat.runs.labels import ScenarioLabel
from rebat.runs.single import simulate
from rebat.shipped.campaigns.migration import beyond, claims, report, runs
from rebat.shipped.campaigns.migration.report import first_compaction, printed_text
from rebat.shipped.campaigns.migration.runs import (
    DERIVED,
    WAITING_FACTOR,
    MigrationCase,
    Runs,
    case_of,
    index_of,
    named,
)
from rebat.workloads.generate import generator
from tests.support.campaigns import campaign_of

ROOT = Path(__file__).parents[3]

DAY = "nodes=4,hours=3,length_s=900"
FILE = f"""
report = "migration/report.py"
[workloads.load-50]
generator = "cluster-day:load=50,{DAY}"
seeds = [0, 1]
[workloads.load-75]
generator = "cluster-day:load=75,{DAY}"
seeds = [0, 1]
[workloads.wide-75]
generator = "cluster-day:load=75,parallelism=8,{DAY}"
seeds = [0, 1]
[workloads.eternal-75]
generator = "cluster-day:load=75,eternal=64,{DAY}"
seeds = [0, 1]
[workloads.boxes]
generator = "torus-load:load=70,nodes=64,days=1"

[[grid]]
name = "compaction"
workloads = ["load-50", "load-75"]
policies = ["cluster", "compaction:power=10/100/300", "compaction:targets=several,period=300"]
cores_per_node = 16
window = "0:3h"
[[grid]]
name = "priorities"
workloads = ["wide-75"]
policies = ["priorities:react=requeue", "priorities"]
cores_per_node = 16
window = "0:3h"
[[grid]]
name = "drains"
workloads = ["load-75"]
policies = ["cluster", "cluster:drain=wait"]
cores_per_node = 16
window = "0:3h"
operations = "drains.jsonl"
[[grid]]
name = "eternal"
workloads = ["eternal-75", "load-75"]
policies = ["tiers"]
cores_per_node = 16
window = "0:3h"
[[grid]]
name = "energy"
workloads = ["load-50"]
policies = [
    "cluster:power=10/100/300", "cluster:react=sleep,power=10/100/300",
    "compaction:react=compaction+sleep,power=10/100/300",
]
cores_per_node = 16
window = "0:3h"
[[grid]]
name = "defragmentation"
workloads = ["boxes"]
policies = ["torus-first:torus=4x4x4", "torus-first:torus=4x4x4,react=defragment"]
[[grid]]
name = "worn"
workloads = ["boxes"]
policies = ["baseline", "sfsj", "baseline:react=replacement", "baseline:react=foresee"]
[grid.failures]
law = "weibull"
scale = "300h"
shape = 8
begin = "3000h"
seeds = [0, 1]
"""
DRAINS = """{"timestamp": 3600, "type": "drain", "nodes": "0"}
{"timestamp": 7200, "type": "undrain", "nodes": "0"}
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("migration")
    (folder / "drains.jsonl").write_text(DRAINS)
    return campaign_of(folder, FILE)


@pytest.fixture(scope="module")
def evidence(ran) -> Runs:
    return index_of(ran[1] / "results.parquet")


@pytest.mark.slow
def test_the_page_has_every_part(ran, tmp_path) -> None:
    for path in write_report(open_campaign(ran[0]), ran[1], tmp_path):
        text = path.read_text()
        for told in (
            "Job migration by checkpoint and restart: evaluation repeated",
            "Share of node time in mixed nodes",
            "Node time at 50 % load",
            "Cost of checkpoints and restarts",
            "Two partitions, 75 % load",
            "load-75: nodes emptied for maintenance",
            "load-75: a load with eternal jobs",
            "Energy of a day",
            "boxes: defragmentation of a torus",
            "boxes, worn: proactive migration",
            "every variant of compaction lowers the share of mixed nodes",
            "T * H_16 = 3.3807 T",
            "Is defragmentation useful on boxes?",
            "Is proactive migration better than node stealing and replacement on boxes, worn?",
            "means over 2 seeds",
        ):
            assert told in text, told
        assert "(inside)" not in text
        html = path.suffix == ".html"
        assert ("a compaction empties a node, 30 min after the start" in text) == html
        # Figures 3 and 4, two partitions, and the cores
        assert text.count("<svg") == (5 if html else 0)


def test_a_row_says_what_the_runs_say(evidence) -> None:
    """The table has means and paired differences, computed here from the metrics."""
    table = next(iter(report.tables(evidence)))
    load = runs.figure_4(evidence)[50]
    before, after = (
        [evidence.values(*run, "node_states_mixed")[seed] for seed in (0, 1)]
        for run in (load.base, load.others[0])
    )
    fall = np.array(after) - before
    assert table.rows[1][:3] == ["50 %, compaction", table.rows[1][1], "41.7 %"]
    assert table.rows[1][1].startswith(f"{share(np.mean(after))}")
    assert table.rows[1][3] == points(fall.mean())


def test_groups_are_found_by_their_policies(evidence) -> None:
    assert [*runs.figure_4(evidence)] == [50, 75]
    assert [*runs.table_2(evidence)] == [75]
    (drain,) = runs.drained(evidence)
    assert (drain.base.case, drain.others[0].case) == (runs.WAITING, runs.WITHOUT)
    (eternal,) = runs.eternal(evidence)
    assert eternal.base.setting.workload == "load-75"
    (energy,) = runs.sleeping(evidence)
    assert [*beyond.energy_runs(energy)] == [
        "no node sleeps", "sleeping", "compaction and sleeping", beyond.AWAKE,
    ]  # fmt: skip
    (boxes,) = runs.defragmented(evidence)
    assert boxes.base.case.axes == (("torus", "4x4x4"),)
    (worn,) = runs.foreseen(evidence)
    assert [*named([worn.base, *worn.others])] == [
        "baseline", "stealing", "replacement", "proactive migration",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "case", "label"),
    [
        ("cluster", MigrationCase("cluster"), "cluster"),
        ("sfsj", MigrationCase("sfsj"), "stealing"),
        (
            "compaction:period=900,react=compaction+sleep",
            MigrationCase("compaction", ("compaction", "sleep"), (("period", "900"),)),
            "compaction and sleeping (every 15 min)",
        ),
        (
            "baseline:react=foresee,ahead=21600,survival=0.99",
            MigrationCase("baseline", ("foresee",), (("ahead", "21600"), ("survival", "0.99"))),
            "proactive migration (6 h ahead, survival=0.99)",
        ),
    ],
)
def test_policies_are_read_as_campaigns_write_them(
    policy: str, case: MigrationCase, label: str
) -> None:
    assert case_of(policy) == case
    assert case_of(policy).label == label


def _told(
    numbers: dict[tuple[str, str, str], dict[str, list[float]]], times: int = 5, **scenario
) -> Runs:
    """Return runs from (grid, workload, policy) -> metric -> values of seeds, repeated."""
    rows = []
    for (grid, workload, policy), metrics in numbers.items():
        setting, case = Setting(grid, workload, ScenarioLabel(**scenario)), case_of(policy)
        for metric, values in (metrics or {"none": [0.0]}).items():
            of = "all" if metric.startswith("flow_") else ""
            for seed, value in enumerate(values * times):
                rows.append((setting, case, metric, of, (ANY_SEED, seed), value))
    return RunIndex(rows, DERIVED)


def _verdicts(evidence: Runs) -> dict[tuple[str, str], bool]:
    return {(one.workload, one.claim): one.holds for one in claims.judgements(evidence)}


def _mixed(*policies: tuple[str, list[float]], load: int = 50) -> dict:
    return {
        ("g", f"load-{load}", policy): {
            "node_states_mixed": values,
            "node_states_full": [0.5 * (1 - value) for value in values],
            "node_states_empty": [0.5 * (1 - value) for value in values],
        }
        for policy, values in policies
    }


def test_claims_on_compaction_follow_from_their_numbers() -> None:
    """A claim fails if one variant of compaction raises the share of mixed nodes slightly."""
    numbers = _mixed(
        ("cluster", [0.5, 0.6]), ("compaction", [0.4, 0.4]), ("compaction:period=9", [0.42, 0.5])
    )
    found = _verdicts(_told(numbers))
    assert found["load 50 %", "every variant of compaction lowers the share of mixed nodes"]
    assert found["load 50 %", "every variant of compaction raises the share of full nodes"]
    numbers["g", "load-50", "compaction:period=9"]["node_states_mixed"] = [0.62, 0.52]
    found = _verdicts(_told(numbers))
    assert not found["load 50 %", "every variant of compaction lowers the share of mixed nodes"]


def test_middle_loads_are_held_against_each_end() -> None:
    numbers = {}
    for load, with_ in ((25, 0.3), (50, 0.2), (75, 0.2), (90, 0.15)):
        numbers |= _mixed(("cluster", [0.4]), ("compaction", [with_]), load=load)
    found = _verdicts(_told(numbers))
    claim = "compaction reduces the share of mixed nodes more at 50 and 75 % than at"
    assert found["load 25 %", f"{claim} 25 %"]
    assert not found["load 90 %", f"{claim} 90 %"]


def test_what_migrations_cost_is_made_of_core_seconds() -> None:
    metrics = {
        "migrations_count": [100.0, 0.0], "migrations_cost": [36_000.0, 0.0],
        "platform_total": [1e7, 1e7], "window_first_s": [0.0, 0.0],
        "window_last_s": [43_200.0, 86_400.0],
    }  # fmt: skip
    told = _told({("g", "load-50", "compaction"): metrics, ("g", "load-50", "cluster"): {}})
    run = runs.figure_4(told)[50].others[0]
    few = _told({("g", "load-50", "compaction"): metrics}, times=1)
    assert few.values(*run, "migrations_a_day") == {0: 200.0, 1: 0.0}
    assert few.values(*run, "core_h_a_day") == {0: 20.0, 1: 0.0}
    assert few.values(*run, "cost_of_one") == {0: 360.0}
    assert few.values(*run, "cost_share") == {0: 0.0036, 1: 0.0}
    claim = "load-50", "compaction: checkpoints and restarts cost little"
    assert _verdicts(told)[claim]
    metrics["migrations_cost"] = [300_000.0, 0.0]
    told = _told({("g", "load-50", "compaction"): metrics, ("g", "load-50", "cluster"): {}})
    assert not _verdicts(told)[claim]


def test_priorities_are_judged_at_75_alone() -> None:
    states = {f"partition_states_{p}_{s}": [0.3] for p in ("low", "high") for s in runs.STATES}
    more = states | {"partition_states_high_full": [0.4], "partition_states_high_mixed": [0.2]}
    numbers = {}
    for load in (75, 90):
        numbers["g", f"wide-{load}", "priorities:react=requeue"] = states
        numbers["g", f"wide-{load}", "priorities"] = more
    found = _verdicts(_told(numbers))
    about = "two partitions, load 75 %"
    assert found == {
        (about, "migration raises the share of full nodes in the high partition"): True,
        (about, "migration lowers the share of mixed nodes in the high partition"): True,
    }
    assert len([*report.tables(_told(numbers))]) == 2


def test_waiting_is_held_against_table_1() -> None:
    """Waiting 660 s costs ten times a migration of 16 tasks; on the third day no node empties."""
    emptied = {"drains_emptied": [8.0, 7.0, 0.0]}
    numbers = {
        ("g", "w", "cluster:drain=wait"): {"drains_mean_s": [670.0, 680.0, 0.0]} | emptied,
        ("g", "w", "cluster"): {"drains_max_s": [0.0, 0.0, 0.0]} | emptied,
    }
    found = _verdicts(_told(numbers, operations="o"))
    assert [*found.values()] == [True, False]
    numbers["g", "w", "cluster:drain=wait"]["drains_mean_s"] = [6700.0, 6800.0, 0.0]
    assert [*_verdicts(_told(numbers, operations="o")).values()] == [True, True]
    (sentence,) = report.answers(_told(numbers, operations="o"))
    assert "With migration the node is empty immediately" in sentence
    assert "Waiting takes 112.5" in sentence
    assert pytest.approx(3.3807, abs=1e-4) == WAITING_FACTOR


def test_what_of_the_energy_sleeping_alone_saves() -> None:
    kwh = {"cluster": 10.0, "cluster:react=sleep": 7.0, "compaction:react=compaction+sleep": 6.0}
    numbers = {("g", "w", policy): {"energy_kwh": [value]} for policy, value in kwh.items()}
    (sentence,) = report.answers(_told(numbers))
    text = sentence.replace("\N{NO-BREAK SPACE}", " ")
    assert f"only sleeping {MINUS}30.0 %, sleeping and compaction {MINUS}40.0 %" in text
    assert "only sleeping achieves 75 %" in text
    claim = "w", "compaction saves energy if empty nodes sleep"
    assert _verdicts(_told(numbers))[claim]
    numbers["g", "w", "compaction:react=compaction+sleep"]["energy_kwh"] = [8.0]
    assert not _verdicts(_told(numbers))[claim]


def test_proactive_migration_is_held_against_all_others() -> None:
    used = {"baseline": 0.7, "sfsj": 0.8, "baseline:react=replacement": 0.72,
            "baseline:react=foresee": 0.75}  # fmt: skip
    numbers = {
        ("g", "w", policy): {"useful_utilisation": [value, value + 0.01]}
        for policy, value in used.items()
    }
    found = _verdicts(_told(numbers, failure_model="weibull"))
    better = "proactive migration has a higher useful utilisation than"
    assert found["w, g", f"{better} baseline"]
    assert found["w, g", f"{better} replacement"]
    assert not found["w, g", f"{better} stealing"]
    (sentence,) = report.answers(_told(numbers, failure_model="weibull"))
    assert "\N{MINUS SIGN}5.00 points compared with stealing" in sentence
    assert "No job was moved" in sentence


def test_published_values_are_marked_if_they_are_close() -> None:
    values = {seed: float(seed + 1) for seed in range(5)}
    few = {seed: values[seed] for seed in range(4)}
    assert printed_text(values, 3.0, "{:g}".format) == "3 (inside)"
    assert printed_text(values, 5.0, "{:g}".format) == "5 (near)"
    assert printed_text(values, 9.0, "{:g}".format) == printed_text(few, 9.0, "{:g}".format) == "9"


def test_published_values_are_judged_in_groups() -> None:
    numbers = _mixed(("cluster", [0.53, 0.54, 0.535, 0.53, 0.54]), ("compaction", [0.3] * 5))
    judged = {group.claim: group for group in claims.published_values(_told(numbers, 1))}
    first = judged["without migration 53.5 % of node time is mixed"]
    assert (first.direction, first.sizes) == ("", ["inside"])
    fall = judged["compaction: the share of mixed nodes changes by \N{MINUS SIGN}11.8 points"]
    assert (fall.sizes, fall.rule) == (["outside"], "1 published values: 50 % is outside")
    few = _mixed(("cluster", [0.53, 0.54]), ("compaction", [0.3, 0.3]))
    sizes = [size for group in claims.published_values(_told(few, 1)) for size in group.sizes]
    assert {*sizes} == {"too few seeds"}


def test_an_interval_is_left_out_if_all_seeds_agree() -> None:
    agreed, single = Interval(0.5, 0.5, 0.5, 9), Interval(0.5)
    assert spread(agreed, decimal) == spread(single, decimal) == "0.5"
    wide = Interval(0.5, 0.4, 0.6, 9)
    assert spread(wide, decimal) == "0.50 [0.40, 0.60]"
    assert spread(None, decimal) == ""


def test_seeds_leave_a_claim_undecided_or_are_too_few() -> None:
    """The mixed share falls by 0.15 on average, but rises for two of five seeds."""
    numbers = _mixed(("cluster", [0.5] * 5), ("compaction", [0.1, 0.2, 0.3, 0.55, 0.6]))
    claim = "every variant of compaction lowers the share of mixed nodes"
    (judged,) = (j for j in claims.judgements(_told(numbers, 1)) if j.claim == claim)
    assert judged.direction == "undecided"
    assert judged.rule == "mean of the smallest change over the variants (1), below 0"
    few = _mixed(("cluster", [0.5] * 4), ("compaction", [0.1, 0.2, 0.1, 0.2]))
    (judged,) = (j for j in claims.judgements(_told(few, 1)) if j.claim == claim)
    assert judged.direction == "too few seeds"


def test_defragmentation_and_eternal_jobs_are_judged_by_their_changes() -> None:
    used = {"torus-first": 0.7, "torus-first:react=defragment": 0.75}
    numbers = {("g", "boxes", policy): {"useful_utilisation": [value]} for policy, value in
               used.items()}  # fmt: skip
    assert _verdicts(_told(numbers))["boxes", "defragmentation raises the useful utilisation"]
    for turnaround, holds in ((1005.0, True), (1200.0, False)):
        numbers = {
            ("g", workload, "tiers"): {"useful_utilisation": [use], "turnaround_normal_mean_s": [t]}
            for workload, use, t in (("load-75", 0.7, 1000.0), ("eternal-75", 0.9, turnaround))
        }
        found = _verdicts(_told(numbers))
        assert found["eternal-75", "eternal jobs raise the useful utilisation"]
        assert found["eternal-75", "eternal jobs do not delay normal jobs"] == holds


def test_a_compaction_empties_one_node_and_moves_nobody_else() -> None:
    day = generator("cluster-day:load=50,hours=1,nodes=4")(0)
    found = first_compaction(simulate(day, preset("compaction"), cores_per_node=16))
    before, after = (one.reshape(4, 16) for one in (found.before, found.after))
    emptied = (before >= 0).any(axis=1) & ~(after >= 0).any(axis=1)
    assert emptied.sum() == 1
    assert {*before[emptied][before[emptied] >= 0]} == {*found.jobs}
    for job in {*before[before >= 0]} | {*after[after >= 0]}:
        assert (before == job).sum() == (after == job).sum()
        assert job in found.jobs or ((before == job) == (after == job)).all()


def test_a_run_without_compactions_has_no_such_instant() -> None:
    day = generator("cluster-day:load=20,hours=1,nodes=2")(0)
    assert first_compaction(simulate(day, preset("cluster"), cores_per_node=16)) is None


def test_cores_are_drawn_as_they_are_held() -> None:
    before = np.array([7, 7, 8, -1, 9, -1, -1, -1])
    after = np.array([7, 7, 8, 9, -1, -1, -1, -1])
    svg = cores_at_instants({"just before": before, "just after": after}, 4, [9])
    assert svg.count(">9</text>") == 2
    assert svg.count(">8</text>") == 0
    assert "just before" in svg and "just after" in svg
    fills = re.findall(r"fill: (#[0-9a-f]{6}); stroke: #cccccc", svg)
    assert len(fills) == 16
    assert (fills.count("#ffffff"), len({*fills})) == (4 + 4, 4)
    assert fills[0] == fills[1] == fills[8] == fills[9]
    assert fills[4] == fills[11]


@pytest.mark.parametrize(("name", "runs"), [("quick", 90), ("full", 450)])
def test_shipped_campaigns_are_of_migration(name: str, runs: int) -> None:
    campaign = open_campaign(ROOT / f"campaigns/migration/{name}.toml")
    assert campaign.kinds["simulation"].code == "migration/report.py"
    assert len(campaign.distinct) == runs
