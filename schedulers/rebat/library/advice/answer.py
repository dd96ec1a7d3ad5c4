# SPDX-License-Identifier: Apache-2.0
"""An answer to a question of an operator, and the numbers on which it is based."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rebat.library.advice.compared import EffectOfChoice
from rebat.library.advice.rounds import Evidence
from rebat.results.intervals import FEWEST, Interval


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


def points_text(change: Interval, signed: bool = False) -> str:
    sign = "+" if signed else ""
    text = f"{100 * change.mean:{sign}.2f} points"
    if change.low is None or change.high is None:
        return text
    unsure = "" if change.excludes(0.0) else " (not significant)"
    return f"{text} [{100 * change.low:{sign}.2f}, {100 * change.high:{sign}.2f}]{unsure}"


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
