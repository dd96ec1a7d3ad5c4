# SPDX-License-Identifier: Apache-2.0
"""Tables of MTTFs (Table 1 of Vardas et al. 2022), completion times, and gains."""

from __future__ import annotations

from collections.abc import Iterator

from rebat.papers.common.parts import Table
from rebat.papers.torus.batches import ALONE, HOUR_S, Batches, BatchSetting, PlacementCase
from rebat.papers.torus.published import FIGURES, GAINS, LINEAR, RPS, SIZE, TABLE_1
from rebat.results.intervals import Interval, interval, spread


def tables(batches: Batches) -> Iterator[Table]:
    """Yield the tables for which there are runs."""
    if batches.traces:
        yield _table_1(batches)
    for setting in batches.settings:
        yield _completion(batches, setting)
        yield _gains(batches, setting)


def _table_1(batches: Batches) -> Table:
    rows = []
    for setting in batches.traces:
        law, paper_trace = batches.laws[setting.trace], batches.trace(setting)
        printed = TABLE_1.get(paper_trace) if paper_trace else None
        scale_h, shape = law or (0.0, 0.0)
        cells = [
            setting.trace,
            setting.torus,
            f"{scale_h:g}" if law else "",
            f"{shape:g}" if law else "",
        ]
        for metric, digits, paper in (
            ("node_mttf_s", 1, printed and printed.node_mttf_h),
            ("system_mttf_s", 3, printed and printed.system_mttf_h),
        ):
            mean = batches.of(setting, ALONE, metric)
            cells += [_number(mean, digits, HOUR_S), f"{paper:g}" if paper else ""]
        rows.append([*cells, printed.remark if printed else ""])
    columns = ["trace", "torus", "scale (h)", "shape"]
    columns += ["node MTTF (h)", "paper", "system MTTF (h)", "paper", "remark"]
    of_paper = any(batches.trace(setting) for setting in batches.traces)
    name = "Table 1" if of_paper else "not in the paper"
    return Table(name, "mean times to failure", columns, rows)


def _completion(batches: Batches, setting: BatchSetting) -> Table:
    rows, cases = [], batches.played(setting)
    for duration_s in batches.durations_s(setting):
        means = [batches.of(setting, PlacementCase(duration_s, *case)) for case in cases]
        rows.append([f"{duration_s / HOUR_S:g} h", *(_number(m, 0, HOUR_S) for m in means)])
    columns = ["jobs of", *(f"{policy} {which or ''}".strip() for policy, which in cases)]
    return Table(
        figure_of(batches, setting), f"{setting.label}: completion time (h)", columns, rows
    )


def _gains(batches: Batches, setting: BatchSetting) -> Table:
    rows = []
    law = batches.trace(setting)
    for duration_s in batches.durations_s(setting):
        cases = [PlacementCase(duration_s, "faps", which) for which in batches.lists(setting)]
        for case in [*cases, PlacementCase(duration_s, "ceiling", None)]:
            if case not in batches.cases(setting):
                continue
            cells = []
            for over in (LINEAR, RPS):
                gain = None
                if case.which or over == LINEAR:
                    gain = interval(batches.gains(setting, case, over))
                printed: tuple[float, ...] = ()
                if law and setting.size == SIZE and case.policy == "faps":
                    printed = GAINS.get((law, duration_s / HOUR_S, over), ())
                cells += [_share(gain), ", ".join(f"{share:.1%}" for share in printed)]
            hours = f"{duration_s / HOUR_S:g} h"
            aborts = _number(batches.of(setting, case, "aborts"), 0)
            rows.append([hours, case.policy, case.which or "", aborts, *cells])
    columns = ["jobs of", "policy", "list", "aborts"]
    columns += ["over Slurm-linear", "paper", "over RPS, same list", "paper"]
    title = f"{setting.label}: gain of FAPS (how much sooner its batch completes)"
    return Table(figure_of(batches, setting), title, columns, rows)


def figure_of(batches: Batches, setting: BatchSetting) -> str:
    """Return the figure of the paper that shows a setting."""
    law = batches.trace(setting)
    name, size = FIGURES.get(law[0], ("", 0)) if law else ("", 0)
    return name if size == setting.size else "not in the paper"


def _number(estimate: Interval | None, digits: int, unit: float = 1.0) -> str:
    return spread(estimate, lambda value: f"{value / unit:.{digits}f}")


def _share(estimate: Interval | None) -> str:
    return spread(estimate, "{:.1%}".format)
