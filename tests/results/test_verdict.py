# SPDX-License-Identifier: Apache-2.0
"""The first sentence of each comparison."""

from __future__ import annotations

from rebat.core.numbers import MINUS
from rebat.results.comparison import Runs, rows, verdict


def result(policies: dict[str, list[float]]) -> Runs[str]:
    """Return policies with a useful utilisation per seed; the mean flow is 100 times this."""
    seeds = Runs(list(policies))
    for policy, values in policies.items():
        for seed, value in enumerate(values):
            metrics: list[tuple[str, str | None, float]] = [("useful_utilisation", None, value)]
            seeds.add(seed, policy, [*metrics, ("flow_mean_s", "all", 100 * value)])
    return seeds


def said(seeds: Runs[str]) -> list[str]:
    return verdict(list(rows(seeds)), seeds).splitlines()


def test_a_policy_alone_has_its_values() -> None:
    assert said(result({"easy": [0.5]})) == [
        "easy: useful utilisation 50.00 %, mean flow 50 s (1 run, no interval)"
    ]


def test_each_other_policy_has_a_sentence() -> None:
    lines = said(result({"easy": [0.5], "sfsj": [0.51], "faps": [0.4]}))
    assert lines == [
        "sfsj against easy: useful utilisation +2.0 %, mean flow +2.0 % (1 run, no interval)",
        f"faps against easy: useful utilisation {MINUS}20.0 %, mean flow {MINUS}20.0 % (1 run, no "
        "interval)",
    ]


def test_few_seeds_have_no_interval() -> None:
    (line,) = said(result({"easy": [0.5, 0.6], "sfsj": [0.6, 0.7]}))
    assert "[" not in line
    assert line.endswith("(2 seeds, too few for an interval)")


def test_an_interval_around_no_change_is_not_significant() -> None:
    base = [0.5, 0.6, 0.55, 0.52, 0.58]
    (clear,) = said(result({"easy": base, "sfsj": [1.1 * v for v in base[:-1]] + [0.63]}))
    (unsure,) = said(result({"easy": base, "sfsj": [*base[1:], base[0]]}))
    assert "not significant" not in clear
    assert clear.endswith("(5 seeds)")
    assert "useful utilisation +10" not in unsure
    assert unsure.count("(not significant)") == 2


def test_of_many_policies_the_best_has_a_sentence() -> None:
    others = {f"p{number}": [0.5 + number / 100] for number in range(5)}
    lines = said(result({"easy": [0.5], **others}))
    assert lines[0] == "p4 has the highest useful utilisation of 6 policies."
    assert lines[1].startswith("p4 against easy: useful utilisation +8.0 %")
    (best,) = said(result({"easy": [0.9], **others}))
    assert (
        best
        == "easy has the highest useful utilisation of 6 policies: 90.00 % (1 run, no interval)"
    )


def test_zero_has_no_change() -> None:
    (line,) = said(result({"easy": [0.0], "sfsj": [0.1]}))
    assert line == "sfsj against easy: nothing to compare (1 run, no interval)"
