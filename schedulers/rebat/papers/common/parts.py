# SPDX-License-Identifier: Apache-2.0
"""The parts of a report: judgements, tables, pictures, and the format of numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from rebat.results.intervals import Interval, spread
from rebat.runs.unit import Unit


class Judgement(msgspec.Struct, frozen=True):
    """A claim of the paper and the verdict from rebat's runs.

    Attributes
    ----------
    workload
        The runs that the claim is about: a workload, and its scenario if needed.
    claim
        The statement.
    rule
        The rule in words; ``holds`` depends on ``rule`` and ``estimate`` alone.
    estimate
        rebat's number with its interval.
    holds
        Whether the claim holds.
    paper
        The place in the paper, with its published values.
    why
        The cause if the claim does not hold and an experiment has shown the cause.
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
        """rebat's number without its interval."""
        return self.estimate.mean

    @property
    def ours(self) -> str:
        """rebat's number and its interval as text."""
        estimate = self.estimate
        if estimate.half is None and estimate.low is not None and estimate.high is not None:
            return f"{_digits(estimate.mean)} [{_digits(estimate.low)}, {_digits(estimate.high)}]"
        return spread(estimate, _digits)


def _digits(value: float) -> str:
    """Format a number with four decimals, or none from 1000 on.

    >>> _digits(0.12345), _digits(15_000.0)
    ('0.1235', '15,000')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4f}"


class Table(msgspec.Struct, frozen=True):
    """A table of texts.

    ``paper`` names the corresponding table of the paper. ``note`` states the unit and the number
    of seeds.
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
    """A figure as SVG.

    ``paper`` names the corresponding figure of the paper, ``title`` is the caption, ``key`` the
    legend. ``svg`` may contain several panels, which the page places in a row if they fit.
    ``note`` states the unit and the number of seeds.
    """

    paper: str
    title: str
    svg: str
    note: str = ""
    key: Sequence[Key] = ()


BOXES_NOTE = (
    "Boxes are over the failure scenarios. All points are included (the paper excludes those of "
    "its Table 10)."
)


_PARTS = re.compile(r", (?![^()]*\))")
"""Where the parts of a subject end: commas outside of parentheses."""


class Report(msgspec.Struct, frozen=True):
    """The content of a report page.

    Attributes
    ----------
    title : str
        The heading.
    lead : str
        The first paragraph: what was simulated, and how numbers are printed.
    judgements : sequence of Judgement
    tables : sequence of Table
    pictures : sequence of Picture
    provenance : sequence of str
        Lines on the origin of the results.
    remarks : sequence of str
        Paragraphs after the summary.
    subject : str
        The heading of the first column of judgements.
    figures_note : str
        A sentence on how to read the figures.
    unfinished : str
        The progress of a campaign that has units left.
    claims : bool
        Whether the report judges claims of a paper.
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
        """A sentence on how many claims hold."""
        n = len(self.judgements)
        return f"{n - len(self.failing)} of {n} claims hold" if n else "no claim could be judged"

    @property
    def shared(self) -> str:
        """The parts, after the first, that the subjects of all judgements share."""
        subjects = [_PARTS.split(judgement.workload) for judgement in self.judgements]
        if len({tuple(parts) for parts in subjects}) < 2:
            return ""
        return ", ".join(p for p in subjects[0][1:] if all(p in parts for parts in subjects))

    def subject_of(self, judgement: Judgement) -> str:
        """Return the subject of a judgement without the parts that all share."""
        shared, (first, *others) = _PARTS.split(self.shared), _PARTS.split(judgement.workload)
        return ", ".join([first, *(part for part in others if part not in shared)])

    @property
    def failing(self) -> list[Judgement]:
        """The claims that do not hold."""
        return [judgement for judgement in self.judgements if not judgement.holds]


def seeds_text(counts: Iterable[int]) -> str:
    """Format numbers of seeds as a range; counts of 0 are ignored.

    >>> seeds_text([5, 4, 5, 0]), seeds_text([5, 5]), seeds_text([])
    ('4 to 5 seeds', '5 seeds', 'no seed')
    >>> seeds_text([1])
    '1 seed'
    """
    distinct = sorted({*counts} - {0})
    if not distinct:
        return "no seed"
    if distinct == [1]:
        return "1 seed"
    first, last = distinct[0], distinct[-1]
    return f"{first} seeds" if first == last else f"{first} to {last} seeds"


# ---- format of numbers


def percent(value: float | None) -> str:
    """Format a share with two decimals; empty for None."""
    return "" if value is None else f"{value:.2%}"


def share(value: float) -> str:
    """Format a share with one decimal."""
    return f"{value:.1%}"


def change(value: float) -> str:
    """Format a relative difference."""
    return f"{value:+.1%}"


def points(value: float) -> str:
    """Format a difference of shares, in percentage points."""
    return f"{100 * value:+.2f}"


def number(value: float | None) -> str:
    """Format a count; empty for None."""
    return "" if value is None else f"{value:.1f}"


def signed(value: float) -> str:
    """Format a difference of counts."""
    return f"{value:+.1f}"


def hours(value: float) -> str:
    """Format seconds as hours."""
    return f"{value / 3600:.1f}"


class ReportMaker(NamedTuple):
    """A report of simulations.

    Attributes
    ----------
    report : callable
        (results table, workload tables, pictures, provenance) -> the report.
    tables : bool
        Whether the report shows the workload tables.
    pictures : callable
        Returns additional pictures of units.
    """

    report: Callable[[Path, Sequence[Table], Sequence[Picture], Sequence[str]], Report]
    tables: bool = False
    pictures: Callable[[Sequence[Unit]], Iterable[Picture]] = lambda units: ()
