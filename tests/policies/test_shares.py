# SPDX-License-Identifier: Apache-2.0
"""Fair share: decay of usage, Slurm's classic algorithm and its fair tree."""

from __future__ import annotations

import math
import random

import pytest

from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload
from rebat.core.traits import Traits
from rebat.core.units import to_us
from rebat.policies.presets import preset
from rebat.policies.shares import Share, Shares, read_shares
from rebat.runs.single import simulate

DAY = to_us(86_400)


def used(shares: Shares, account: str, user: str, nodes: int, begin_us: int, end_us: int) -> None:
    """Let a job of a user hold nodes."""
    traits = Traits(user=user, account=account)
    shares.hold(traits, nodes, begin_us)
    shares.hold(traits, -nodes, end_us)


def test_usage_halves_in_each_half_life() -> None:
    shares, traits = Shares(half_life_us=DAY), Traits(user="ann")
    used(shares, "", "ann", 10, 0, 1)  # 10 node-microseconds
    for days in range(5):
        assert shares.usage_s(traits, 1 + days * DAY) == pytest.approx(1e-5 / 2**days, rel=1e-6)


def test_usage_of_a_running_job_tends_to_the_nodes_times_the_mean_life() -> None:
    shares, traits = Shares(half_life_us=DAY), Traits(user="ann")
    shares.hold(traits, 4, 0)
    # integral of 4 * 2**(-t/day) over one day, and over all time
    assert shares.usage_s(traits, DAY) == pytest.approx(4 * 86_400 / math.log(2) / 2)
    assert shares.usage_s(traits, 60 * DAY) == pytest.approx(4 * 86_400 / math.log(2))


def test_decay_by_steps_of_five_minutes_tends_to_the_same_usage() -> None:
    """Slurm: usage is charged and decayed every PriorityCalcPeriod. Here it is continuous."""
    rng, step, raw = random.Random(3), 300.0, 0.0
    shares, traits = Shares(half_life_us=DAY), Traits(user="ann")
    at_us, running = 0, 0
    for _ in range(2000):
        more = rng.randint(-running, 8 - running)
        shares.hold(traits, more, at_us)
        running += more
        raw = (raw + running * step) * 0.5 ** (step / 86_400)
        at_us += to_us(step)
    assert shares.usage_s(traits, at_us) == pytest.approx(raw, rel=0.002)


def test_without_decay_usage_is_the_node_time() -> None:
    shares = Shares()
    used(shares, "phys", "ann", 3, to_us(10), to_us(20))
    assert shares.usage_s(Traits(user="ann", account="phys"), to_us(1e6)) == 30


EXAMPLE = "A=40(B=30(u1=1)+C=10(u2=1+u3=1))+D=60(E=25(u4=1)+F=35(u5=1))"
"""Slurm, "Classic Fairshare Algorithm", section "Example", figure 3."""


def example(rule: str) -> Shares:
    """Return the accounts of Slurm's example: u1 has used 20, u2 25, u4 25, the others 30 %."""
    shares = Shares(f"{EXAMPLE}+rest=0(u6=1)", rule=rule)
    for account, user, percent in (("B", "u1", 20), ("C", "u2", 25), ("E", "u4", 25)):
        used(shares, account, user, percent, 0, 1000)
    used(shares, "rest", "u6", 30, 0, 1000)
    return shares


def test_classic_factors_of_the_example_of_slurm() -> None:
    shares = example("classic")
    expected = {("B", "u1"): 0.408479, ("C", "u2"): 0.022097, ("C", "u3"): 0.125,
                ("E", "u4"): 0.5, ("F", "u5"): 0.749154}  # fmt: skip
    for (account, user), factor in expected.items():
        traits = Traits(user=user, account=account)
        assert shares.factor(traits, 1000) == pytest.approx(factor, abs=2e-5)


def test_fair_tree_ranks_users_by_the_level_of_their_accounts() -> None:
    # Level of D: 0.6/0.25, of A: 0.4/0.45, of rest: 0. Within D, F has no usage. Within A,
    # B: (30/40)/(20/45) = 1.69, C: (10/40)/(25/45) = 0.45. Within C, u3 has no usage.
    shares = example("tree")
    order = [("F", "u5"), ("E", "u4"), ("B", "u1"), ("C", "u3"), ("C", "u2"), ("rest", "u6")]
    for rank, (account, user) in zip(range(6, 0, -1), order, strict=True):
        assert shares.factor(Traits(user=user, account=account), 1000) == rank / 6


