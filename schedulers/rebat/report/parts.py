# SPDX-License-Identifier: Apache-2.0
"""The parts of a report: judgements, tables and pictures.

A report is written as one self-contained HTML page without scripts, and as Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from rebat.core.formatting import PAGE_STYLE
from rebat.report.claims import CONTRADICTED, TOO_FEW, Judgement, summary_of
from rebat.report.table import Table, bracketed
from rebat.results.intervals import FEWEST
from rebat.runs.unit import Unit


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

    @property
    def small(self) -> bool:
        """Whether the figure is narrow enough for a phone: a single SVG of at most `SMALL_PT`."""
        boxes = _VIEW_BOX.findall(self.svg)
        return len(boxes) == 1 and float(boxes[0]) <= SMALL_PT


SMALL_PT = 400.0

_VIEW_BOX = re.compile(r'<svg[^>]*viewBox="[-\d.]+ [-\d.]+ ([\d.]+)')
"""Pattern of the beginning of an SVG element, with its width in points."""

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


HEADINGS = ("Claims of the paper and rebat's results", "Statements of rebat")
"""Headings of the two tables of claims."""

HOW_TO_READ = (
    "A claim holds if rebat's entire interval is within the range that the rule allows. It is "
    "contradicted if the entire interval is outside this range. Otherwise it is undecided. A "
    "published value is inside if it lies in rebat's interval. It is near if it lies outside "
    "this interval, but within the range of 95 % of single runs. In all other cases it is "
    "outside."
)

TOO_FEW_SEEDS = (
    f" There are too few seeds for a verdict if rebat's number has no interval: the interval of a "
    f"mean needs {FEWEST} seeds, the interval of a median {FEWEST + 1}."
)

_TEMPLATE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{{ r.title }} - rebat</title>
<style>
{{ style | safe }}
h1 { font-size: 1.5rem } h2 { font-size: 1.2rem; margin-top: 2.2rem } h3 { font-size: 1rem }
td, th { padding: .2rem .6rem; border-bottom: 1px solid #ddd; text-align: right }
td:first-child, th:first-child, table.words td { text-align: left }
table.words th { text-align: left }
td { white-space: nowrap } table.words td { white-space: normal } table.words { min-width: 52rem }
li, p, h1, h3 { overflow-wrap: anywhere }
.figure { display: flex; flex-wrap: wrap; row-gap: .8rem; align-items: flex-start }
.figure svg { flex: 1 1 min(26rem, 100%); min-width: 0; max-width: 33rem;
  height: auto }
.figure svg:only-child { flex: 1 0 auto; width: 100%; min-width: 38rem; max-width: 66rem }
.figure.small svg:only-child { min-width: 0; max-width: 38rem }
.figure svg { mix-blend-mode: multiply }
.note { color: #555; margin: .2rem 0 .5rem; font-size: .9rem } h3 { margin-bottom: .2rem }
.key span { display: inline-block; margin-right: 1.2rem }
.key i { display: inline-block; width: 1.6rem; border-top: 3px solid; vertical-align: middle;
  margin-right: .4rem }
.key .dashed { border-top-style: dashed } .key .dotted { border-top-style: dotted }
.key .band, .key .dot, .key .diamond { border: 0; background: currentColor; height: .7rem }
.key .dot, .key .diamond { width: .7rem } .key .dot { border-radius: 50% }
.key .diamond { transform: rotate(45deg) }
.paper { color: #777; font-weight: normal }
.summary { border-left: 4px solid #4477aa; padding-left: 1rem }
.summary h2 { margin-top: 1rem } .summary li { margin-bottom: .4rem }
.yes { color: #1a7f37 } .no { color: #b35900 } rect:hover { opacity: .7 }
</style></head><body>
<h1>{{ r.title }}</h1>
<p>{{ r.lead }}</p>
{% if r.claims or r.findings or r.unfinished %}<section class="summary"><h2>Summary</h2>
{% if r.unfinished %}<p class="no"><strong>{{ r.unfinished }}</strong></p>
{% endif %}{% if r.shared %}<p>All settings: {{ r.shared }}.</p>
{% endif %}{% if r.claims %}{% for text in r.verdict %}<p><strong>{{ text }}</strong></p>
{% endfor %}<p class="note">{{ how_to_read }}</p>
{% endif %}{% if r.findings %}<ul>{% for text in r.findings %}<li>{{ text }}</li>
{% endfor %}</ul>
{% endif %}{% if r.contradicted %}<p>Contradicted:</p>
<ul>{% for j in r.contradicted %}<li>{{ r.subject_of(j) }}: {{ j.claim }}:
<strong class="no">{{ j.ours }}</strong> (rule: {{ j.rule }}; paper: {{ j.paper }})
{%- if j.why %}. {{ j.why }}{% endif %}</li>
{% endfor %}</ul>{% endif %}</section>
{% endif %}{% for text in r.remarks %}<p>{{ text }}</p>
{% endfor %}{% for heading, judged in claims if judged %}<h2>{{ heading }}</h2>
<div class="wide"><table class="words">
<tr>{% for c in columns %}<th>{{ c }}</th>{% endfor %}</tr>
{% for j in judged %}<tr><td>{{ r.subject_of(j) }}</td><td>{{ j.claim }}</td>
<td>{{ j.ours }}</td><td class="{{ 'yes' if j.holds else 'no' }}">{{ j.direction }}</td>
<td>{{ j.size }}</td><td>{{ j.rule }}</td><td>{{ j.paper }}</td></tr>
{% endfor %}</table></div>
{% endfor %}{% if r.pictures %}<h2>Figures</h2>
<p>{{ r.about_figures | join(" ") }}</p>
{% for p in r.pictures %}<h3>{{ p.title }} <span class="paper">{{ p.paper }}</span></h3>
{% if p.note %}<p class="note">{{ p.note }}</p>{% endif %}
{% if p.key %}<p class="note key">{% for k in p.key %}<span><i class="{{ k.look }}"
style="color: {{ k.colour }}"></i>{{ k.name }}</span> {% endfor %}</p>{% endif %}
<div class="figure{% if p.small %} small{% endif %}">{{ p.svg | safe }}</div>
{% endfor %}
{% endif %}{% if r.tables %}<h2>Tables</h2>
{% for t in r.tables %}<h3>{{ t.title }} <span class="paper">{{ t.paper }}</span></h3>
{% if t.note %}<p class="note">{{ t.note }}</p>{% endif %}
<div class="wide">{{ t.grid() | safe }}</div>
{% endfor %}
{% endif %}<h2>Provenance</h2>
<ul>{% for line in r.provenance %}<li>{{ line }}</li>{% endfor %}</ul>
</body></html>
"""


