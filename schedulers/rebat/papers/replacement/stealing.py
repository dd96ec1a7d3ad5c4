# SPDX-License-Identifier: Apache-2.0
"""Rigid jobs of a production machine: what replacement gives against node stealing."""

from __future__ import annotations

from collections.abc import Iterator

from rebat.core.units import format_duration
from rebat.papers.common.parts import Judgement, Table, number, percent
from rebat.papers.common.runs_index import Setting, mean, relative
from rebat.papers.replacement.evidence import Case, Evidence
from rebat.papers.replacement.tables import change
from rebat.papers.torus.load_tables import points, written
from rebat.results.estimates import Estimate, paired
from rebat.results.intervals import BySeed

METRICS = (
    ("useful utilisation", "useful_utilisation", "", percent),
    ("weighted mean flow", "flow_weighted_mean_s", "all", format_duration),
    ("mean flow", "flow_mean_s", "all", format_duration),
    ("largest flow", "flow_max_s", "all", format_duration),
    ("failures under a job", "failures_hit", "", number),
    ("replaced by idle nodes", "resizes_by_idle", "", number),
    ("waited", "resizes_requeued", "", number),
    ("steals", "steals", "", number),
    ("jobs rejected", "rejected", "", number),
)
_NOT_TRIED = "not in the paper"
_TRIED = "node stealing for failed jobs (Du et al. 2024, section 6.1)"


def compared(evidence: Evidence) -> Iterator[Setting]:
    """Where both replacement and stealing were run."""
    for setting in evidence.settings:
        cases = evidence.cases(setting)
        if any(c.steals for c in cases) and any(c.replaces and not c.steals for c in cases):
            yield setting


def tables(evidence: Evidence) -> Iterator[Table]:
    """What each way to react made of a month, and against the baseline on the same failures."""
    for setting in compared(evidence):
        yield _means(evidence, setting)
        base = evidence.find(setting, "baseline")
        if base:
            yield _differences(evidence, setting, base)


def _means(evidence: Evidence, setting: Setting) -> Table:
    rows = [
        [case.label, *(
            written(mean(evidence.values(setting, case, metric, size_class)), shown)
            for _, metric, size_class, shown in METRICS
        )]
        for case in evidence.cases(setting)
    ]  # fmt: skip
    title = f"{setting.workload}: replacement and stealing ({setting.scenario.label})"
    return Table("means over seeds", title, ["policy", *(m[0] for m in METRICS)], rows)


def _differences(evidence: Evidence, setting: Setting, base: Case) -> Table:
    rows = []
    for case in evidence.cases(setting):
        if case != base:
            cells = [written(_points(evidence, setting, case, base), points)]
            for metric in ("flow_weighted_mean_s", "flow_mean_s", "flow_max_s"):
                ours, theirs = (evidence.values(setting, c, metric, "all") for c in (case, base))
                cells.append(written(mean(relative(ours, theirs)), change))
            rows.append([case.label, *cells])
    columns = ["policy", "utilisation, points", "weighted mean flow", "mean flow", "largest flow"]
    title = f"{setting.workload}: against the baseline on the same failures"
    return Table("paired by seed", title, columns, rows)


def _utilisations(evidence: Evidence, setting: Setting, *cases: Case) -> Iterator[BySeed]:
    return (evidence.values(setting, case, "useful_utilisation") for case in cases)


def _points(evidence: Evidence, setting: Setting, ours: Case, base: Case) -> Estimate | None:
    return paired(*_utilisations(evidence, setting, ours, base))


def _pure(evidence: Evidence, setting: Setting) -> dict[str, Case]:
    """The baseline, replacement, stealing and both, without other axes, as far as they were run."""
    kinds = {
        (False, False): "baseline", (True, False): "replacement",
        (False, True): "stealing", (True, True): "both",
    }  # fmt: skip
    found: dict[str, Case] = {}
    for case in evidence.cases(setting):
        if not (case.rest or case.how):
            found.setdefault(kinds[case.replaces, case.steals], case)
    return found


def judge(evidence: Evidence) -> Iterator[Judgement]:
    """Which of them makes better use of the machine."""
    for setting in compared(evidence):
        who = _pure(evidence, setting)
        for ours, base, paper in (
            ("replacement", "baseline", _NOT_TRIED), ("stealing", "baseline", _TRIED),
            ("replacement", "stealing", _NOT_TRIED), ("both", "stealing", _NOT_TRIED),
        ):  # fmt: skip
            if ours in who and base in who:
                found = _points(evidence, setting, who[ours], who[base])
                if found:
                    sure = "" if found.differs else " (the seeds do not decide)"
                    yield Judgement(
                        setting.workload, f"{ours} makes better use of the machine than {base}",
                        f"mean difference of the useful utilisation, above 0{sure}", found.mean,
                        found.mean > 0, paper, found.half,
                    )  # fmt: skip


def answers(evidence: Evidence) -> Iterator[str]:
    """What replacement would give on each machine against stealing, in a sentence."""
    for setting in compared(evidence):
        who = _pure(evidence, setting)
        gains = {
            kind: _points(evidence, setting, case, who["baseline"])
            for kind, case in who.items()
            if kind != "baseline" and "baseline" in who
        }
        told = ", ".join(f"{kind} {written(gain, points)}" for kind, gain in gains.items() if gain)
        if told:
            yield (
                f"What would replacement give on {setting.workload} against node stealing? Points "
                f"of useful utilisation over the baseline on the same failures: {told}. Rigid jobs "
                "can be helped by idle nodes alone; replacement keeps those of the job that are "
                "alive, and waits where stealing takes a node from another."
            )
