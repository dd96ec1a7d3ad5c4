# SPDX-License-Identifier: Apache-2.0
"""Records of a Slurm cluster with the rules of a site: what Slurm did, and what rebat does.

`scripts/record-rules.py` wrote each record in about 15 minutes, and describes the configurations.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from rebat.models.formula import COLUMNS, formula_of
from rebat.studies.calibration import design
from rebat.workloads.machine import names_in
from tests.support.pages import ROOT
from tests.support.slurm_rules import (
    CONFIGURATIONS,
    N_NODES,
    PERIOD_S,
    Calibrated,
    Sample,
    announced_s,
    calibrated,
    computations,
    computed_s,
    factors_at,
    imported,
    jobs_of,
    longer,
    ordered_pairs,
    rules_of,
    samples_of,
    simulated,
    starts_of,
    usage_at,
    value_of,
    weights_of,
    without_dependencies,
)


@pytest.fixture(params=CONFIGURATIONS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# ---- priorities


def test_slurm_computes_priorities_once_a_minute(name: str) -> None:
    times = [computed_s(name, sample) for sample in samples_of(name)]
    steps = np.diff(np.unique([time_s for time_s in times if time_s]))
    assert {*steps.tolist()} == {PERIOD_S}


def test_the_formula_has_the_priorities_of_slurm(name: str) -> None:
    """All priorities are equal. A job that was submitted later has no age yet."""
    formula, weights = formula_of(rules_of(name).options["order"]), weights_of(name)
    differences = []
    for sample in samples_of(name):
        at_s = computed_s(name, sample)
        for row in sample.priorities if at_s else ():
            job = jobs_of(name)[row.job]
            table = {
                "age": max(0, at_s - int(job["Eligible"])),
                "size": int(job["NNodes"]),
                "nodes": N_NODES,
                "partition": weights[job["Partition"]],
                "fairshare": sample.factors.get(row.user, 0.0),
            }
            values = np.array([[table.get(column, 0.0) for column in COLUMNS]])
            differences.append(row.priority - int(formula.values(values)[0]))
    assert (len(differences), {*differences}) == (N_PRIORITIES[name], {0})


N_PRIORITIES = {"unenforced": 583, "fair": 541, "limits": 387, "maintenance": 1022}


# ---- fair share


def charged(name: str) -> dict[int, dict[str, float]]:
    """Return the usage of users if only the time of running jobs is charged, by computation.

    The time of a job after the last computation before its end is not charged.
    """
    decay = 1 - 0.693 / HALF_LIFE_S
    usage, rows = Counter[str](), dict[int, dict[str, float]]()
    for last_s, at_s in pairwise([0, *computations(name)]):
        usage = Counter({user: used * decay ** (at_s - last_s) for user, used in usage.items()})
        for job in starts_of(name):
            if job.start_s < at_s < job.end_s:
                run_s = at_s - max(last_s, job.start_s)
                usage[job.user] += job.nodes * run_s * decay**run_s
        rows[at_s] = dict(usage)
    return rows


HALF_LIFE_S = 240


def test_without_enforcement_slurm_does_not_charge_the_last_minute_of_a_job() -> None:
    """Slurm has about a third of the usage, and users are in another order at times."""
    name = "unenforced"
    usage, differences, equal, ratios = charged(name), [], [], []
    for sample in samples_of(name):
        if at_s := computed_s(name, sample):
            differences += [abs(used - sample.usages[u]) for u, used in usage[at_s].items()]
            equal.append(is_equal(name, sample, at_s))
            ratios.append(sum(sample.usages.values()) / sum(usage_at(name, at_s).values()))
    assert round(median(ratios), 2) == 0.31
    near = [float(np.mean(np.array(differences) <= most)) for most in (1, 10, 40)]
    assert near == pytest.approx([0.83, 0.90, 1], abs=0.01)
    assert (sum(equal), len(equal)) == (21, 39)


def is_equal(name: str, sample: Sample, at_s: int) -> bool:
    """Return whether rebat's factors of all users are those of Slurm."""
    factors = factors_at(name, at_s)
    return all(round(factor, 6) == sample.factors[user] for user, factor in factors.items())


