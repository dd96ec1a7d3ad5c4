# SPDX-License-Identifier: Apache-2.0
"""The parts of a report (judgements, tables and pictures), and the format of numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from rebat.papers.common.judgement import CONTRADICTED, Judgement, summary_of
from rebat.runs.unit import Unit


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
    """An entry of a legend. ``look`` is line, dashed, dotted, band, dot or diamond."""

    name: str
    colour: str
    look: str = "line"


class Picture(msgspec.Struct, frozen=True):
    """A figure as SVG.

    ``paper`` names the corresponding figure of the paper. ``title`` is the caption, ``key`` the
    legend, ``note`` the unit and the number of seeds. ``svg`` may contain several panels. The page
    places them in a row if they fit. ``intervals`` states whether the figure shows intervals.
    """

    paper: str
    title: str
    svg: str
    note: str = ""
    key: Sequence[Key] = ()
    intervals: bool = False


BOXES_NOTE = (
    "Each box shows the values of all failure scenarios. The paper does not show the points in "
    "its Table 10. This figure shows them."
)


_PARTS = re.compile(r", (?![^()]*\))")
"""Pattern that separates the parts of a subject: commas outside parentheses."""


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
        Lines that state where the results come from.
    remarks : sequence of str
        Paragraphs after the summary.
    subject : str
        The heading of the first column of judgements.
    figures_note : str
        A sentence that explains the figures.
    intervals_note : str
        A sentence that explains the intervals in figures.
    unfinished : str
        A sentence on the progress of a campaign that is not complete, or an empty text.
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
    intervals_note: str = ""
    unfinished: str = ""
    claims: bool = True
    findings: Sequence[str] = ()

    @property
    def about_figures(self) -> list[str]:
        """The sentences that explain the figures."""
        drawn = any(picture.intervals for picture in self.pictures)
        return [*filter(None, (self.figures_note, self.intervals_note if drawn else ""))]

    @property
    def verdict(self) -> list[str]:
        """Sentences that count the claims that hold and the published values reproduced."""
        return summary_of(self.judgements)

    @property
    def shared(self) -> str:
        """The parts that the subjects of all judgements have in common, except the first part."""
        subjects = [_PARTS.split(judgement.workload) for judgement in self.judgements]
        if len({tuple(parts) for parts in subjects}) < 2:
            return ""
        return ", ".join(p for p in subjects[0][1:] if all(p in parts for parts in subjects))

    def subject_of(self, judgement: Judgement) -> str:
        """Return the subject of a judgement without the parts in `shared`."""
        shared, (first, *others) = _PARTS.split(self.shared), _PARTS.split(judgement.workload)
        return ", ".join([first, *(part for part in others if part not in shared)])

    def of_paper(self, own: bool = False) -> list[Judgement]:
        """Return the judgements of the paper's claims.

        With ``own``, return those of rebat's statements.
        """
        return [judgement for judgement in self.judgements if judgement.own == own]

    @property
    def contradicted(self) -> list[Judgement]:
        """The judgements of claims that are contradicted."""
        return [judgement for judgement in self.judgements if judgement.direction == CONTRADICTED]


def seeds_text(counts: Iterable[int]) -> str:
    """Format numbers of seeds as a range. Counts of 0 are ignored.

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


def means_note(over: str, rows: Iterable[Sequence[str]]) -> str:
    """Return the note of a table of means over seeds. It mentions brackets only if rows have them.

    >>> means_note("5 seeds", [["easy", "1.0 [0.9, 1.1]"]])
    'means over 5 seeds, 95 % intervals in brackets'
    >>> means_note("1 seed", [["easy", "1.0"]])
    'means over 1 seed'
    """
    return f"means over {over}" + (", 95 % intervals in brackets" if bracketed(rows) else "")


def bracketed(rows: Iterable[Sequence[str]]) -> bool:
    """Return whether rows of a table contain an interval, in any column except the first."""
    return any("[" in cell for _, *cells in rows for cell in cells)


# ---- format of numbers


def percent(value: float | None) -> str:
    """Format a share in percent with two decimals. The text is empty for None."""
    return "" if value is None else f"{value:.2%}"


def share(value: float) -> str:
    """Format a share in percent with one decimal."""
    return f"{value:.1%}"


def change(value: float) -> str:
    """Format a relative difference."""
    return f"{value:+z.1%}"


def points(value: float) -> str:
    """Format a difference of shares in percentage points."""
    return f"{100 * value:+z.2f}"


def number(value: float | None) -> str:
    """Format a count; empty for None."""
    return "" if value is None else f"{value:.1f}"


def signed(value: float) -> str:
    """Format a difference of counts."""
    return f"{value:+z.1f}"


def hours(value: float) -> str:
    """Format seconds as hours."""
    return f"{value / 3600:.1f}"


class ReportMaker(NamedTuple):
    """A report of simulations.

    Attributes
    ----------
    report : callable
        Function that returns the report. Its arguments are the results table, the workload tables,
        the pictures and the provenance.
    tables : bool
        Whether the report shows the workload tables.
    pictures : callable
        Function that returns additional pictures of units.
    """

    report: Callable[[Path, Sequence[Table], Sequence[Picture], Sequence[str]], Report]
    tables: bool = False
    pictures: Callable[[Sequence[Unit]], Iterable[Picture]] = lambda units: ()
