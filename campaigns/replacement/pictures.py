# SPDX-License-Identifier: Apache-2.0
"""Figures 4 to 9 of Prabhakaran et al. 2018, from rebat's runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rebat.figures.boxes import stacks, svg_of, whiskers
from rebat.figures.canvas import colours, new_figure
from rebat.report.parts import Picture
from rebat.report.runs_index import Setting
from rebat.results.intervals import Interval, any_interval, interval

from .published import FIGURES
from .published import SOURCES as PRINTED
from .runs import SOURCES, ReplacementCase, Runs, free
from .tables import NO_FAILURES

CASES = (NO_FAILURES, "failures", "failures, replacement")


def pictures(runs: Runs) -> Iterator[Picture]:
    """Yield two figures for each workload of Table III."""
    for workload, (makespans, sources) in FIGURES.items():
        setting = runs.main(workload)
        if setting is None:
            continue
        yield _makespans(runs, setting, makespans)
        shares = _sources(runs, setting)
        if shares:
            yield Picture(
                sources, f"{workload}: sources of replacements", stacks(shares, "mean share")
            )


def _makespans(runs: Runs, setting: Setting, paper: str) -> Picture:
    """Draw a group of bars per policy. Whiskers are 95 % intervals."""
    plain = [c for c in runs.cases(setting) if not (c.replaces or c.other_axes or c.how)]
    figure = new_figure(1.5 + 1.5 * len(plain), 3.4)
    axis = figure.subplots()
    drawn = False
    for place, (case, colour) in enumerate(zip(CASES, colours(len(CASES)), strict=True)):
        medians = [_median(runs, setting, policy, case) for policy in plain]
        _bars(axis, medians, place, case, colour)
        drawn = drawn or any_interval(medians)
    axis.set_xticks(range(len(plain)), [case.label for case in plain])
    axis.set_ylabel("makespan (h)", fontsize=9)
    axis.legend(frameon=False, fontsize=7, bbox_to_anchor=(1, 1), loc="upper left")
    axis.grid(axis="y", alpha=0.3)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    title = f"{setting.workload}: makespan"
    return Picture(paper, title, svg_of(figure), intervals=drawn)


def _median(runs: Runs, setting: Setting, policy: ReplacementCase, case: str) -> Interval | None:
    if case == NO_FAILURES:
        values = free(runs, setting, policy)
    else:
        failing = policy._replace(replaces=case != "failures")
        values = runs.values(setting, failing, "makespan_s")
    return interval(values, of_median=True)


def _bars(
    axis: Any, medians: Sequence[Interval | None], place: int, case: str, colour: Any
) -> None:
    width = 0.8 / len(CASES)
    shown = [(x + (place - 1) * width, y) for x, y in enumerate(medians) if y]
    if shown:
        at, bars = zip(*shown, strict=True)
        axis.bar(
            at,
            [median.mean / 3600 for median in bars],
            width,
            yerr=whiskers(bars, 3600),
            error_kw={"linewidth": 0.6},
            color=colour,
            label=case,
        )


def _sources(runs: Runs, setting: Setting) -> dict[str, dict[str, float]]:
    """Return the mean share of each source of nodes, by policy.

    The last entry contains the published shares.
    """
    shares = {}
    for case in runs.cases(setting):
        means = {name: runs.mean(setting, case, f"share_{name}") for name in SOURCES}
        if case.replaces and None not in means.values():
            label = case.label.replace(" with replacement", "")
            shares[label] = {SOURCES[name]: mean or 0.0 for name, mean in means.items()}
    printed = PRINTED.get(setting.workload)
    if shares and printed:
        shares["paper"] = {SOURCES[name]: share for name, share in printed.items()}
    return shares
