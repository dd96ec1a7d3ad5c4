# SPDX-License-Identifier: Apache-2.0
"""What a report is made of: judgements, tables, pictures, and how it writes numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from rebat.results.intervals import Interval, spread
from rebat.runs.unit import Unit


class Judgement(msgspec.Struct, frozen=True):
    """One claim of the paper held against our runs; ``workload`` says under which scenario.

    ``holds`` follows from ``estimate`` by ``rule``; nothing else was looked at. ``why`` is a
    sentence on where ours lies, if it lies elsewhere and an experiment has shown the cause.
    """

    workload: str
    claim: str
    rule: str
    estimate: Interval
    holds: bool
    paper: str
    why: str = ""

    @property
    def number(self) -> float:
        """What the rule was held against, without its interval."""
        return self.estimate.mean

    @property
    def ours(self) -> str:
        """The number for people, with its interval."""
        estimate = self.estimate
        if estimate.half is None and estimate.low is not None and estimate.high is not None:
            return f"{_digits(estimate.mean)} [{_digits(estimate.low)}, {_digits(estimate.high)}]"
        return spread(estimate, _digits)


def _digits(value: float) -> str:
    """Four decimals, but not of what has thousands.

    >>> _digits(0.12345), _digits(15_000.0)
    ('0.1235', '15,000')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4f}"


class Table(msgspec.Struct, frozen=True):
    """A table: which of the paper's it stands for, a heading, columns and rows of texts.

    ``note`` says in what unit it is, and on how much it rests.
    """

    paper: str
    title: str
    columns: list[str]
    rows: list[list[str]]
    note: str = ""


class Key(msgspec.Struct, frozen=True):
    """An entry of a legend; ``look`` is line, dashed, dotted, band, dot or diamond."""

    name: str
    colour: str
    look: str = "line"


class Picture(msgspec.Struct, frozen=True):
    """A figure as SVG: which of the paper's it stands for, and a caption.

    ``svg`` may hold several panels one after the other, which the page sets beside each other where
    there is room; ``key`` is their legend. ``note`` as of a table.
    """

    paper: str
    title: str
    svg: str
    note: str = ""
    key: Sequence[Key] = ()


BOXES_NOTE = (
    "Boxes are over the failure scenarios. No point is left out (the paper leaves out those of "
    "its Table 10)."
)


class Report(msgspec.Struct, frozen=True):
    """Everything that the page shows.

    Attributes
    ----------
    title, lead : str
        The heading, and a paragraph on what was run and how numbers are given.
    judgements : sequence of Judgement
    tables : sequence of Table
    pictures : sequence of Picture
    provenance : sequence of str
        Lines on where the results come from.
    remarks : sequence of str
        Paragraphs after the summary.
    subject : str
        The heading of the first column of judgements.
    figures_note : str
    unfinished : str
        How far a campaign is, if it has units left.
    claims : bool
        Whether the report judges what a paper claims.
    findings : sequence of str
        Sentences of the summary, for a report without claims.
    """

    title: str
    lead: str
    judgements: Sequence[Judgement]
    tables: Sequence[Table]
    pictures: Sequence[Picture]
    provenance: Sequence[str]
    remarks: Sequence[str] = ()
    subject: str = "workload"
    figures_note: str = BOXES_NOTE
    unfinished: str = ""
    claims: bool = True
    findings: Sequence[str] = ()

    @property
    def verdict(self) -> str:
        """How many claims hold."""
        n = len(self.judgements)
        return f"{n - len(self.failing)} of {n} claims hold" if n else "no claim could be judged"

    @property
    def failing(self) -> list[Judgement]:
        """The claims that do not hold."""
        return [judgement for judgement in self.judgements if not judgement.holds]


def seeds_text(counts: Iterable[int]) -> str:
    """On how many seeds numbers rest, those apart that rest on none.

    >>> seeds_text([5, 4, 5, 0]), seeds_text([5, 5]), seeds_text([])
    ('4 to 5 seeds', '5 seeds', 'no seed')
    >>> seeds_text([1])
    '1 seed'
    """
    some = sorted({*counts} - {0})
    if not some:
        return "no seed"
    if some == [1]:
        return "1 seed"
    return f"{some[0]} seeds" if len(some) == 1 else f"{some[0]} to {some[-1]} seeds"


# ---- how numbers are written


def percent(value: float | None) -> str:
    """A share for people."""
    return "" if value is None else f"{value:.2%}"


def share(value: float) -> str:
    """A share with one decimal."""
    return f"{value:.1%}"


def change(value: float) -> str:
    """A relative difference."""
    return f"{value:+.1%}"


def points(value: float) -> str:
    """A difference of shares."""
    return f"{100 * value:+.2f}"


def number(value: float | None) -> str:
    """A count for people."""
    return "" if value is None else f"{value:.1f}"


def signed(value: float) -> str:
    """A difference of counts."""
    return f"{value:+.1f}"


def hours(value: float) -> str:
    """Seconds as hours."""
    return f"{value / 3600:.1f}"


class ReportMaker(NamedTuple):
    """A report of simulations.

    Attributes
    ----------
    report : callable
        Makes it from the results table, tables, pictures and lines of provenance.
    tables : bool
        Whether it shows the tables of the workloads.
    pictures : callable
        Further pictures, from the units.
    """

    report: Callable[[Path, Sequence[Table], Sequence[Picture], Sequence[str]], Report]
    tables: bool = False
    pictures: Callable[[Sequence[Unit]], Iterable[Picture]] = lambda units: ()
