# SPDX-License-Identifier: Apache-2.0
"""Priority rules: their order, for arrays and for one job at a time."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from rebat.core.attempts import Attempt
from rebat.core.errors import InputError
from rebat.core.units import to_us
from rebat.policies.queue_order import PRIORITY_RULES, QUEUE_ORDERS, bound, priority_rule, ranks

TIMES, SIZES = [30, 10, 20, 10], [1, 8, 5, 6]
ORDERS = {
    "LPT": [0, 2, 1, 3],
    "SPT": [1, 3, 2, 0],
    "HPA": [1, 3, 2, 0],
    "LPA": [0, 2, 3, 1],
    "LA": [2, 1, 3, 0],
    "SA": [0, 3, 1, 2],
    "LJF": [1, 3, 0, 2],  # jobs of at least 6 of 10 processors are large; small jobs by index
}


def job_key(name: str, time: int, size: int, job: int, *, n_procs: int, seed: int = 0):
    """Return the sorting key of one job: the key of the rule, then the job index."""
    return int(priority_rule(name)(time, size, job, n_procs, seed)), job


@pytest.mark.parametrize("rule", ORDERS)
def test_orders(rule):
    rank = ranks(rule, TIMES, SIZES, n_procs=10)
    assert np.argsort(rank).tolist() == ORDERS[rule]


def test_every_rule_has_an_expected_order():
    assert {*ORDERS, "RANDOM"} == set(PRIORITY_RULES)


@pytest.mark.parametrize("rule", PRIORITY_RULES)
def test_one_job_at_a_time_gives_the_same_order(rule):
    rng = np.random.default_rng(4)
    times, sizes = rng.integers(1, 9, 60), rng.integers(1, 9, 60)
    keys = [
        job_key(rule, int(times[job]), int(sizes[job]), job, n_procs=8, seed=3) for job in range(60)
    ]
    order = sorted(range(60), key=keys.__getitem__)
    assert np.argsort(ranks(rule, times, sizes, n_procs=8, seed=3)).tolist() == order


def test_random_places_depend_on_seed_and_job_only():
    ones = np.ones(1000, np.int64)
    first = ranks("RANDOM", ones, ones, n_procs=4, seed=1)
    assert first.tolist() == ranks("RANDOM", 2 * ones, ones, n_procs=9, seed=1).tolist()
    assert first.tolist() != ranks("RANDOM", ones, ones, n_procs=4, seed=2).tolist()
    early = ranks("RANDOM", ones[:9], ones[:9], n_procs=4, seed=1)
    assert np.argsort(first[:9]).tolist() == np.argsort(early).tolist()
    assert abs(np.corrcoef(first, np.arange(1000))[0, 1]) < 0.1


def test_unknown_rules_list_the_choices():
    with pytest.raises(InputError, match=r"unknown priority rule 'FIFO' .expected one of: HPA, LA"):
        ranks("FIFO", [1], [1], n_procs=1)


def test_areas_beyond_64_bits():
    with pytest.raises(InputError, match="64 bits"):
        ranks("LA", [1 << 50], [1 << 20], n_procs=1 << 20)


QUEUED_TIMES, QUEUED_SIZES, QUEUED_CLASSES = [30, 10, 20, 12], [2, 5, 8, 6], [0, 2, 0, 1]
QUEUED = {
    "fcfs": [0, 1, 2, 3],
    "fcfs-by-id": [0, 1, 2, 3],
    "shortest": [1, 3, 2, 0],
    "largest": [2, 3, 1, 0],
    "smallest": [0, 1, 3, 2],
    "priority": [1, 3, 0, 2],
    "lpt": [0, 2, 3, 1],
    "spt": [1, 3, 2, 0],
    "hpa": [2, 3, 1, 0],
    "lpa": [0, 1, 3, 2],
    "la": [2, 3, 0, 1],
    "sa": [1, 0, 3, 2],
    "ljf": [2, 3, 0, 1],
}


@pytest.mark.parametrize("name", sorted(QUEUE_ORDERS))
def test_each_name_of_a_queue_order_means_its_rule(name: str) -> None:
    key = bound(QUEUE_ORDERS[name], SimpleNamespace(n_nodes=10), 0, 3)
    attempts = []
    queued = zip(QUEUED_TIMES, QUEUED_SIZES, QUEUED_CLASSES, strict=True)
    for job, (time, size, priority_class) in enumerate(queued):
        serial = job + 1
        attempt = Attempt(str(job), str(job), serial, serial, 0, size, to_us(time), 0, 0)
        attempts.append(msgspec.structs.replace(attempt, priority_class=priority_class))
    order = [int(attempt.id) for attempt in sorted(attempts, key=key)]
    if name == "random":
        keys = [job_key("RANDOM", 1, 1, job, n_procs=10, seed=3) for job in range(4)]
        assert order == sorted(range(4), key=keys.__getitem__) != sorted(range(4))
    else:
        assert order == QUEUED[name]
