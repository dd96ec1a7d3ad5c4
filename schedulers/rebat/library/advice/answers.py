# SPDX-License-Identifier: Apache-2.0
"""Answers to six questions of an operator, each in one sentence with an interval."""

from __future__ import annotations

from collections.abc import Sequence

from rebat.core.formatting import counted
from rebat.library.advice.answer import (
    AnsweredQuestion,
    figure_of,
    figures_of,
    points_text,
    too_few,
)
from rebat.library.advice.compared import (
    FLOW,
    LARGEST,
    USEFUL,
    EffectOfChoice,
    failures_cost,
    period_title,
    periods,
    rules,
    setting_of,
    spares,
    title_of,
)
from rebat.library.advice.costs import cost_answer, saving_answer
from rebat.library.advice.design import FITTED, AdvisedSite, period_text
from rebat.library.advice.owners import WorkOwner, losers
from rebat.library.advice.rounds import Evidence
from rebat.results.catalogue import metric as row_of
from rebat.results.comparison import change_text
from rebat.results.intervals import ratio_of_means

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
            share = f"{group.lost_h / record.lost_h:.1%} of the lost work"
            texts.append(f"{name} ({group.lost_h:,.0f} node-hours, {share})")
    return f"In the record, these lost most: {', '.join(texts)}. " if texts else ""


# ---- which rule would help


def _which_rule(site: AdvisedSite, evidence: Evidence) -> AnsweredQuestion:
    question = "Which scheduler rule would help, and which jobs would it hurt?"
    compared = rules(site, evidence.runs)
    figures = figures_of(compared)
    if all(item.changes[FLOW, None].low is None for item in compared):
        return too_few(question, figures, evidence)
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


# ---- spare nodes


def _spare_nodes(site: AdvisedSite, evidence: Evidence) -> AnsweredQuestion:
    question = "How many spare nodes are worth keeping?"
    compared = spares(site, evidence.runs)
    figures = figures_of([item for _, item in compared])
    if all(item.changes[FLOW, None].low is None for _, item in compared):
        return too_few(question, figures, evidence)
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
            else f"Every {period_text(site, factor)} ({factor:g} times the Young/Daly period)"
        )
        gain = f"useful utilisation is {points_text(better[factor])} higher"
        sentence = f"{advice}: {gain} than with the Young/Daly period."
    else:
        sentence = (
            f"Every {period_text(site)} (the Young/Daly period). No other period is significantly "
            "better."
        )
        if never is not None:
            change = points_text(never, signed=True)
            sentence += f" Without checkpoints, useful utilisation changes by {change}."
    return AnsweredQuestion(question, sentence, True, figures)


# ---- texts


def _flow_and_useful(item: EffectOfChoice) -> str:
    return ", ".join(
        f"{row_of(name).title} {change_text(item.changes[name, None])}"
        for name in (FLOW, USEFUL)
        if (name, None) in item.changes
    )
