# SPDX-License-Identifier: Apache-2.0
"""Figures 4 to 9 of Prabhakaran et al. 2018, from our runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rebat.figures.boxes import stacks, svg_of
from rebat.figures.canvas import colours, new_figure
from rebat.papers.common.parts import Picture
from rebat.papers.common.runs_index import Setting, mean
from rebat.papers.replacement.evidence import SOURCES, Case, Evidence
from rebat.papers.replacement.medians import middle
from rebat.papers.replacement.published import FIGURES
from rebat.papers.replacement.published import SOURCES as PRINTED
from rebat.papers.replacement.tables import NO_FAILURES

CASES = (NO_FAILURES, "failures", "failures, replacement")


def pictures(evidence: Evidence) -> Iterator[Picture]:
    """Two for each workload of Table III."""
    for workload, (makespans, sources) in FIGURES.items():
        setting = evidence.main(workload)
        if setting is None:
            continue
        yield Picture(makespans, f"{workload}: makespan", _makespans(evidence, setting))
        shares = _sources(evidence, setting)
        if shares:
            yield Picture(
                sources, f"{workload}: sources of replacements", stacks(shares, "mean share")
            )


def _makespans(evidence: Evidence, setting: Setting) -> str:
    """A group of bars per policy; whiskers are their intervals."""
    plain = [one for one in evidence.cases(setting) if not (one.replaces or one.rest or one.how)]
    figure = new_figure(1.5 + 1.5 * len(plain), 3.4)
    axis = figure.subplots()
    for place, (case, colour) in enumerate(zip(CASES, colours(len(CASES)), strict=True)):
        _bars(axis, evidence, setting, plain, place, case, colour)
    axis.set_xticks(range(len(plain)), [one.label for one in plain])
    axis.set_ylabel("makespan (h)", fontsize=9)
    axis.legend(frameon=False, fontsize=7, bbox_to_anchor=(1, 1), loc="upper left")
    axis.grid(axis="y", alpha=0.3)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    return svg_of(figure)


def _bars(
    axis: Any, evidence: Evidence, setting: Setting, plain: list[Case], place: int, case: str,
    colour: Any,
) -> None:  # fmt: skip
    width = 0.8 / len(CASES)
    shown = []
    for x, policy in enumerate(plain):
        if case == NO_FAILURES:
            values = evidence.free(setting, policy, "makespan_s")
        else:
            asked = policy._replace(replaces=case != "failures")
            values = evidence.values(setting, asked, "makespan_s")
        found = middle(values)
        if found:
            value, *ends = (number / 3600 for number in found[:3])
            shown.append((x + (place - 1) * width, value, value - ends[0], ends[1] - value))
    if shown:
        at, heights, below, above = zip(*shown, strict=True)
        axis.bar(at, heights, width, yerr=(below, above), error_kw={"linewidth": 0.6}, color=colour,
                 label=case)  # fmt: skip


def _sources(evidence: Evidence, setting: Setting) -> dict[str, dict[str, float]]:
    """Policy -> source -> mean share of all hits, and the paper's."""
    found = {}
    for case in evidence.cases(setting):
        means = {name: mean(evidence.shares(setting, case, name)) for name in SOURCES}
        if case.replaces and all(means.values()):
            label = case.label.replace(" with replacement", "")
            found[label] = {SOURCES[name]: one.mean for name, one in means.items() if one}
    printed = PRINTED.get(setting.workload)
    if found and printed:
        found["paper"] = {SOURCES[name]: share for name, share in printed.items()}
    return found
