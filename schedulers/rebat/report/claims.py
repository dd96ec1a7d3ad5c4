# SPDX-License-Identifier: Apache-2.0
"""Claims of a paper, with two verdicts on each number of rebat: on its direction and its size.

The direction verdict compares rebat's interval with the range that the claim allows. The size
verdict compares the published value with rebat's interval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

import msgspec

from rebat.core.numbers import number, spread
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
    unit
        The unit of the number, for reports. The text is empty for shares and ratios.
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
    unit: str = ""


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
        [] if published is None else [place_of(estimate, published)], claim.own, claim.unit,
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


HOLDS, CONTRADICTED, UNDECIDED = "holds", "contradicted", "undecided"
TOO_FEW = "too few seeds"
"""Direction verdicts. A claim holds if rebat's entire interval is within the range that the claim
allows. It is contradicted if the entire interval is outside the range. Otherwise it is undecided.
Without an interval there is no verdict: there are too few seeds.
"""

INSIDE, NEAR, OUTSIDE = "inside", "near", "outside"
"""Size verdicts. A published value is inside if it lies in the interval of rebat's mean. It is near
if it lies outside the interval, but within the range of 95 % of single runs, because papers often
publish the value of a single run. Otherwise it is outside.
"""

Published = float | tuple[float, float]


def place_of(estimate: Interval, published: Published) -> str:
    """Return the size verdict of a published value.

    If a range is published, use the value of the range that is closest to the mean.

    >>> place_of(Interval(2.0, 1.5, 2.5, 9, (0.0, 4.0)), 3.5)
    'near'
    >>> place_of(Interval(2.0, 1.5, 2.5, 9, (0.0, 4.0)), (2.4, 3.5))
    'inside'
    """
    if estimate.low is None or estimate.high is None:
        return TOO_FEW
    low, high = published if isinstance(published, tuple) else (published, published)
    if estimate.low <= high and low <= estimate.high:
        return INSIDE
    near = estimate.single and estimate.single[0] <= high and low <= estimate.single[1]
    return NEAR if near else OUTSIDE


class Judgement(msgspec.Struct, frozen=True):
    """A claim and its verdict.

    Attributes
    ----------
    workload
        The runs that the claim is about: a workload, and the scenario if needed.
    claim
        The statement.
    rule
        The rule in words. ``direction`` depends only on the rule and on ``estimate``.
    estimate
        rebat's number with its interval. None for a group of published values.
    direction
        `HOLDS`, `CONTRADICTED`, `UNDECIDED` or `TOO_FEW`. The text is empty if there are only
        published values.
    paper
        The place in the paper, with its published values.
    why
        The reason why the claim does not hold, if an experiment has shown it.
    sizes
        The size verdict of each published value: `INSIDE`, `NEAR`, `OUTSIDE` or `TOO_FEW`.
    own
        Whether rebat, not the paper, makes the statement.
    unit
        The unit of the number.
    """

    workload: str
    claim: str
    rule: str
    estimate: Interval | None
    direction: str
    paper: str
    why: str = ""
    sizes: Sequence[str] = ()
    own: bool = False
    unit: str = ""

    @property
    def holds(self) -> bool:
        """Whether the claim holds."""
        return self.direction == HOLDS

    @property
    def number(self) -> float:
        """rebat's number without its interval. NaN for a group of published values."""
        return self.estimate.mean if self.estimate else float("nan")

    @property
    def ours(self) -> str:
        """rebat's number and its interval as text."""
        return spread(self.estimate, number.in_unit(self.unit))

    @property
    def size(self) -> str:
        """The size verdicts as text, with the number of values per verdict if there are several."""
        if not self.sizes:
            return "not published"
        if len(self.sizes) == 1:
            return self.sizes[0]
        return _listed(self.sizes)


def _counted(words: Sequence[str]) -> list[tuple[str, int]]:
    """Return each verdict and how often it occurs, in the order in which verdicts are defined."""
    order = (HOLDS, CONTRADICTED, UNDECIDED, INSIDE, NEAR, OUTSIDE, TOO_FEW)
    counts = Counter(words)
    return [(word, counts[word]) for word in order if counts[word]]


def summary_of(judgements: Sequence[Judgement]) -> list[str]:
    """Return the counts of verdicts as sentences.

    There are sentences for the paper's claims, published values, and rebat's statements. Claims and
    values that have too few seeds for a verdict are counted separately.

    >>> judged = Judgement("june", "a", "above 0", None, HOLDS, "Table 1", sizes=["near"])
    >>> few = Judgement("june", "b", "above 0", None, TOO_FEW, "Table 1")
    >>> summary_of([judged, few])
    ['Claims of the paper: 1 of 1 holds; 1 more has too few seeds.', 'Published values: 1 near.']
    >>> summary_of([few])
    ['Claims of the paper: 1 has too few seeds.']
    """
    claims = [j.direction for j in judgements if j.direction and not j.own]
    own = [j.direction for j in judgements if j.direction and j.own]
    sizes = [size for j in judgements for size in j.sizes]
    sentences = []
    for words, directions in (("Claims of the paper", claims), ("Statements of rebat", own)):
        if directions:
            sentences.append(f"{words}: {_split(directions, _of)}.")
    if sizes:
        sentences.insert(1, f"Published values: {_split(sizes, _listed)}.")
    return sentences or ["No claim could be judged."]


def _split(verdicts: Sequence[str], counts: Callable[[Sequence[str]], str]) -> str:
    """Return the counts of verdicts, and the number of claims without a verdict."""
    judged = [verdict for verdict in verdicts if verdict != TOO_FEW]
    few = len(verdicts) - len(judged)
    more = f"{few} {'more ' if judged else ''}{'has' if few == 1 else 'have'} {TOO_FEW}"
    return "; ".join([*([counts(judged)] if judged else []), *([more] if few else [])])


def _listed(sizes: Sequence[str]) -> str:
    return ", ".join(f"{n} {word}" for word, n in _counted(sizes))


def _of(directions: Sequence[str]) -> str:
    n, holds = len(directions), directions.count(HOLDS)
    others = [
        f"{count} {'is' if count == 1 else 'are'} {word}"
        for word, count in _counted(directions)
        if word != HOLDS
    ]
    return ", ".join([f"{holds} of {n} {'holds' if n == 1 else 'hold'}", *others])
