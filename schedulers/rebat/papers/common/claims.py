# SPDX-License-Identifier: Apache-2.0
"""Claims of a paper as rows: a text, a number of ours, and the rule that the number must keep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf
from typing import Any, NamedTuple

import msgspec

from rebat.papers.common.parts import Judgement
from rebat.results.intervals import BySeed, Interval

ENOUGH_SEEDS = 5
"""With fewer, intervals are so wide that nearly any printed value lies in them."""


class Rule(NamedTuple):
    """Between which bounds a number must lie, and how that is put.

    The bounds are outside, unless the rule is ``closed``. ``whole``: the whole interval must lie
    between them, not only its centre.
    """

    words: str
    low: float = -inf
    high: float = inf
    closed: bool = False
    whole: bool = False

    def holds(self, estimate: Interval) -> bool:
        """Whether a number keeps the rule."""
        ends = (estimate.mean, estimate.mean)
        if self.whole and estimate.low is not None and estimate.high is not None:
            ends = (estimate.low, estimate.high)
        if self.closed:
            return self.low <= ends[0] and ends[1] <= self.high
        return self.low < ends[0] and ends[1] < self.high

    def undecided(self, estimate: Interval) -> bool:
        """Whether the interval reaches over a bound: other seeds might say the opposite."""
        if estimate.low is None or estimate.high is None:
            return False
        return any(estimate.low < bound < estimate.high for bound in (self.low, self.high))


class Contains(NamedTuple):
    """The interval must hold a printed value; judged with `ENOUGH_SEEDS`."""

    value: float
    words: str = "whose interval holds the printed value"

    def holds(self, estimate: Interval) -> bool:
        """Whether it does."""
        return estimate.holds(self.value)

    def undecided(self, estimate: Interval) -> bool:
        """Never: a wider interval holds more."""
        return False


def above(bound: float) -> Rule:
    """A rule with a lower bound."""
    return Rule(f"above {bound:g}", low=bound)


def below(bound: float) -> Rule:
    """A rule with an upper bound."""
    return Rule(f"below {bound:g}", high=bound)


def between(low: float, high: float) -> Rule:
    """A rule with both, which count as inside."""
    return Rule(f"from {low:g} to {high:g}", low, high, closed=True)


ABOVE, BELOW = above(0), below(0)


class Claim(msgspec.Struct, frozen=True):
    """What a paper says, or what is asked beyond it.

    Attributes
    ----------
    text, quantity, paper
        The statement, how its number is made, and where the paper says it. What stands in braces
        is filled in from what the claim is judged on.
    rule
        What the number must keep; a function of what it is judged on, where that gives the bounds.
    number
        (what the claim is judged on) -> a number of ours; None: it cannot be judged.
    about
        Whom it is about, where all claims of a group are not about the same.
    why
        What is known of why it does not hold, where it does not: a text, or a function of what it
        is judged on.
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
    """The claims that can be judged, in their order.

    Parameters
    ----------
    claims : iterable of Claim
    on : object
        What their numbers are made of.
    about : str
        Whom they are about, unless they say so themselves.
    words : mapping
        What fills the braces of their texts.
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
            why = f"{estimate.n} seeds do not decide: the interval reaches beyond the rule"
    elif rule.undecided(estimate):
        text += " (the seeds do not decide)"
    if not holds:
        reason = claim.why(on) if callable(claim.why) else claim.why
        why = "; ".join(filter(None, (why, reason)))
    subject, statement, condition, paper = (
        entry.format_map(words) if words else entry
        for entry in (claim.about or about, claim.text, text, claim.paper)
    )
    return Judgement(subject, statement, condition, estimate, holds, paper, why)


def share_of(part: str, *wholes: str) -> Callable[[Callable[[str], BySeed]], BySeed]:
    """A metric as a share of the sum of others, of seeds where that is not 0."""

    def read(metric: Callable[[str], BySeed]) -> BySeed:
        sums = [metric(name) for name in wholes]
        return {
            seed: value / whole
            for seed, value in metric(part).items()
            if all(seed in entry for entry in sums)
            and (whole := sum(entry[seed] for entry in sums))
        }

    return read
