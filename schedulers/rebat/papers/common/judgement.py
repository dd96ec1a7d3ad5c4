# SPDX-License-Identifier: Apache-2.0
"""Verdicts on claims: the direction of an effect, and the size of a published value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from rebat.results.intervals import Interval, spread

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
        return spread(self.estimate, _digits)

    @property
    def size(self) -> str:
        """The size verdicts as text, with the number of values per verdict if there are several."""
        if not self.sizes:
            return "not published"
        if len(self.sizes) == 1:
            return self.sizes[0]
        return _listed(self.sizes)


def _digits(value: float) -> str:
    """Return a number as text, with four decimals if it is below 1000, otherwise with none.

    >>> _digits(0.12345), _digits(15_000.0)
    ('0.1235', '15,000')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4f}"


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
