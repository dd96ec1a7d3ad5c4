# SPDX-License-Identifier: Apache-2.0
"""Table 1 of Vardas et al. 2022, completion times, and gains beside the printed ones."""

from __future__ import annotations

from collections.abc import Iterator

from rebat.papers.common.parts import Table
from rebat.papers.torus.evidence import HOUR_S, Case, Evidence, Mean, Setting, mean_of
from rebat.papers.torus.published import FIGURES, GAINS, LINEAR, RPS, SIZE, TABLE_1


def tables(evidence: Evidence) -> Iterator[Table]:
    if evidence.mttf_s:
        yield _table_1(evidence)
    for setting in evidence.batches:
        yield _completion(evidence, setting)
        yield _gains(evidence, setting)


def _table_1(evidence: Evidence) -> Table:
    rows = []
    for (trace, torus), by_metric in evidence.mttf_s.items():
        law, paper_trace = evidence.laws[trace], evidence.paper_trace(trace, torus)
        printed = TABLE_1.get(paper_trace) if paper_trace else None
        scale_h, shape = law or ("", "")
        cells = [trace, torus, f"{scale_h:g}" if law else "", f"{shape:g}" if law else ""]
        for metric, digits, paper in (
            ("node_mttf_s", 1, printed and printed.node_mttf_h),
            ("system_mttf_s", 3, printed and printed.system_mttf_h),
        ):
            mean = mean_of(list(by_metric[metric].values()))
            cells += [_number(mean, digits, HOUR_S), f"{paper:g}" if paper else ""]
        rows.append([*cells, printed.remark if printed else ""])
    columns = ["trace", "torus", "scale (h)", "shape"]
    columns += ["node MTTF (h)", "paper", "system MTTF (h)", "paper", "remark"]
    of_paper = any(evidence.paper_trace(*one) for one in evidence.mttf_s)
    name = "Table 1" if of_paper else "not in the paper"
    return Table(name, "mean times to failure", columns, rows)


def _completion(evidence: Evidence, setting: Setting) -> Table:
    rows, cases = [], evidence.cases(setting)
    for duration_s in evidence.durations_s(setting):
        means = [evidence.of(setting, Case(duration_s, *case)) for case in cases]
        rows.append([f"{duration_s / HOUR_S:g} h", *(_number(m, 0, HOUR_S) for m in means)])
    columns = ["jobs of", *(f"{policy} {which or ''}".strip() for policy, which in cases)]
    return Table(figure_of(evidence, setting), f"{setting.label}: completion (h)", columns, rows)


def _gains(evidence: Evidence, setting: Setting) -> Table:
    rows = []
    law = evidence.trace(setting)
    for duration_s in evidence.durations_s(setting):
        cases = [Case(duration_s, "faps", which) for which in evidence.lists(setting)]
        for case in [*cases, Case(duration_s, "ceiling", None)]:
            if case not in evidence.batches[setting]:
                continue
            cells = []
            for over in (LINEAR, RPS):
                gain = evidence.gain(setting, case, over) if case.which or over == LINEAR else None
                printed: tuple[float, ...] = ()
                if law and setting.size == SIZE and case.policy == "faps":
                    printed = GAINS.get((law, duration_s / HOUR_S, over), ())
                cells += [_share(gain), ", ".join(f"{share:.1%}" for share in printed)]
            hours = f"{duration_s / HOUR_S:g} h"
            aborts = _number(evidence.of(setting, case, "aborts"), 0)
            rows.append([hours, case.policy, case.which or "", aborts, *cells])
    columns = ["jobs of", "policy", "list", "aborts"]
    columns += ["over Slurm-linear", "paper", "over RPS, same list", "paper"]
    title = f"{setting.label}: how much sooner the batch ends"
    return Table(figure_of(evidence, setting), title, columns, rows)


def figure_of(evidence: Evidence, setting: Setting) -> str:
    """Which of the paper's figures shows these."""
    law = evidence.trace(setting)
    name, size = FIGURES.get(law[0], ("", 0)) if law else ("", 0)
    return name if size == setting.size else "not in the paper"


def _number(mean: Mean | None, digits: int, unit: float = 1.0) -> str:
    if mean is None:
        return ""
    text = f"{mean.value / unit:.{digits}f}"
    return text if not mean.half else f"{text} ± {mean.half / unit:.{digits}f}"


def _share(mean: Mean | None) -> str:
    if mean is None:
        return ""
    text = f"{mean.value:.1%}"
    return text if not mean.half else f"{text} ± {mean.half * 100:.1f}"
