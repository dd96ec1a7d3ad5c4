# SPDX-License-Identifier: Apache-2.0
"""Answers to six questions of an operator, each in one sentence with an interval."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from rebat.core.numbers import (
    Form,
    change,
    counted,
    duration,
    node_h,
    number,
    percent,
    points,
    share,
    spread,
)
from rebat.results.catalogue import metric as row_of
from rebat.results.comparison import change_text
from rebat.results.intervals import FEWEST, Interval, exact_number, ratio_of_means
from rebat.studies.advice.design import FITTED, AdvisedSite, period_text
from rebat.studies.advice.evidence import (
    FLOW,
    LARGEST,
    USEFUL,
    WASTE,
    EffectOfChoice,
    Evidence,
    WorkOwner,
    cost_in_points,
    failures_cost,
    losers,
    period_title,
    periods,
    rules,
    setting_of,
    settings_of_today,
    simulated_losses,
    spares,
    title_of,
)
from rebat.studies.losses import MONTH_H
from rebat.workloads.checkpoint_table import NONE, YOUNG_DALY

MOST_CLASSES = 3
"""Maximum number of size classes that a sentence names."""


def answers(
    site: AdvisedSite, evidence: Evidence, owners: Sequence[WorkOwner]
) -> list[AnsweredQuestion]:
    """Return the six answers."""
    return [
        cost_answer(site, evidence),
        saving_answer(site, evidence),
        _who_pays(site, evidence, owners),
        _which_rule(site, evidence),
        _spare_nodes(site, evidence),
        _periods(site, evidence),
    ]


# ---- which jobs bear the cost


def _who_pays(
    site: AdvisedSite, evidence: Evidence, owners: Sequence[WorkOwner]
) -> AnsweredQuestion:
    question = "Which jobs bear the cost of the failures?"
    cost = failures_cost(site, evidence.runs)
    figures = figures_of([cost])
    by_class = {of: change for (name, of), change in cost.changes.items() if name == FLOW and of}
    paying = sorted(
        (of for of, change in by_class.items() if change.low is not None and change.low > 1),
        key=lambda of: -by_class[of].mean,
    )
    recorded = _worst_in_record(site)
    if all(change.low is None for change in by_class.values()):
        reason = too_few(question, figures, evidence).sentence
        return AnsweredQuestion(question, f"{recorded}{reason}", bool(recorded), figures)
    texts = [
        f"jobs of {of} nodes (mean flow {change_text(by_class[of])})"
        for of in paying[:MOST_CLASSES]
    ]
    sentence = recorded + (
        f"Simulated, the mean flow grows most for {', then for '.join(texts)}."
        if texts
        else "Simulated, no size class has a significantly longer mean flow because of failures."
    )
    for owner in losers(owners):
        sentence += f" {owner.text}"
    return AnsweredQuestion(question, sentence, True, figures)


def _worst_in_record(site: AdvisedSite) -> str:
    """Return a sentence on the size class, user and queue that lost the most in the record."""
    record = site.recorded
    if record is None or not record.lost_h:
        return ""
    texts = []
    for kind in ("size", "user", "queue"):
        if (group := record.worst(kind)) is not None:
            name = f"jobs of {group.name} nodes" if kind == "size" else f"{kind} {group.name}"
            part = f"{share(group.lost_h / record.lost_h)} of the lost work"
            texts.append(f"{name} ({node_h(group.lost_h)}, {part})")
    return f"In the record, these lost most: {', '.join(texts)}. " if texts else ""


# ---- which rule would help


def _which_rule(site: AdvisedSite, evidence: Evidence) -> AnsweredQuestion:
    question = "Which scheduler rule would help, and which jobs would it hurt?"
    compared = rules(site, evidence.runs)
    figures = figures_of(compared)
    if all(item.changes[FLOW, None].low is None for item in compared):
        return too_few(question, figures, evidence)
    faster = [item for item in compared if _shortens_flow(item)]
    if not faster:
        sentence = f"None of the {len(compared)} other rules shortens the mean flow significantly."
        return AnsweredQuestion(question, sentence, True, figures)
    helping = [item for item in faster if not _wastes(item)]
    intro = "" if helping else "None without a loss of useful utilisation. The fastest rule is "
    helping = helping or faster
    best = min(helping, key=lambda item: item.changes[FLOW, None].mean)
    parts = [
        f"{row_of(name).title} {change_text(best.changes[name, None])}"
        for name in (FLOW, LARGEST, USEFUL)
        if (name, None) in best.changes
    ]
    sentence = f"{intro}{best.title}: {', '.join(parts)}. {_hurt(best)}"
    sentence += _under_fitted(site, evidence, best)
    return AnsweredQuestion(question, sentence, True, figures)


def _shortens_flow(item: EffectOfChoice) -> bool:
    return item.significant(FLOW) and item.changes[FLOW, None].mean < 1


def _wastes(item: EffectOfChoice) -> bool:
    """Return whether a choice lowers useful utilisation significantly."""
    change = item.changes.get((USEFUL, None))
    return change is not None and item.significant(USEFUL) and change.mean < 1


def _hurt(best: EffectOfChoice) -> str:
    """Return a sentence that lists the size classes whose mean flow becomes longer under a rule."""
    hurt = [
        f"jobs of {of} nodes (mean flow {change_text(change)})"
        for (name, of), change in best.changes.items()
        if name == FLOW and of and change.low is not None and change.low > 1
    ]
    return (
        f"The rule hurts {' and '.join(hurt)}."
        if hurt
        else "No size class has a significantly longer mean flow."
    )


def _under_fitted(site: AdvisedSite, evidence: Evidence, best: EffectOfChoice) -> str:
    """Return a sentence with the effect of a rule under the law fitted to recorded failures."""
    policy = _policy_of(best.title, site)
    setting = setting_of(evidence.runs, FITTED)
    if setting is None:
        return ""
    ratio = ratio_of_means(*evidence.runs.paired(setting, policy, site.policy, FLOW))
    return "" if ratio is None else f" Under the fitted law: mean flow {change_text(ratio)}."


def _policy_of(title: str, site: AdvisedSite) -> str:
    return next(policy for policy in site.rules if title_of(policy) == title)


# ---- spare nodes


def _spare_nodes(site: AdvisedSite, evidence: Evidence) -> AnsweredQuestion:
    question = "How many spare nodes are worth keeping?"
    compared = spares(site, evidence.runs)
    if not site.spares:
        text = (
            "No answer: with the rules or the partitions of the site, no spare nodes are possible."
        )
        return AnsweredQuestion(question, text, False, [])
    figures = figures_of([item for _, item in compared])
    if all(item.changes[FLOW, None].low is None for _, item in compared):
        return too_few(question, figures, evidence)
    helping = [pair for pair in compared if _shortens_flow(pair[1]) and not _wastes(pair[1])]
    if helping:
        count, best = min(helping, key=lambda pair: pair[1].changes[FLOW, None].mean)
        sentence = (
            f"Keep {counted(count, 'spare node')}: compared with none, {_flow_and_useful(best)}."
        )
    else:
        count, first = compared[0]
        change = change_text(first.changes[FLOW, None])
        sentence = (
            f"None: no number of spare nodes from {count} to {compared[-1][0]} shortens the mean "
            f"flow significantly; {count} would change it by {change}."
        )
    return AnsweredQuestion(question, sentence, True, figures)


# ---- checkpoint periods


def _periods(site: AdvisedSite, evidence: Evidence) -> AnsweredQuestion:
    question = "How often should jobs checkpoint?"
    compared = periods(site, evidence.runs)
    figures = [
        figure_of(period_title(factor), USEFUL, change, "difference")
        for factor, change in compared.items()
    ]
    if all(change.low is None for change in compared.values()):
        return too_few(question, figures, evidence)
    better = {f: c for f, c in compared.items() if c.low is not None and c.low > 0}
    never = compared.get(None)
    if better:
        factor = max(better, key=lambda f: better[f].mean)
        advice = (
            "Never"
            if factor is None
            else f"Every {period_text(site, factor)} ({number(factor)} times the Young/Daly period)"
        )
        gain = f"useful utilisation is {points_text(better[factor])} higher"
        sentence = f"{advice}: {gain} than with the Young/Daly period."
    else:
        sentence = (
            f"Every {period_text(site)} (the Young/Daly period). No other period is significantly "
            "better."
        )
        if never is not None:
            change = points_text(never, points.in_unit("points", 0.01))
            sentence += f" Without checkpoints, useful utilisation changes by {change}."
    return AnsweredQuestion(question, sentence, True, figures)


# ---- texts


def _flow_and_useful(item: EffectOfChoice) -> str:
    return ", ".join(
        f"{row_of(name).title} {change_text(item.changes[name, None])}"
        for name in (FLOW, USEFUL)
        if (name, None) in item.changes
    )


class Figure(msgspec.Struct, frozen=True):
    """A number on which an answer is based: a change, with its 95 % interval if available."""

    name: str
    metric: str
    mean: float
    low: float | None
    high: float | None
    n: int
    kind: str = "ratio"
    """``ratio`` to the reference, ``difference`` from it, or ``node-hours`` in the period."""


class AnsweredQuestion(msgspec.Struct, frozen=True):
    """A question, its answer, and the numbers on which the answer is based.

    ``answered`` is False if the intervals do not allow an answer.
    """

    question: str
    sentence: str
    answered: bool
    figures: list[Figure]


def figures_of(compared: Sequence[EffectOfChoice]) -> list[Figure]:
    return [
        figure_of(item.title, name if of is None else f"{name}:{of}", change)
        for item in compared
        for (name, of), change in item.changes.items()
    ]


def figure_of(name: str, metric: str, change: Interval, kind: str = "ratio") -> Figure:
    return Figure(name, metric, change.mean, change.low, change.high, change.n, kind)


POINTS = points.in_unit("points", 0.01)._replace(signed=False)
"""A difference of shares in percentage points, in a sentence that states its direction."""


def points_text(difference: Interval, form: Form = POINTS) -> str:
    """Return a difference of shares with its interval."""
    unsure = "" if difference.low is None or difference.excludes(0.0) else " (not significant)"
    return spread(difference, form) + unsure


def too_few(question: str, figures: list[Figure], evidence: Evidence) -> AnsweredQuestion:
    """Return the question without an answer, because too few seeds ran or show any change."""
    if evidence.n_seeds >= FEWEST:
        text = f"No answer: fewer than {FEWEST} of {evidence.n_seeds} seeds show any change."
        return AnsweredQuestion(question, text, False, figures)
    seeds = f"{evidence.n_seeds} seed" + ("s are" if evidence.n_seeds > 1 else " is")
    text = f"No answer: {seeds} too few for an interval"
    if evidence.seconds_per_seed:
        minutes = (FEWEST - evidence.n_seeds) * evidence.seconds_per_seed / 60
        text += f"; {FEWEST} seeds need about {max(1, round(minutes))} min more"
    return AnsweredQuestion(question, f"{text}.", False, figures)


HOURS = "node-hours"
"""Kind of a number: node-hours in the period of `period_of`."""


# ---- what do failures cost today


def cost_answer(site: AdvisedSite, evidence: Evidence) -> AnsweredQuestion:
    question = "What do failures cost today?"
    cost, runs = failures_cost(site, evidence.runs), evidence.runs
    failing, calm = settings_of_today(runs)
    points, losses = cost_in_points(site, runs), simulated_losses(site, runs)
    figures = [*figures_of([cost]), figure_of(cost.title, USEFUL, points, "difference")]
    for name, part in (("no checkpoints", losses.without), ("all checkpoints", losses.with_all)):
        figures.append(_in_hours(site, name, WASTE, part))
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
        f"{percent(before)} to {percent(after)}), and change the mean flow by "
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
            f"Nodes were down for {node_h(record.down_h)} "
            f"({percent(record.down_h / record.total_h)} of the node time)."
        )
    return (
        f"In the record ({period_of(site)}), failures ended "
        f"{counted(record.attempts, 'attempt')} and destroyed {node_h(record.lost_h)} of "
        f"work, that is {node_h(record.per_month_h)} per month (30 d), and "
        f"{percent(record.lost_h / record.total_h)} of the node time of the machine. {down}"
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
    return f"{duration(period_hours(site) * 3600)} of {counted(site.n_nodes, 'node')}"


def hours(site: AdvisedSite, share: Interval) -> str:
    """Return a share of the node time as node-hours in the period, with the interval."""
    return spread(_scaled(site, share), node_h)


def _scaled(site: AdvisedSite, share: Interval) -> Interval:
    """Return a share of the node time in node-hours of the period."""
    factor = site.n_nodes * period_hours(site)
    if share.low is None or share.high is None:
        return Interval(factor * share.mean, n=share.n)
    return Interval(factor * share.mean, factor * share.low, factor * share.high, share.n)


def _in_hours(site: AdvisedSite, name: str, metric: str, share: Interval) -> Figure:
    return figure_of(name, metric, _scaled(site, share), HOURS)


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
        f"({change(losses.net.mean)} of the node time{unsure})."
    )
    return AnsweredQuestion(question, sentence, True, figures)