def test_factors_of_fair_tree() -> None:
    rows = [(s, at_s) for s in samples_of("fair") if (at_s := computed_s("fair", s))]
    equal = [is_equal("fair", sample, at_s) for sample, at_s in rows]
    assert (sum(equal), len(equal)) == (38, 38)


def test_factors_of_classic_fair_share() -> None:
    name, differences = "maintenance", []
    for sample in samples_of(name):
        if at_s := computed_s(name, sample):
            factors = factors_at(name, at_s)
            differences += [abs(factors[user] - sample.factors[user]) for user in factors]
    assert (round(float(np.median(differences)), 3), round(max(differences), 3)) == (0.012, 0.12)


def test_usage_of_slurm_is_smaller_than_that_of_rebat() -> None:
    """Slurm decays the usage of a period by the entire period."""
    name, ratios = "maintenance", {}
    for sample in samples_of(name):
        at_s = computed_s(name, sample)
        if at_s and at_s not in ratios and sample.time_s - at_s < 8:
            usage = usage_at(name, at_s)
            ratios[at_s] = sum(sample.usages.values()) / sum(usage.values())
    assert [round(f(list(ratios.values())), 2) for f in (min, median, max)] == [0.88, 0.89, 0.92]


def test_factors_of_new_users() -> None:
    """With classic fair share, they have the factor 1."""
    for name, factor in {"unenforced": 0, "fair": 0, "maintenance": 1}.items():
        factors = samples_of(name)[0].factors
        assert {factors[user] for user in ("u1", "u2", "u3", "u4")} == {factor}


# ---- limits


def test_no_start_exceeds_a_limit() -> None:
    """The largest numbers of jobs and nodes are equal to the limits."""
    most: dict[str, list[int]] = {}
    for start in starts_of("limits"):
        for kind in ("user", "account"):
            group = getattr(start, kind)
            running = [
                job.nodes
                for job in starts_of("limits")
                if getattr(job, kind) == group and job.start_s <= start.start_s < job.end_s
            ]
            largest = most.setdefault(group, [0, 0])
            largest[:] = max(largest[0], len(running)), max(largest[1], sum(running))
    assert [most[user][0] for user in ("u1", "u2", "u3", "u4")] == [4, 3, 4, 4]
    assert [most[account][1] for account in ("phys", "chem")] == [10, 8]


# ---- maintenance


def test_no_job_starts_that_could_still_run_in_the_maintenance() -> None:
    """From the announcement on, jobs on its nodes end before it by their time limits."""
    name = "maintenance"
    (window,) = rules_of(name).reservations
    closed = {*names_in(window.nodes)}
    jobs = [
        job for job in starts_of(name) if closed & {*names_in(jobs_of(name)[job.id]["NodeList"])}
    ]
    assert round(window.begin_s - announced_s(name)) == 299
    before = [job for job in jobs if announced_s(name) < job.start_s < window.begin_s]
    slack_s = min(window.begin_s - job.start_s - 60 * job.limit_min for job in before)
    after_s = min(job.start_s - window.end_s for job in jobs if job.start_s >= window.begin_s)
    assert (len(before), slack_s, after_s) == (44, 0, 0)


# ---- the order of starts


ORDERS = {
    "fair": {"priorities": "", "without fair share": "fairshare", "by submission": "-submitted"},
    "limits": {"priorities": "", "by submission": "-submitted"},
    "maintenance": {
        "priorities": "", "without fair share": "fairshare", "by submission": "-submitted",
    },
}  # fmt: skip


