# SPDX-License-Identifier: Apache-2.0
"""Figures 2 to 4 of RR-9296: synthetic job sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rebat.models.resilient import HEURISTICS
from rebat.papers.common.parts import Key, Picture
from rebat.papers.silent_errors.drawing import RATIO, RatioPanel, draw, keys
from rebat.papers.silent_errors.published import ABOVE_OVER_PROCS, ABOVE_OVER_Q
from rebat.papers.silent_errors.sets import (
    BEST,
    KINDS,
    LISTS,
    SHELVES,
    STALE,
    JobSets,
    Line,
    Points,
    Sweep,
    over_procs,
    over_q,
)

PRINTED_KEY = Key("published value, in the colour of its heuristic", "#555555", "diamond")


class _Axis(NamedTuple):
    """The horizontal axis of two figures: label, unit, and values.

    ``where`` is a text that states the fixed parameter of the figures. ``above`` contains by how
    many percent each heuristic exceeds R-LIST-0 in the paper.
    """

    rules: str
    best: str
    axis: str
    scale: float
    where: str
    sweep: Sweep
    above: Mapping[str, Points]

    def of(self, lines: Mapping[str, Line]) -> dict[str, Points]:
        """Return the lines that are not empty, with values in the unit of the axis."""
        return {
            name: [(x / self.scale, y) for x, y in line.items()]
            for name, line in lines.items()
            if line
        }


def synthetic_pictures(sets: JobSets, source: str) -> Iterator[Picture]:
    """Yield Figures 2 to 4."""
    qs, procs = over_q(sets, source), over_procs(sets, source)
    for axis in (
        _Axis(
            "Figure 2",
            "4(a)",
            "average failure probability q-bar",
            1,
            f"P = {qs.fixed:,}",
            qs,
            ABOVE_OVER_Q,
        ),
        _Axis(
            "Figure 3",
            "4(b)",
            "thousands of processors",
            1000,
            f"q-bar = {procs.fixed:g}",
            procs,
            ABOVE_OVER_PROCS,
        ),
    ):
        if len(axis.sweep.xs) > 1:
            yield from _of_rules(axis)
            yield from _of_heuristics(axis)
            yield from _above_zero(axis)


def _of_rules(axis: _Axis) -> Iterator[Picture]:
    source, line = axis.sweep.source, axis.sweep.line
    rules = axis.sweep.sets.rules(source)
    for family, group in (("R-LIST", LISTS), ("R-SHELF", SHELVES)):
        panels = [RatioPanel(h, axis.axis, axis.of({r: line(h, r) for r in rules})) for h in group]
        yield from _picture(
            axis.rules, f"{source}: {family} and all rules, {axis.where}", panels, axis
        )


def _of_heuristics(axis: _Axis) -> Iterator[Picture]:
    line, panels, both = axis.sweep.line, [], []
    for rule in ("LPT", "LA"):
        ours = axis.of({h: line(h, rule) for h in HEURISTICS})
        stale = {f"{h}, {STALE}": line(h, rule, STALE) for h in LISTS[1:]}
        panels.append(RatioPanel(rule, axis.axis, ours))
        lists = {name: points for name, points in ours.items() if name in LISTS}
        both.append(RatioPanel(rule, axis.axis, {**lists, **axis.of(stale)}))
    source = axis.sweep.source
    yield from _picture(f"Figure {axis.best}", f"{source}: Algorithm 1, {axis.where}", panels, axis)
    if any(name.endswith(STALE) for panel in both for name in panel.lines):
        title = f"{source}: stale reservations and Algorithm 1, {axis.where}"
        yield from _picture(f"cf. Figure {axis.best}", title, both, axis)


def _above_zero(axis: _Axis) -> Iterator[Picture]:
    """Yield a picture of the percentages above R-LIST-0, with the published values."""
    zero = axis.sweep.best("R-LIST-0")
    printed = {
        name: [(x / axis.scale, y) for x, y in points] for name, points in axis.above.items()
    }
    panels = []
    for reservations, words in KINDS:
        lines = {}
        for heuristic in HEURISTICS[1:]:
            name = (
                f"{heuristic}, {STALE}"
                if reservations == STALE and heuristic in LISTS
                else heuristic
            )
            best = axis.sweep.best(heuristic, reservations)
            lines[name] = {x: 100 * (y / zero[x] - 1) for x, y in best.items() if x in zero}
        panels.append(RatioPanel(words, axis.axis, axis.of(lines), printed))
    shown = [panel for panel in panels if panel.lines]
    if shown:
        yield Picture(
            f"cf. Figure {axis.best}",
            f"{axis.sweep.source}: percentages above R-LIST-0, {axis.where}",
            draw(shown, "% above R-LIST-0"),
            note=f"Unit: % by which the mean makespan ratio exceeds R-LIST-0's, {BEST}. "
            f"{axis.sweep.basis}.",
            key=[*keys(_names(shown)), PRINTED_KEY],
        )


def _names(panels: Sequence[RatioPanel]) -> list[str]:
    return list(dict.fromkeys(name for panel in panels for name in panel.lines))


def _picture(
    paper: str, title: str, panels: Sequence[RatioPanel], axis: _Axis
) -> Iterator[Picture]:
    shown = [panel for panel in panels if panel.lines]
    if shown:
        note = f"Unit: {RATIO}, means. {axis.sweep.basis}."
        yield Picture(paper, title, draw(shown), note=note, key=keys(_names(shown)))
