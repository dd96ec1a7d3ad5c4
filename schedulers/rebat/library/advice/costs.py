# SPDX-License-Identifier: Apache-2.0
"""What failures cost, in the record and in simulations, and what checkpoints would save."""

from __future__ import annotations

from pathlib import Path

from rebat.core.formatting import counted
from rebat.library.advice.answer import (
    AnsweredQuestion,
    Figure,
    figure_of,
    figures_of,
    points_text,
    too_few,
)
from rebat.library.advice.compared import (
    FLOW,
    USEFUL,
    WASTE,
    cost_in_points,
    failures_cost,
    settings_of_today,
    simulated_losses,
)
from rebat.library.advice.design import NONE, YOUNG_DALY, AdvisedSite, period_text
from rebat.library.advice.losses import MONTH_H
from rebat.library.advice.rounds import Evidence
from rebat.results.comparison import change_text
from rebat.results.intervals import Interval, exact_number, spread

HOURS = "node-hours"
"""Kind of a number: node-hours in the period of `period_of`."""


# ---- what do failures cost today


def cost_answer(site: AdvisedSite, evidence: Evidence) -> AnsweredQuestion:
    question = "What do failures cost today?"
    cost, runs = failures_cost(site, evidence.runs), evidence.runs
    failing, calm = settings_of_today(runs)
    points, losses = cost_in_points(site, runs), simulated_losses(site, runs)
    figures = [*figures_of([cost]), figure_of(cost.title, USEFUL, points, "difference")]
    for name, share in (("no checkpoints", losses.without), ("all checkpoints", losses.with_all)):
        figures.append(_in_hours(site, name, WASTE, share))
    record = site.recorded
    if record is not None:
        figures.append(figure_of("record", WASTE, exact_number(record.lost_h), HOURS))
    recorded = _of_record(site)
    if points.low is None:
        reason = too_few(question, figures, evidence).sentence
        return AnsweredQuestion(question, f"{recorded} {reason}", record is not None, figures)
    before, after = (runs.mean(setting, site.policy, USEFUL) for setting in (calm, failing))
    direction = "lower" if points.mean >= 0 else "raise"
    sentence = (
        f"{recorded} Simulated under {site.policy}, for {period_of(site)}: failures destroy "
        f"{hours(site, losses.without)} if no job writes checkpoints, and "
        f"{hours(site, losses.with_all)} if all jobs write Young/Daly checkpoints. With "
        f"{today_text(site)}, failures {direction} useful utilisation by {_size(points)} (from "
        f"{_share(before)} to {_share(after)}), and change the mean flow by "
        f"{change_text(cost.changes[FLOW, None])}."
    )
    return AnsweredQuestion(question, sentence, True, figures)


def _of_record(site: AdvisedSite) -> str:
    """Return sentences on the losses in the recorded schedule."""
    record = site.recorded
    if record is None:
        return (
            "The recorded loss is unknown: set --past to the folder of 'rebat workload import "
            "--schedule'."
        )
    down = "The record has no node events, so the down time of nodes is unknown."
    if record.down_h is not None:
        down = (
            f"Nodes were down for {record.down_h:,.0f} node-hours "
            f"({record.down_h / record.total_h:.2%} of the node time)."
        )
    return (
        f"In the record ({period_of(site)}), failures ended "
        f"{counted(record.attempts, 'attempt')} and destroyed {record.lost_h:,.0f} node-hours of "
        f"work, that is {record.per_month_h:,.0f} node-hours per month (30 d), and "
        f"{record.lost_h / record.total_h:.2%} of the node time of the machine. {down}"
    )


def today_text(site: AdvisedSite) -> str:
    """Return the checkpoints of today in words."""
    if site.checkpoints == NONE:
        return "the checkpoints of today (--checkpoints none)"
    if site.checkpoints == YOUNG_DALY:
        return "the checkpoints of today (--checkpoints young-daly)"
    jobs = f"{site.n_checkpointed} of {counted(len(site.workload.jobs), 'job')}"
    return f"the checkpoints of today ({jobs}, from {Path(site.checkpoints).name})"


def period_hours(site: AdvisedSite) -> float:
    """Return the length of the record in hours, or 30 days if there is no recorded schedule."""
    return site.recorded.span_h if site.recorded else MONTH_H


def period_of(site: AdvisedSite) -> str:
    """Return the period of all node-hours, with the number of nodes."""
    return f"{period_hours(site) / 24:.4g} d of {counted(site.n_nodes, 'node')}"


def hours(site: AdvisedSite, share: Interval) -> str:
    """Return a share of the node time as node-hours in the period, with the interval."""
    return f"{spread(_scaled(site, share), '{:,.0f}'.format)} node-hours"


def _scaled(site: AdvisedSite, share: Interval) -> Interval:
    """Return a share of the node time in node-hours of the period."""
    factor = site.n_nodes * period_hours(site)
    if share.low is None or share.high is None:
        return Interval(factor * share.mean, n=share.n)
    return Interval(factor * share.mean, factor * share.low, factor * share.high, share.n)


def _in_hours(site: AdvisedSite, name: str, metric: str, share: Interval) -> Figure:
    return figure_of(name, metric, _scaled(site, share), HOURS)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2%}"


def _size(points: Interval) -> str:
    """Return the size of a difference of shares in points, without its sign."""
    if points.mean >= 0 or points.low is None or points.high is None:
        return points_text(points)
    return points_text(Interval(-points.mean, -points.high, -points.low, points.n))


# ---- what would checkpoints save


def saving_answer(site: AdvisedSite, evidence: Evidence) -> AnsweredQuestion:
    question = "What would checkpoints of all jobs save?"
    losses = simulated_losses(site, evidence.runs)
    named = {"saved": losses.less, "written and read": losses.overhead, "net": losses.net}
    figures = [_in_hours(site, name, WASTE, share) for name, share in named.items()]
    if losses.less.low is None:
        return too_few(question, figures, evidence)
    unsure = "" if losses.net.excludes(0.0) else ", not significant"
    sentence = (
        f"If all jobs wrote Young/Daly checkpoints (every {period_text(site)}), failures would "
        f"destroy {hours(site, losses.less)} less than if no job wrote checkpoints, in "
        f"{period_of(site)}. Writing and reading the checkpoints would take "
        f"{hours(site, losses.overhead)}. The net saving is {hours(site, losses.net)} "
        f"({losses.net.mean:+z.2%} of the node time{unsure})."
    )
    return AnsweredQuestion(question, sentence, True, figures)