def test_starts_are_in_the_order_of_the_priorities() -> None:
    """A pair is a job that started, and a job that could have started instead."""
    pairs = {
        name: {
            text: ordered_pairs(
                name,
                value_of(name, order_without(name, without)),
                rules_of(name).options.get("limits", ""),
            )
            for text, without in orders.items()
        }
        for name, orders in ORDERS.items()
    }
    name = "limits"
    pairs[name]["without limits"] = ordered_pairs(name, value_of(name, order_of(name)))
    assert pairs == PAIRS
    value = value_of(name, order_of(name))
    assert ordered_pairs(name, value, rules_of(name).options["limits"], busy_s=1) == (19, 21)


PAIRS = {
    "fair": {
        "priorities": (259, 259), "without fair share": (208, 235), "by submission": (201, 268),
    },
    "limits": {"priorities": (87, 97), "by submission": (74, 115), "without limits": (298, 455)},
    "maintenance": {
        "priorities": (932, 936), "without fair share": (842, 926), "by submission": (858, 953),
    },
}  # fmt: skip


def order_of(name: str) -> str:
    return rules_of(name).options["order"]


def order_without(name: str, without: str) -> str:
    """Return the order of a record, without one factor, or another order."""
    order = order_of(name)
    return without if without.startswith("-") else re.sub(rf"\b{without or '-'}=\d+,?", "", order)


# ---- the calibration

RULED = ("easy:rules=all", "baseline:rules=all")
NEAREST = {"fair": "easy", "limits": "easy", "maintenance": "baseline"}
"""The nearer planning with all rules."""

TITLES = {
    "batsched-fcfs": "strict queue order",
    "baseline": "conservative backfilling",
    "easy": "EASY",
    "easy:order=shortest": "EASY, shortest job first",
    "easy:order=smallest": "EASY, smallest job first",
    "easy:order=largest": "EASY, largest job first",
    "greedy": "no reservations",
    "easy:rules=all": "EASY with all rules",
    "baseline:rules=all": "conservative backfilling with all rules",
}
RECORDS = ("fair", "limits", "maintenance")


def rules_off(name: str) -> dict[str, str]:
    """Return the nearer planning without one rule, by what is left out."""
    options, nearest, rows = rules_of(name).options, NEAREST[name], {}
    stated = [rule for rule in ("order", "limits") if rule in options]
    stated += ["reservations"] if rules_of(name).reservations else []
    for rule in stated if len(stated) > 1 else ():
        rows[rule] = f"{nearest}:rules={'+'.join(other for other in stated if other != rule)}"
    if "fairshare" in options["order"]:
        order = order_without(name, "fairshare").replace(",", ":")
        others = "+".join(other for other in stated if other != "order")
        rules = f"rules={others}," if others else ""
        rows["fair share"] = f"{nearest}:{rules}order_period=1min,order={order}"
    return rows


@pytest.fixture(scope="module")
def calibrations(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Calibrated]:
    folder = tmp_path_factory.mktemp("rules")
    return {
        name: calibrated(
            name, imported(name, folder), (*design.POLICIES, *RULED, *rules_off(name).values())
        )
        for name in RECORDS
    }


@pytest.fixture(scope="module")
def independent(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Calibrated]:
    """The nearer planning with all rules, without dependencies and limits of arrays."""
    folder = tmp_path_factory.mktemp("independent")
    return {
        name: calibrated(
            name, without_dependencies(imported(name, folder)), [f"{NEAREST[name]}:rules=all"]
        )
        for name in RECORDS[1:]
    }


def table_of(name: str, result: Calibrated, independent: Calibrated | None) -> list[str]:
    """Return the rows of the table in the page."""
    best = min(design.POLICIES, key=lambda policy: result.compared[policy].distance)
    shown = dict.fromkeys(("batsched-fcfs", "easy", "baseline", best, *RULED))
    nearest = f"{NEAREST[name]}:rules=all"
    title = TITLES[nearest]
    rows = {TITLES[policy]: result.compared[policy] for policy in shown}
    for left_out, policy in rules_off(name).items():
        rows[f"{title}, without {LEFT_OUT[left_out]}"] = result.compared[policy]
    if independent:
        rows[f"{title}, without dependencies"] = independent.compared[nearest]
    return [
        f"| {title} | {row.distance_text} | {row.correlation:.2f} | {row.same_order:.2f} |"
        for title, row in rows.items()
    ]


