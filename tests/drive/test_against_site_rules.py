# SPDX-License-Identifier: Apache-2.0
"""Limits, orders by usage and fair share: a slow oracle, and relations between runs."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest

from rebat.core.jobs import Job
from tests.support.against_site_rules import Case, jobs, play, policy_of, run, schedule_of

SEEDS = range(40)


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_runs_have_the_schedules_of_the_oracle(first):
    for seed in range(first, first + 10):
        play(seed)


@pytest.mark.parametrize("seed", [106, 204, 446, 532, 586, 734])
def test_runs_that_once_differed_from_the_oracle(seed):
    """For example, users that first enter at one time, or an account of a rejected job."""
    assert not play(seed).startswith("differs")


def schedules(
    made: Iterable[Job], n_nodes: int, *policies: dict[str, str]
) -> list[tuple[list[tuple[str, int, int]], list[str]]]:
    """Return the schedules of these jobs under some policies."""
    return [schedule_of(run(tuple(made), n_nodes, policy_of(options))) for options in policies]


def owned(made: Iterable[Job], owners: Callable[[dict[str, Any]], dict[str, Any]]) -> list[Job]:
    """Return the jobs with other fields. The function returns them for the fields of a job."""
    return [msgspec.structs.replace(job, extra=owners(job.extra)) for job in made]


@pytest.mark.parametrize("seed", SEEDS)
def test_limits_that_no_job_reaches_change_nothing(seed):
    case = Case(seed)
    loose = ("user", "account", "queue", "user=a", "account=x:child=y", "user=b:account=x")
    limits = "+".join(f"{kind}:jobs=30:nodes={2 * case.n_nodes}" for kind in loose)
    without = {**case.options, "limits": ""}
    one, other = schedules(case.jobs, case.n_nodes, without, {**without, "limits": limits})
    assert one == other


@pytest.mark.parametrize("rest", ["size-age", "age*class", "-size"])
def test_one_user_runs_in_the_order_of_the_other_columns(rest):
    """The fair-share factor of the only user is 1 (fair tree)."""
    for seed in SEEDS:
        rng = random.Random(seed)
        n_nodes = rng.randint(2, 10)
        made = owned(jobs(rng, n_nodes), lambda extra: {**extra, "user": "a", "account": "x"})
        orders = [rest, f"100*fairshare+{rest}"]
        one, other = schedules(made, n_nodes, *({"order": order} for order in orders))
        assert one == other, seed


@pytest.mark.parametrize("rule", ["tree", "classic"])
def test_a_weight_of_zero_leaves_the_order_of_the_other_columns(rule):
    for seed in SEEDS:
        rng = random.Random(seed)
        n_nodes = rng.randint(2, 10)
        fair = {"order": "0*fairshare+size-age/2", "shares": "a=1+b=1", "fairshare_rule": rule}
        one, other = schedules(jobs(rng, n_nodes), n_nodes, {"order": "size-age/2"}, fair)
        assert one == other, seed


def declared(extra: dict[str, Any]) -> dict[str, Any]:
    """Return fields with one of the users a, b, c in one of the accounts x, y."""
    account = "x" if extra.get("account") == "x" else "y"
    return {**extra, "user": extra.get("user", "a"), "account": account}


@pytest.mark.parametrize("rule", ["tree", "classic"])
def test_only_the_ratio_of_shares_matters(rule):
    for seed in SEEDS:
        rng = random.Random(seed)
        n_nodes = rng.randint(2, 10)
        options = {"order": "fairshare", "fairshare_rule": rule, "half_life": "20"}
        texts = ["x=1(a=1+b=2+c=1)+y=3(a=0+b=1+c=2)", "x=4(a=2+b=4+c=2)+y=12(a=0+b=8+c=16)"]
        made = owned(jobs(rng, n_nodes), declared)
        one, other = schedules(made, n_nodes, *({**options, "shares": text} for text in texts))
        assert one == other, seed


@pytest.mark.parametrize("rule", ["tree", "classic"])
def test_one_account_of_all_users_has_the_order_of_no_account(rule):
    members = "a=1+b=1+c=1"
    for seed in SEEDS:
        rng = random.Random(seed)
        n_nodes = rng.randint(2, 10)
        made = owned(jobs(rng, n_nodes), lambda extra: {"user": extra.get("user", "a")})
        inside = owned(made, lambda extra: {**extra, "account": "x"})
        options = {"order": "fairshare", "fairshare_rule": rule, "half_life": "0"}
        (one,) = schedules(made, n_nodes, {**options, "shares": members})
        (other,) = schedules(inside, n_nodes, {**options, "shares": f"x=5({members})"})
        assert one == other, seed


@pytest.mark.parametrize("kind", ["account", "queue"])
def test_limits_of_accounts_and_queues_are_those_of_users(kind):
    for seed in SEEDS:
        rng = random.Random(seed)
        n_nodes = rng.randint(2, 10)
        made = owned(jobs(rng, n_nodes), lambda extra: {"user": extra.get("user", "a")})
        renamed = owned(made, lambda extra: {kind: extra["user"]})
        limits = f"user:jobs={rng.randint(1, 3)}+user=a:nodes={rng.randint(1, n_nodes)}"
        (one,) = schedules(made, n_nodes, {"limits": limits})
        (other,) = schedules(renamed, n_nodes, {"limits": limits.replace("user", kind)})
        assert one == other, seed
