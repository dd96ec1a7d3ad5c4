# SPDX-License-Identifier: Apache-2.0
"""One page for decision makers: three sentences, node-hours and money, one figure, assumptions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from html import escape
from textwrap import fill
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from rebat.core.formatting import PAGE_STYLE
from rebat.core.numbers import counted, node_h, share, spread, whole
from rebat.core.version import rebat_version
from rebat.figures.canvas import content_of, new_figure, svg_of
from rebat.report.table import Table
from rebat.results.comparison import change_text
from rebat.results.intervals import Interval
from rebat.studies.advice.changed import Assumption, assumptions_of
from rebat.studies.advice.design import AdvisedSite
from rebat.studies.advice.evidence import (
    FLOW,
    LARGEST,
    Evidence,
    costs_of_today,
    rules,
    simulated_losses,
)
from rebat.studies.losses import MONTH_H
from rebat.workloads.machine import origin_of
from rebat.workloads.site import Price, Site

A4 = (8.27, 11.69)
PLACES = ((0.08, 0.62, 0.86, 0.33), (0.36, 0.33, 0.56, 0.26), (0.08, 0.04, 0.86, 0.24))
"""Left, bottom, width and height of the three parts of the page as PDF."""
MOST_BARS = 12
"""Maximum number of rows in the figure of assumptions."""


class SummaryPage(NamedTuple):
    """The content of the page.

    Attributes
    ----------
    title, period : str
    sentences : list of str
    rows : list of (name, node-hours per month, money per month)
    assumed : list of str
    changes : list of Assumption
    months : list of (name, node-hours)
    """

    title: str
    period: str
    sentences: list[str]
    rows: list[tuple[str, str, str]]
    assumed: list[str]
    changes: list[Assumption]
    months: list[tuple[str, float]]
    price: Price | None


def summary_of(
    site: AdvisedSite, evidence: Evidence, assumed: Sequence[str], described: Site | None
) -> SummaryPage:
    """Return the content of the page."""
    price = described.price if described else None
    losses = simulated_losses(site, evidence.runs)
    month_h = site.n_nodes * MONTH_H

    def hours(part: Interval) -> str:
        return spread(_times(part, month_h), node_h.bare)

    def money(part: Interval) -> str:
        if price is None:
            return ""
        return spread(_times(part, month_h * price.node_hour), whole.in_unit(price.currency))

    rows = []
    record = site.recorded
    if record is not None:
        lost_h = record.per_month_h
        cost = "" if price is None else whole.in_unit(price.currency)(lost_h * price.node_hour)
        rows.append(("destroyed by failures, in the record", node_h.bare(lost_h), cost))
    today = costs_of_today(site, evidence.runs)
    named = (
        ("destroyed, simulated with the checkpoints of today", today.lost),
        ("destroyed, simulated without checkpoints", losses.without),
        ("destroyed, simulated with checkpoints of all jobs", losses.with_all),
        ("time to write and read these checkpoints", losses.overhead),
        ("net saving by checkpoints of all jobs, compared with today", today.net),
    )
    rows += [(name, hours(part), money(part)) for name, part in named]
    return SummaryPage(
        title=site.name,
        period=_period(site, described),
        sentences=[
            _cost(site, losses.without, price),
            _saving(site, today.net, price),
            _rule(site, evidence),
        ],
        rows=rows,
        assumed=list(assumed),
        changes=assumptions_of(site, evidence.runs)[:MOST_BARS],
        months=[(g.name, g.lost_h) for g in record.groups if g.kind == "month"] if record else [],
        price=price,
    )


def _times(share: Interval, factor: float) -> Interval:
    if share.low is None or share.high is None:
        return Interval(factor * share.mean, n=share.n)
    return Interval(factor * share.mean, factor * share.low, factor * share.high, share.n)


def _priced(hours: float, price: Price | None) -> str:
    return "" if price is None else f" ({whole.in_unit(price.currency)(hours * price.node_hour)})"


def _cost(site: AdvisedSite, without: Interval, price: Price | None) -> str:
    record = site.recorded
    if record is None:
        hours = without.mean * site.n_nodes * MONTH_H
        return (
            f"If no job writes checkpoints, failures of nodes destroy {node_h(hours)} of work "
            f"per month{_priced(hours, price)}, {share(without.mean)} of the node time."
        )
    return (
        f"Failures of nodes destroyed {node_h(record.per_month_h)} of work per month"
        f"{_priced(record.per_month_h, price)}, {share(record.lost_h / record.total_h)} of "
        "the node time of the machine."
    )


def _saving(site: AdvisedSite, net: Interval, price: Price | None) -> str:
    hours = net.mean * site.n_nodes * MONTH_H
    if net.low is None:
        return "Fewer than five seeds are complete, so the saving by checkpoints is unknown."
    if not net.excludes(0.0):
        return "Compared with today, checkpoints of all jobs would not save work significantly."
    if hours < 0:
        return (
            f"Compared with today, checkpoints of all jobs would cost {node_h(-hours)} per "
            f"month{_priced(-hours, price)} more than they save."
        )
    return (
        f"Compared with today, checkpoints of all jobs would save {node_h(hours)} per "
        f"month{_priced(hours, price)}, after their own cost."
    )


def _rule(site: AdvisedSite, evidence: Evidence) -> str:
    compared = rules(site, evidence.runs)
    if all(item.changes[FLOW, None].low is None for item in compared):
        return "Fewer than five seeds are complete, so the effect of other rules is unknown."
    helping = [
        item for item in compared if item.significant(FLOW) and item.changes[FLOW, None].mean < 1
    ]
    if not helping:
        return "No other rule of the scheduler shortens the mean flow of the jobs significantly."
    best = min(helping, key=lambda item: item.changes[FLOW, None].mean)
    change = change_text(best.changes[FLOW, None])
    largest = best.changes.get((LARGEST, None))
    price = f" The largest flow changes by {change_text(largest)}." if largest else ""
    return (
        f"{best.title} shortens the mean flow of the jobs most: it changes by {change}.{price} "
        "(The flow of a job is the time from its submission to its end.)"
    )


def _period(site: AdvisedSite, described: Site | None) -> str:
    """Return the period of the record as dates, and the size of the machine."""
    size = f"{counted(site.n_nodes, 'node')}, {counted(len(site.workload.jobs), 'job')}"
    origin_s = origin_of(site.workload.machine)
    if site.recorded is None or origin_s is None:
        return size
    zone = described.time_zone if described else ""
    place: tzinfo = ZoneInfo(zone) if zone else UTC
    begin = datetime.fromtimestamp(origin_s, place)
    end = begin + timedelta(hours=site.recorded.span_h)
    return f"{begin:%Y-%m-%d} to {end:%Y-%m-%d}, {size}"


def _figure(page: SummaryPage) -> Any:
    """Return the figure: recorded losses by month, and the effect of each assumption."""
    panels = int(len(page.months) > 1) + int(bool(page.changes))
    if not panels:
        return None
    figure = new_figure(8.0, 1.2 + 0.28 * max(6, len(page.changes)))
    axes = list(figure.subplots(1, panels, squeeze=False)[0])
    if len(page.months) > 1:
        _draw_months(axes.pop(0), page.months)
    if page.changes:
        _draw_changes(axes.pop(0), page.changes)
    return figure


def _draw_months(axis: Any, months: Sequence[tuple[str, float]]) -> None:
    axis.bar(range(len(months)), [hours for _, hours in months], color="#b3541e")
    axis.set_xticks(range(len(months)), [name for name, _ in months], rotation=60, fontsize=8)
    axis.set_title("node-hours destroyed, recorded", fontsize=10)


def _draw_changes(axis: Any, changes: Sequence[Assumption]) -> None:
    names = [f"{row.name}: {row.change}" for row in changes]
    axis.barh(range(len(changes)), [row.difference.mean for row in changes], color="#2a6f97")
    for at, row in enumerate(changes):
        if row.difference.low is not None:
            axis.plot([row.difference.low, row.difference.high], [at, at], color="#222222")
    axis.axvline(0, color="#222222", linewidth=0.8)
    axis.set_yticks(range(len(changes)), names, fontsize=8)
    axis.invert_yaxis()
    axis.set_title("change of the simulated loss,\nnode-hours per month", fontsize=10)


def as_html(page: SummaryPage) -> str:
    """Return the page as HTML, without scripts."""
    figure = _figure(page)
    columns = ["", "node-hours per month (30 d)", "money per month"][: 3 if page.price else 2]
    table = Table("", "", columns, [list(row[: len(columns)]) for row in page.rows])
    picture = "" if figure is None else f'<div class="figure">{svg_of(figure)}</div>'
    assumed = "".join(f"<li>{escape(text)}</li>" for text in page.assumed)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(page.title)}: what failures cost - rebat</title>"
        f"<style>{PAGE_STYLE} td, th {{ padding-right: 1.5em }}</style>"
        "</head><body>"
        f"<h1>{escape(page.title)}: what failures cost</h1><p>{escape(page.period)}</p>"
        + "".join(f"<p><b>{escape(text)}</b></p>" for text in page.sentences)
        + f'<div class="wide">{table.grid()}</div>'
        f"<h2>What would change the answer</h2><p>{escape(EXPLAINED)}</p>{picture}"
        f"<h2>Assumptions</h2><ul>{assumed}</ul>"
        f"<p>rebat {rebat_version()}. Brackets contain 95 % intervals.</p></body></html>\n"
    )


EXPLAINED = (
    "Each bar shows the loss under today's scheduler and checkpoints if one assumption is "
    "different, minus the loss under the usual assumptions. Lines are 95 % intervals."
)


def as_pdf(page: SummaryPage) -> bytes:
    """Return the page as PDF."""
    figure = new_figure(*A4)
    above, middle, below = map(figure.add_axes, PLACES)
    lines = [page.period, ""]
    lines += [f"{fill(text, 88)}\n" for text in page.sentences]
    lines += [
        f"{name}: {hours} node-hours per month{f', {cost}' if cost else ''}"
        for name, hours, cost in page.rows
    ]
    _write(above, f"{page.title}: what failures cost", "\n".join(lines))
    if page.changes:
        _draw_changes(middle, page.changes)
    else:
        middle.axis("off")
    assumed = "\n".join(fill(f"- {text}", 110, subsequent_indent="  ") for text in page.assumed)
    _write(below, "Assumptions", f"{assumed}\n\nrebat {rebat_version()}", 7)
    return content_of(figure, "pdf")


def _write(axis: Any, title: str, text: str, size: int = 9) -> None:
    axis.axis("off")
    axis.set_title(title, loc="left", fontsize=12)
    axis.text(0, 1, text, va="top", fontsize=size, transform=axis.transAxes, wrap=True)