LEFT_OUT = {
    "order": "priorities",
    "limits": "limits",
    "reservations": "the reservation",
    "fair share": "fair share",
}


def test_with_all_rules_the_distance_is_smaller(calibrations: dict[str, Calibrated]) -> None:
    """The nearest configuration is significantly nearer than the policies without rules."""
    as_near = {}
    for name, result in calibrations.items():
        nearest = min(result.compared.values(), key=lambda row: row.distance)
        assert nearest.policy == f"{NEAREST[name]}:rules=all"
        as_near[name] = [policy for policy in design.POLICIES if result.compared[policy].as_near]
        ruled, easy = nearest, result.compared["easy"]
        assert ruled.same_order > easy.same_order
        assert (ruled.correlation > easy.correlation) == (name != "fair")
    assert as_near == {"fair": [], "limits": [], "maintenance": ["batsched-fcfs"]}
    ratio = calibrations["maintenance"].compared["batsched-fcfs"].farther_text
    assert f"in the record with maintenance: {ratio.removeprefix('x ')}." in page()


def test_the_page_states_these_tables(
    calibrations: dict[str, Calibrated], independent: dict[str, Calibrated]
) -> None:
    for name in RECORDS:
        table = "\n".join(table_of(name, calibrations[name], independent.get(name)))
        assert table in (ROOT / PAGE).read_text(), f"{name}:\n{table}"


def test_the_order_is_sensitive_to_small_changes(
    calibrations: dict[str, Calibrated], tmp_path: Path
) -> None:
    """Jobs run up to 0.2 s longer. The shares are those of pairs in the same order as before."""
    shares = {}
    for name, result in calibrations.items():
        policy, jobs = f"{NEAREST[name]}:rules=all", imported(name, tmp_path)
        others = [simulated(longer(jobs, seed, 0.2), [policy])[policy] for seed in range(3)]
        shares[name] = [round(result.order(policy, other), 2) for other in others]
    assert shares == SHARES


SHARES = {
    "fair": [0.77, 0.74, 0.74],
    "limits": [0.87, 0.87, 0.86],
    "maintenance": [0.73, 0.73, 0.74],
}


# ---- the page

PAGE = "docs/how-to/calibrate.md"


def page() -> str:
    return " ".join((ROOT / PAGE).read_text().split())


def test_the_page_states_these_numbers() -> None:
    text = page()
    sampled = sum(N_PRIORITIES[name] for name in RECORDS)
    assert f"{sampled:,} sampled priorities of pending jobs (`sprio`) are equal" in text
    fair, limits, classic = (PAIRS[name] for name in ("fair", "limits", "maintenance"))
    assert f"all {fair['priorities'][0]} pairs (fair tree)" in text
    for row in (fair["by submission"], limits["without limits"], classic["by submission"]):
        assert "{} of {}".format(*row) in text
    assert "{} of {} (classic fair share)".format(*classic["priorities"]) in text
    assert "{} of {} (limits)".format(*limits["priorities"]) in text
    assert "{} of {}. If limits".format(*limits["by submission"]) in text
    low, high = ([f(SHARES[name]) for name in RECORDS] for f in (min, max))
    assert f"starts {low[0]:.0%}".replace("%", " %") in text
    words = (
        f"{high[0]:.0%}, {low[1]:.0%} to {high[1]:.0%} and {low[2]:.0%} to {high[2]:.0%} "
        "of the pairs"
    )
    assert words.replace("%", " %") in text
