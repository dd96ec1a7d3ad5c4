# SPDX-License-Identifier: Apache-2.0
"""Claims of a paper: a text, a number from rebat's runs, and the rule that judges it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf
from typing import Any, NamedTuple

import msgspec

from rebat.papers.common.parts import Judgement
from rebat.results.intervals import BySeed, Interval

ENOUGH_SEEDS = 5
"""With fewer seeds, intervals are so wide that they contain nearly any value in the paper."""


class Rule(NamedTuple):
    """A range for a number.

    Attributes
    ----------
    words
        The rule in words, as reports print it.
    low, high
        The bounds.
    closed
        Whether a number equal to a bound passes.
    whole
        Whether the whole interval must lie between the bounds, not only its centre.
    """

    words: str
    low: float = -inf
    high: float = inf
    closed: bool = False
    whole: bool = False

    def holds(self, estimate: Interval) -> bool:
        """Return whether an estimate passes the rule."""
        ends = (estimate.mean, estimate.mean)
        if self.whole and estimate.low is not None and estimate.high is not None:
            ends = (estimate.low, estimate.high)
        if self.closed:
            return self.low <= ends[0] and ends[1] <= self.high
        return self.low < ends[0] and ends[1] < self.high

    def undecided(self, estimate: Interval) -> bool:
        """Return whether the interval includes a bound: other seeds could reverse the verdict."""
        if estimate.low is None or estimate.high is None:
            return False
        return any(estimate.low < bound < estimate.high for bound in (self.low, self.high))


class Contains(NamedTuple):
    """The interval must contain the paper's value; judged with at least `ENOUGH_SEEDS` seeds."""

    value: float
    words: str = "the interval contains the published value"

    def holds(self, estimate: Interval) -> bool:
        """Return whether the interval contains the value in the paper."""
        return estimate.contains(self.value)

    def undecided(self, estimate: Interval) -> bool:
        """Return False: the rule uses the interval itself."""
        return False


def above(bound: float) -> Rule:
    """Return the rule of a lower bound, which does not pass itself."""
    return Rule(f"above {bound:g}", low=bound)


def below(bound: float) -> Rule:
    """Return the rule of an upper bound, which does not pass itself."""
    return Rule(f"below {bound:g}", high=bound)


def between(low: float, high: float) -> Rule:
    """Return the rule of two bounds, which both pass."""
    return Rule(f"from {low:g} to {high:g}", low, high, closed=True)


ABOVE, BELOW = above(0), below(0)


class Claim(msgspec.Struct, frozen=True):
    """A statement of a paper, or one beyond the paper, that our runs can support or refute.

    Functions take the subject of the claim: the object that `judge` passes as ``on``. Texts may
    contain fields in braces, which `judge` fills.

    Attributes
    ----------
    text
        The statement.
    quantity
        The definition of the number.
    rule
        The rule for the number, or a function that returns the rule.
    paper
        The place in the paper, with its printed values.
    number
        A function that returns our number; None if the claim cannot be judged.
    about
        The runs that the claim is about, if they differ within a group of claims.
    why
        The cause if the claim does not hold, as far as an experiment has shown it: a text, or a
        function that returns it.
    """

    text: str
    quantity: str
    rule: Rule | Contains | Callable[..., Rule]
    paper: str
    number: Callable[..., Interval | float | None]
    about: str = ""
    why: str | Callable[..., str] = ""


def judge(
    claims: Iterable[Claim], on: Any, about: str = "", words: Mapping[str, Any] = {}
) -> Iterator[Judgement]:
    """Judge claims in their order, and omit those that cannot be judged.

    Parameters
    ----------
    claims : iterable of Claim
    on : object
        The argument of the claims' functions.
    about : str
        The runs that the claims are about, for claims without ``about``.
    words : mapping
        Values of the fields in braces.
    """
    for claim in claims:
        estimate = claim.number(on)
        if isinstance(estimate, int | float):
            estimate = Interval(float(estimate))
        if estimate is None or (isinstance(claim.rule, Contains) and estimate.n < ENOUGH_SEEDS):
            continue
        rule = claim.rule(on) if callable(claim.rule) else claim.rule
        yield _judged(claim, rule, estimate, on, about, words)


def _judged(
    claim: Claim, rule: Rule | Contains, estimate: Interval, on: Any, about: str,
    words: Mapping[str, Any],
) -> Judgement:  # fmt: skip
    holds, why = rule.holds(estimate), ""
    text = ", ".join(filter(None, (claim.quantity, rule.words)))
    if isinstance(rule, Rule) and rule.whole:
        if not holds and rule.low < estimate.mean < rule.high:
            why = f"Not significant with {estimate.n} seeds: the interval includes a bound"
    elif rule.undecided(estimate):
        text += " (not significant)"
    if not holds:
        reason = claim.why(on) if callable(claim.why) else claim.why
        why = ". ".join(filter(None, (why, reason)))
    subject, statement, condition, paper = (
        entry.format_map(words) if words else entry
        for entry in (claim.about or about, claim.text, text, claim.paper)
    )
    return Judgement(subject, statement, condition, estimate, holds, paper, why)


def share_of(part: str, *wholes: str) -> Callable[[Callable[[str], BySeed]], BySeed]:
    """Return a function that computes a metric as a share of a sum.

    Seeds whose sum is 0 are skipped.
    """

    def read(metric: Callable[[str], BySeed]) -> BySeed:
        sums = [metric(name) for name in wholes]
        return {
            seed: value / whole
            for seed, value in metric(part).items()
            if all(seed in entry for entry in sums)
            and (whole := sum(entry[seed] for entry in sums))
        }

    return read
