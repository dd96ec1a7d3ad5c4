# SPDX-License-Identifier: Apache-2.0
"""Records of a Slurm cluster with the rules of a site: what Slurm did, and what rebat does.

`scripts/record-rules.py` wrote each record in about 15 minutes, and describes the configurations.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from rebat.policies.formula import COLUMNS, formula_of
from rebat.workloads.machine import names_in
from tests.support.slurm_rules import (
    CONFIGURATIONS,
    N_NODES,
    PERIOD_S,
    Sample,
    announced_s,
    computations,
    computed_s,
    factors_at,
    jobs_of,
    ordered_pairs,
    rules_of,
    samples_of,
    starts_of,
    value_of,
    weights_of,
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


N_PRIORITIES = {"unenforced": 583, "limits": 387}


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
    usage, differences, equal = charged(name), [], []
    for sample in samples_of(name):
        if at_s := computed_s(name, sample):
            differences += [abs(used - sample.usages[u]) for u, used in usage[at_s].items()]
            equal.append(is_equal(name, sample, at_s))
    assert (round(float(np.median(differences)), 1), round(max(differences))) == (0.0, 0)
    assert (sum(equal), len(equal)) == (0, 0)


def is_equal(name: str, sample: Sample, at_s: int) -> bool:
    """Return whether rebat's factors of all users are those of Slurm."""
    factors = factors_at(name, at_s)
    return all(round(factor, 6) == sample.factors[user] for user, factor in factors.items())


def test_factors_of_fair_tree() -> None:
    rows = [(s, at_s) for s in samples_of("fair") if (at_s := computed_s("fair", s))]
    equal = [is_equal("fair", sample, at_s) for sample, at_s in rows]
    assert (sum(equal), len(equal)) == (0, 0)


def test_factors_of_classic_fair_share() -> None:
    name, differences = "maintenance", []
    for sample in samples_of(name):
        if at_s := computed_s(name, sample):
            factors = factors_at(name, at_s)
            differences += [abs(factors[user] - sample.factors[user]) for user in factors]
    assert (round(float(np.median(differences)), 3), round(max(differences), 3)) == (0, 0)


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


def test_jobs_that_started_before_the_announcement_continue() -> None:
    """A job that starts later ends before the maintenance, by its walltime, or avoids its nodes."""
    (window,) = rules_of("maintenance").reservations
    announcement_s = announced_s("maintenance")
    at_begin = []
    for job in starts_of("maintenance"):
        meets = job.start_s < window.end_s and job.start_s + 60 * job.limit_min > window.begin_s
        nodes = {*names_in(jobs_of("maintenance")[job.id]["NodeList"])}
        if meets and nodes & {*names_in(window.nodes)}:
            assert job.start_s <= announcement_s
            at_begin.append(job.end_s > window.begin_s)
    assert (len(at_begin), sum(at_begin)) == (0, 0)


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


PAIRS: dict[str, dict[str, tuple[int, int]]] = {}


def order_of(name: str) -> str:
    return rules_of(name).options["order"]


def order_without(name: str, without: str) -> str:
    """Return the order of a record, without one factor, or another order."""
    order = order_of(name)
    return without if without.startswith("-") else re.sub(rf"\b{without or '-'}=\d+,?", "", order)