def html(report: Report) -> str:
    """Return the HTML page. All texts are escaped, except the SVG of figures."""
    import jinja2

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    page: str = environment.from_string(_TEMPLATE).render(
        r=report,
        how_to_read=_how_to_read(report),
        claims=_claims(report),
        columns=_columns(report),
        style=PAGE_STYLE,
    )
    return page


def markdown(report: Report) -> str:
    """Return the report as Markdown without figures. HTML tags in names are escaped."""
    lines = [f"# {report.title}", "", report.lead, "", *_summary(report), ""]
    for text in report.remarks:
        lines += [text, ""]
    for heading, judgements in _claims(report):
        rows = [
            [report.subject_of(j), j.claim, j.ours, j.direction, j.size, j.rule, j.paper]
            for j in judgements
        ]
        lines += (
            [f"## {heading}", "", *Table("", "", _columns(report), rows).markdown_lines(), ""]
            if rows
            else []
        )
    for table in report.tables:
        paper = f" ({table.paper})" if table.paper else ""
        lines += [f"## {table.title}{paper}", ""]
        lines += [table.note, ""] if table.note else []
        lines += [*table.markdown_lines(), ""]
    lines += ["## Provenance", "", *(f"- {line}" for line in report.provenance), ""]
    return _TAG.sub("&lt;", "\n".join(lines))


def _claims(report: Report) -> list[tuple[str, list[Judgement]]]:
    return list(zip(HEADINGS, (report.of_paper(), report.of_paper(own=True)), strict=True))


def _how_to_read(report: Report) -> str:
    few = any(TOO_FEW in (j.direction, *j.sizes) for j in report.judgements)
    return HOW_TO_READ + (TOO_FEW_SEEDS if few else "")


def _columns(report: Report) -> list[str]:
    return [report.subject, "claim", "rebat", "direction", "published value", "rule", "paper"]


_TAG = re.compile(r"<(?=[A-Za-z/!?])")
"""Pattern of the beginning of an HTML tag, which must be escaped. It does not match "< 5"."""


def _summary(report: Report) -> Iterator[str]:
    """Yield the progress, the counts of verdicts, and the claims that do not hold."""
    if report.claims or report.findings or report.unfinished:
        yield from ("## Summary", "")
    if report.unfinished:
        yield from (f"**{report.unfinished}**", "")
    if report.claims:
        yield from (f"All settings: {report.shared}.", "") if report.shared else ()
        for text in report.verdict:
            yield from (f"**{text}**", "")
        yield from (_how_to_read(report), "")
    yield from (f"- {text}" for text in report.findings)
    if report.contradicted:
        yield from ("Contradicted:", "", *(_bullet(report, item) for item in report.contradicted))


def _bullet(report: Report, judgement: Judgement) -> str:
    why = f". {judgement.why}" if judgement.why else ""
    return (
        f"- {report.subject_of(judgement)}: {judgement.claim}: **{judgement.ours}** "
        f"(rule: {judgement.rule}; paper: {judgement.paper}){why}"
    )
