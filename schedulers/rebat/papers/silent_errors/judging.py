# SPDX-License-Identifier: Apache-2.0
"""How a claim becomes a judgement: by a rule of numbers that is stated beside the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from rebat.papers.common.parts import Judgement
from rebat.papers.silent_errors.evidence import KINDS, LISTS, STALE, TRUE


class Rule(NamedTuple):
    """When a number is what a claim says, and the same in words."""

    words: str
    holds: Callable[[float], bool]


def above(bound: float) -> Rule:
    return Rule(f"above {bound:g}", lambda number: number > bound)


def below(bound: float) -> Rule:
    return Rule(f"below {bound:g}", lambda number: number < bound)


def between(low: float, high: float) -> Rule:
    return Rule(f"from {low:g} to {high:g}", lambda number: low <= number <= high)


def judged(
    source: str, claim: str, what: str, number: float, rule: Rule, paper: str, why: str = ""
) -> Judgement:
    """The verdict: ``what`` says how its number is made, ``why`` why the claim may not hold."""
    holds = rule.holds(number)
    text = f"{what}, {rule.words}"
    return Judgement(source, claim, text, number, holds, paper, why="" if holds else why)


def with_both(make: Callable[[str, str], Judgement | None]) -> Iterator[Judgement]:
    """A claim that hangs on the kind of reservations, judged with either.

    That it holds with stale ones alone is an experiment on why it does not with Algorithm 1's.

    Parameters
    ----------
    make : callable
        (kind of reservations, its words) -> a judgement, or None where not all was played.
    """
    found = {kept: one for kept, words in KINDS if (one := make(kept, words)) is not None}
    ours, stale = found.get(TRUE), found.get(STALE)
    if ours and stale and stale.holds and not ours.holds:
        why = f"It hangs on the reservations: with stale ones it is {stale.ours}, and holds."
        found[TRUE] = msgspec.structs.replace(ours, why=why)
    yield from found.values()


def of_each(
    heuristics: Sequence[str], make: Callable[[str, str, str], Judgement | None]
) -> Iterator[Judgement]:
    """A claim on each heuristic, with either kind of reservations where it has any.

    Parameters
    ----------
    heuristics : sequence of str
    make : callable
        (heuristic, kind of reservations, words for both) -> a judgement, or None where not all was
        played.
    """
    for name in heuristics:
        if name in LISTS[1:]:
            yield from with_both(partial(_named, make, name))
        elif (one := make(name, TRUE, name)) is not None:
            yield one


def _named(
    make: Callable[[str, str, str], Judgement | None], name: str, kept: str, words: str
) -> Judgement | None:
    return make(name, kept, f"{name} ({words})")
