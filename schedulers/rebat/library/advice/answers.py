# SPDX-License-Identifier: Apache-2.0
"""Answers to five questions of an operator, each in one sentence with an interval."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rebat.core.counted import counted
from rebat.library.advice.compared import (
    FLOW,
    LARGEST,
    USEFUL,
    EffectOfChoice,
    cost_in_points,
    failures_cost,
    period_title,
    periods,
    rules,
    setting_of,
    settings_of_today,
    spares,
    title_of,
)
from rebat.library.advice.design import FITTED, AdvisedSite, period_text
from rebat.library.advice.owners import WorkOwner, losers
from rebat.library.advice.rounds import Evidence
from rebat.results.catalogue import metric as row_of
from rebat.results.intervals import FEWEST, Interval, ratio_of_means
from rebat.results.verdict import change_text

MOST_CLASSES = 3
"""Maximum number of size classes that a sentence names."""


class Figure(msgspec.Struct, frozen=True):
    """A number on which an answer is based: a change, with its 95 % interval if available."""

    name: str
    metric: str
    mean: float
    low: float | None
    high: float | None
    n: int
    kind: str = "ratio"
    """Kind of the change: ``ratio`` to the reference, or ``difference`` from it."""


class AnsweredQuestion(msgspec.Struct, frozen=True):
    """A question, its answer, and the numbers on which the answer is based.

    ``answered`` is False if the intervals do not allow an answer.
    """

    question: str
    sentence: str
    answered: bool
    figures: list[Figure]


def answers(
    site: AdvisedSite, evidence: Evidence, owners: Sequence[WorkOwner]
) -> list[AnsweredQuestion]:
    """Return the five answers."""
    return [
        _cost(site, evidence),
        _who_pays(site, evidence, owners),
        _which_rule(site, evidence),
        _spare_nodes(site, evidence),
        _periods(site, evidence),
    ]


# ---- 1. what do failures cost today


def _cost(site: AdvisedSite, evidence: Evidence) -> AnsweredQuestion:
    question = "What do failures cost today?"
    cost = failures_cost(site, evidence.runs)
    failing, _ = settings_of_today(evidence.runs)
    points = cost_in_points(site, evidence.runs)
    wasted = evidence.runs.interval(failing, site.policy, "platform_waste_failure")
    flow = cost.changes[FLOW, None]
    figures = [*_figures([cost]), _figure(cost.title, USEFUL, points, "difference")]
    if points.low is None:
        return _too_few(question, figures, evidence)
    hours = f"{wasted.mean / 3600:,.0f} node-hours of work" if wasted else "no work"
    sentence = (
        f"Failures cost {_points(points)} of useful utilisation and {hours} under {site.policy}, "
        f"and change the mean flow by {change_text(flow)}."
    )
    return AnsweredQuestion(question, sentence, True, figures)


# ---- 2. which jobs bear the cost


def _who_pays(
    site: AdvisedSite, evidence: Evidence, owners: Sequence[WorkOwner]
) -> AnsweredQuestion:
    question = "Which jobs bear the cost of the failures?"
    cost = failures_cost(site, evidence.runs)
    figures = _figures([cost])
    by_class = {of: change for (name, of), change in cost.changes.items() if name == FLOW and of}
    paying = sorted(
        (of for of, change in by_class.items() if change.low is not None and change.low > 1),
        key=lambda of: -by_class[of].mean,
    )
    if all(change.low is None for change in by_class.values()):
        return _too_few(question, figures, evidence)
    texts = [
        f"jobs of {of} nodes (mean flow {change_text(by_class[of])})"
        for of in paying[:MOST_CLASSES]
    ]
    sentence = (
        f"The cost is highest for {', then for '.join(texts)}."
        if texts
        else "No size class has a significantly longer mean flow because of failures."
    )
    for owner in losers(owners):
        sentence += f" {owner.text}"
    return AnsweredQuestion(question, sentence, True, figures)


# ---- 3. which rule would help


def _which_rule(site: AdvisedSite, evidence: Evidence) -> AnsweredQuestion:
    question = "Which scheduler rule would help, and which jobs would it hurt?"
    compared = rules(site, evidence.runs)
    figures = _figures(compared)
    if all(item.changes[FLOW, None].low is None for item in compared):
        return _too_few(question, figures, evidence)
    helping = [
        item for item in compared if item.significant(FLOW) and item.changes[FLOW, None].mean < 1
    ]
    if not helping:
        sentence = f"None of the {len(compared)} other rules shortens the mean flow significantly."
        return AnsweredQuestion(question, sentence, True, figures)
    best = min(helping, key=lambda item: item.changes[FLOW, None].mean)
    parts = [
        f"{row_of(name).title} {change_text(best.changes[name, None])}"
        for name in (FLOW, LARGEST, USEFUL)
        if (name, None) in best.changes
    ]
    sentence = (
        f"{best.title}: {', '.join(parts)}. {_hurt(best)}{_under_fitted(site, evidence, best)}"
    )
    return AnsweredQuestion(question, sentence, True, figures)


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


# ---- 4. spare nodes


def _spare_nodes(site: AdvisedSite, evidence: Evidence) -> AnsweredQuestion:
    question = "How many spare nodes are worth keeping?"
    compared = spares(site, evidence.runs)
    figures = _figures([item for _, item in compared])
    if all(item.changes[FLOW, None].low is None for _, item in compared):
        return _too_few(question, figures, evidence)
    helping = [
        pair
        for pair in compared
        if pair[1].significant(FLOW) and pair[1].changes[FLOW, None].mean < 1
    ]
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


# ---- 5. checkpoint periods


def _periods(site: AdvisedSite, evidence: Evidence) -> AnsweredQuestion:
    question = "How often should jobs checkpoint?"
    compared = periods(site, evidence.runs)
    if not compared:
        return AnsweredQuestion(
            question, "Not answered: jobs have no checkpoints, or free checkpoints.", False, []
        )
    figures = [
        _figure(period_title(factor), USEFUL, change, "difference")
        for factor, change in compared.items()
    ]
    if all(change.low is None for change in compared.values()):
        return _too_few(question, figures, evidence)
    better = {f: c for f, c in compared.items() if c.low is not None and c.low > 0}
    never = compared.get(None)
    if better:
        factor = max(better, key=lambda f: better[f].mean)
        advice = (
            "Never"
            if factor is None
            else f"Every {period_text(site, factor)} ({factor:g} times the Young/Daly period)"
        )
        gain = f"useful utilisation is {_points(better[factor])} higher"
        sentence = f"{advice}: {gain} than with the Young/Daly period."
    else:
        sentence = (
            f"Every {period_text(site)} (the Young/Daly period). No other period is significantly "
            "better."
        )
        if never is not None:
            change = _points(never, signed=True)
            sentence += f" Without checkpoints, useful utilisation changes by {change}."
    return AnsweredQuestion(question, sentence, True, figures)


# ---- texts and figures


def _figures(compared: Sequence[EffectOfChoice]) -> list[Figure]:
    return [
        _figure(item.title, name if of is None else f"{name}:{of}", change)
        for item in compared
        for (name, of), change in item.changes.items()
    ]


def _figure(name: str, metric: str, change: Interval, kind: str = "ratio") -> Figure:
    return Figure(name, metric, change.mean, change.low, change.high, change.n, kind)


def _flow_and_useful(item: EffectOfChoice) -> str:
    return ", ".join(
        f"{row_of(name).title} {change_text(item.changes[name, None])}"
        for name in (FLOW, USEFUL)
        if (name, None) in item.changes
    )


def _points(change: Interval, signed: bool = False) -> str:
    sign = "+" if signed else ""
    text = f"{100 * change.mean:{sign}.2f} points"
    if change.low is None or change.high is None:
        return text
    unsure = "" if change.excludes(0.0) else " (not significant)"
    return f"{text} [{100 * change.low:{sign}.2f}, {100 * change.high:{sign}.2f}]{unsure}"


def _too_few(question: str, figures: list[Figure], evidence: Evidence) -> AnsweredQuestion:
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