def test_fair_tree_handles_ties_like_slurm() -> None:
    """Section "Ties": equal users share a rank, and equal accounts merge their members."""
    shares = Shares("p=1(a=1+b=1)+q=1(c=3+d=1)+r=1(e=1)")
    used(shares, "r", "e", 8, 0, 10)
    used(shares, "p", "a", 1, 0, 10)
    used(shares, "q", "c", 1, 0, 10)
    factors = {
        user: shares.factor(Traits(user=user, account=account), 10)
        for account, user in (("p", "a"), ("p", "b"), ("q", "c"), ("q", "d"), ("r", "e"))
    }
    # p and q have the same level. b and d have no usage; then c (3/4), a (1/2); r is last.
    assert factors == {"b": 1.0, "d": 1.0, "c": 3 / 5, "a": 2 / 5, "e": 1 / 5}


def test_a_user_with_the_level_of_an_account_has_the_rank_of_its_first_user() -> None:
    shares = Shares("solo=1+p=1(a=1+b=1)")
    used(shares, "p", "b", 1, 0, 10)
    used(shares, "", "solo", 1, 0, 10)
    factors = [
        shares.factor(Traits(user=user, account=account), 10)
        for account, user in (("", "solo"), ("p", "a"), ("p", "b"))
    ]
    assert factors == [1.0, 1.0, 1 / 3]


@pytest.mark.parametrize("rule", ["tree", "classic"])
def test_users_with_the_share_of_their_parent_have_equal_factors(rule: str) -> None:
    shares = Shares("p=1(a=parent+b=parent)+q=1(c=1)", rule=rule)
    used(shares, "p", "a", 4, 0, 10)
    used(shares, "q", "c", 2, 0, 10)
    a, b, c = (
        shares.factor(Traits(user=user, account=account), 10)
        for account, user in (("p", "a"), ("p", "b"), ("q", "c"))
    )
    assert a == b < c
    if rule == "classic":
        assert a == 2 ** -((4 / 6) / 0.5)


@pytest.mark.parametrize("rule", ["tree", "classic"])
def test_accounts_with_the_share_of_their_parent_are_left_out(rule: str) -> None:
    nested = Shares("p=parent(a=1+r=parent(b=2))+c=1", rule=rule)
    flat = Shares("a=1+b=2+c=1", rule=rule)
    for shares, accounts in ((nested, ("p", "r", "")), (flat, ("", "", ""))):
        for nodes, user, account in zip((3, 4, 1), "abc", accounts, strict=True):
            used(shares, account, user, nodes, 0, 10)
    for user, account in (("a", "p"), ("b", "r"), ("c", "")):
        expected = flat.factor(Traits(user=user), 10)
        assert nested.factor(Traits(user=user, account=account), 10) == pytest.approx(expected)


def test_unknown_users_and_accounts_have_one_share() -> None:
    shares = Shares("phys=1(ann=1)")
    used(shares, "phys", "ann", 5, 0, 10)
    assert shares.factor(Traits(user="new", account="chem"), 10) == 1.0
    assert shares.factor(Traits(user="ann", account="phys"), 10) == 0.5


def test_shares_are_read_or_refused() -> None:
    assert read_shares("a=1+b=2(c=0.5)") == {
        "a": Share(1, {}),
        "b": Share(2, {"c": Share(0.5, {})}),
    }
    for text in ("a", "a=x", "a=1+", "a=1(b=1", "a=1)b", "a=1+a=2", "=1", "a=1(b=1)c=1", "a=-1"):
        with pytest.raises(InputError, match="invalid shares"):
            read_shares(text)


@pytest.mark.parametrize("rule", ["tree", "classic"])
def test_users_with_more_usage_wait_longer(rule: str) -> None:
    # ann fills the machine until 100 s. Then her job and an equal one of bo wait.
    rows = [("ann", 0, 100), ("ann", 1, 50), ("bo", 2, 50)]
    jobs = tuple(
        Job(str(n), 4, to_us(at), to_us(run), f"d{run}", {"user": user})
        for n, (user, at, run) in enumerate(rows)
    )
    profiles = {f"d{run}": {"type": "delay", "delay": run} for *_, run in rows}
    load = Workload("w", 4, jobs, profiles)
    order = {}
    policies = (
        f"easy:order=fairshare,fairshare_rule={rule}", "easy:order=-usage",
        "easy:partitions=a:0-3:order=-usage,half_life=1d",
    )  # fmt: skip
    for policy in ("easy", *policies):
        result = simulate(load, preset(policy))
        starts = result.rows.column("first_start").tolist()
        order[policy] = dict(zip(result.rows.column("job_id"), starts, strict=True))
    assert order.pop("easy") == {"0": 0, "1": 100, "2": 150}
    assert all(starts == {"0": 0, "2": 100, "1": 150} for starts in order.values())
