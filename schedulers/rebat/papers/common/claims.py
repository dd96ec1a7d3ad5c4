# SPDX-License-Identifier: Apache-2.0
"""Claims of a paper, with two verdicts on each number of rebat: on its direction and its size.

The direction verdict compares rebat's interval with the range that the claim allows. The size
verdict compares the published value with rebat's interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

import msgspec

from rebat.papers.common.judgement import (
    CONTRADICTED,
    HOLDS,
    INSIDE,
    TOO_FEW,
    UNDECIDED,
    Judgement,
    place_of,
)
from rebat.results.intervals import BySeed, Interval, exact_number, interval


class Rule(NamedTuple):
    """The range that a claim allows for a number.

    Attributes
    ----------
    words
        The rule in words, for reports.
    low, high
        The bounds.
    closed
        Whether the bounds are part of the range.
    """

    words: str
    low: float = -inf
    high: float = inf
    closed: bool = False

    def verdict(self, estimate: Interval) -> str:
        """Return the direction verdict. It is `HOLDS` if the entire interval is within bounds."""
        if estimate.low is None or estimate.high is None:
            return TOO_FEW
        sides = {self._side(estimate.low), self._side(estimate.high)}
        if len(sides) > 1:
            return UNDECIDED
        return HOLDS if sides == {0} else CONTRADICTED

    def _side(self, value: float) -> int:
        """Return -1 for a number below the bounds, 1 for one above, and 0 for one within."""
        if self.closed and value in (self.low, self.high):
            return 0
        return (value >= self.high) - (value <= self.low)


def above(bound: float) -> Rule:
    """Return a rule that allows numbers above a bound."""
    return Rule(f"above {bound:g}", low=bound)


def below(bound: float) -> Rule:
    """Return a rule that allows numbers below a bound."""
    return Rule(f"below {bound:g}", high=bound)


def between(low: float, high: float) -> Rule:
    """Return a rule that allows numbers from ``low`` to ``high``, including both bounds."""
    return Rule(f"from {low:g} to {high:g}", low, high, closed=True)


ABOVE, BELOW = above(0), below(0)


class Claim(msgspec.Struct, frozen=True):
    """A statement of a paper or of rebat that simulations can support or contradict.

    The functions have one argument, the subject of the claim. It is the argument ``on`` of `judge`.
    Texts may contain fields in braces, which `judge` fills.

    Attributes
    ----------
    text
        The statement.
    quantity
        The definition of the number.
    rule
        The range that the claim allows, or a function that returns the range. None if the claim is
        only a published value.
    paper
        The place in the paper, with its published values.
    number
        A function that returns rebat's number, or None if the claim cannot be judged. A number that
        is not an `Interval` counts as exact.
    about
        The runs that the claim is about, if they differ from the other claims of the group.
    why
        The reason why the claim does not hold, if an experiment has shown the reason: a text, or a
        function that returns the text.
    published
        The published value or range in the unit of the number, or a function that returns it. None
        if no value is published.
    own
        Whether rebat, not the paper, makes the statement.
    """

    text: str
    quantity: str
    rule: Rule | Callable[..., Rule] | None
    paper: str
    number: Callable[..., Interval | float | None]
    about: str = ""
    why: str | Callable[..., str] = ""
    published: float | tuple[float, float] | Callable[..., Any] | None = None
    own: bool = False


def judge(
    claims: Iterable[Claim], on: Any, about: str = "", words: Mapping[str, Any] = {}
) -> Iterator[Judgement]:
    """Yield the judgements of claims, in order. Leave out claims that cannot be judged.

    Parameters
    ----------
    on : object
        The subject of the claims, which their functions get as argument.
    about : str
        The runs that the claims are about, for claims without their own ``about``.
    words : mapping
        Values of the fields in braces.
    """
    for claim in claims:
        number = claim.number(on)
        if number is not None:
            estimate = number if isinstance(number, Interval) else exact_number(float(number))
            yield _judged(claim, estimate, on, about, words)


def _judged(
    claim: Claim, estimate: Interval, on: Any, about: str, words: Mapping[str, Any]
) -> Judgement:
    rule = claim.rule(on) if callable(claim.rule) else claim.rule
    why = claim.why(on) if callable(claim.why) else claim.why
    published = claim.published(on) if callable(claim.published) else claim.published
    direction = rule.verdict(estimate) if rule else ""
    text = ", ".join(filter(None, (claim.quantity, rule.words if rule else "")))
    subject, statement, condition, paper = (
        entry.format_map(words) if words else entry
        for entry in (claim.about or about, claim.text, text, claim.paper)
    )
    return Judgement(
        subject, statement, condition, estimate, direction, paper,
        why if direction in (CONTRADICTED, UNDECIDED) else "",
        [] if published is None else [place_of(estimate, published)], claim.own,
    )  # fmt: skip


def compared(
    about: str, text: str, paper: str, numbers: Mapping[str, tuple[Interval | None, float]]
) -> Judgement:
    """Return one judgement of a group of published values, with a size verdict for each value.

    Parameters
    ----------
    about : str
        The runs.
    text : str
        The statement.
    paper : str
        The place of the statement in the paper.
    numbers : mapping
        For each label, rebat's interval and the published value. Values without runs are left out.
    """
    places = {
        label: place_of(ours, published) for label, (ours, published) in numbers.items() if ours
    }
    others = [f"{label} is {place}" for label, place in places.items() if place != INSIDE]
    rule = f"{len(places)} published values{': ' if others else ''}{', '.join(others)}"
    return Judgement(about, text, rule, None, "", paper, sizes=[*places.values()])


def extreme(
    pick: Callable[..., Interval], samples: Sequence[BySeed], distance_from: float | None = None
) -> Interval | None:
    """Return the largest or smallest of several means, with its interval.

    Return None if there are no values. The interval is wider than usual, so that the intervals of
    all means are correct together with 95 % confidence.

    Parameters
    ----------
    samples : sequence of mapping
        For each mean, its values by seed.
    distance_from : float, optional
        If set, the distance of a mean from this number is compared instead of the mean.
    """
    filled = [values for values in samples if values]
    means = [mean for values in filled if (mean := interval(values, among=len(filled)))]
    key = (lambda m: m.mean) if distance_from is None else (lambda m: abs(m.mean - distance_from))
    return pick(means, key=key) if means else None


def share_of(part: str, *wholes: str) -> Callable[[Callable[[str], BySeed]], BySeed]:
    """Return a function that divides the metric ``part`` by the sum of other metrics, by seed.

    Seeds for which the sum is 0 are left out.
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
