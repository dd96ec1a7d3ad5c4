"""The claims of RR-9296, section 5, judged by rules that are stated beside the verdict."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from rebat.kernels.resilient import HEURISTICS
from rebat.reports.parts import Judgement
from rebat.reports.silent_errors.evidence import (
    BEST,
    KINDS,
    LISTS,
    SHELVES,
    TRUE,
    Cell,
    Evidence,
    best_over_q,
)


def judge_synthetic(evidence: Evidence, source: str) -> Iterator[Judgement]:
    yield from _stale_shape(evidence, source)
    for heuristic in LISTS:
        line = evidence.line_over_q(source, heuristic, "LPT")
        if len(line) > 2:
            peak = max(line, key=lambda point: point[1])[0]
            yield Judgement(
                source,
                f"{heuristic}: normalised makespans first increase with q-bar, then decrease",
                "LPT: the q-bar of the largest mean is neither the first nor the last",
                peak,
                line[0][0] < peak < line[-1][0],
                "section 5.2, Figure 2",
            )
    for heuristics, best in ((LISTS, ("LPT", "LA")), (SHELVES, ("LPT", "SPT"))):
        yield from _best_rules(evidence, source, heuristics, best)
    lpt, la = (dict(evidence.line_over_q(source, "R-LIST-0", rule)) for rule in ("LPT", "LA"))
    if both := [la[q] - lpt[q] for q in la if q in lpt]:
        yield Judgement(
            source, "R-LIST-0: LA performs better than LPT under any q-bar",
            "largest of mean(LA) - mean(LPT) over q-bar, below 0", max(both), max(both) < 0,
            "section 5.2",
        )  # fmt: skip
    if 0.0 in lpt:
        rise = max(lpt.values()) / lpt[0.0] - 1
        yield Judgement(
            source, "R-LIST-0 is little affected by failures",
            "LPT: largest mean over that at q-bar = 0, minus 1, below 0.10", rise, rise < 0.10,
            "less than 10 % (section 5.2)",
        )  # fmt: skip
    yield from _worst(evidence, source)
    yield from _processors(evidence, source)


def _stale_shape(evidence: Evidence, source: str) -> Iterator[Judgement]:
    """What hangs on the kind of reservations, with either kind."""
    zero = best_over_q(evidence, source, "R-LIST-0", TRUE)
    for kept, words in KINDS:
        lists = [best_over_q(evidence, source, h, kept) for h in LISTS[1:]]
        if 0.5 in zero and 0.5 in lists[-1]:
            above = lists[-1][0.5] / zero[0.5] - 1
            yield Judgement(
                source,
                f"R-LIST-Q is far above R-LIST-0 at q-bar = 0.5 ({words})",
                f"{BEST}: mean(R-LIST-Q) / mean(R-LIST-0) - 1, at least 0.20",
                above,
                above >= 0.20,
                "26 % (section 5.2, Figure 4a)",
            )
        common = [q for q in zero if q > 0 and all(q in line for line in lists)]
        if common:
            least = min(min(line[q] for line in lists) / zero[q] for q in common)
            yield Judgement(
                source,
                f"R-LIST-0 outperforms R-LIST-1 and -Q when jobs can fail ({words})",
                f"{BEST}: smallest mean(R-LIST-1 or -Q) / mean(R-LIST-0) over q-bar > 0, above 1",
                least,
                least > 1,
                "clearly outperforms the rest (section 5.2)",
            )
        for name in LISTS[1:]:
            line = dict(evidence.line_over_q(source, name, "LPT", kept))
            if 0.0 in line and len(line) > 1:
                rise = max(line.values()) / line[0.0] - 1
                yield Judgement(
                    source,
                    f"{name} is much affected by failures ({words})",
                    "LPT: largest mean over that at q-bar = 0, minus 1, at least 0.20",
                    rise,
                    rise >= 0.20,
                    "20 to 30 % (section 5.2)",
                )


def _worst(evidence: Evidence, source: str) -> Iterator[Judgement]:
    """How bad it gets with good rules; the stale reservations, where they were played."""
    for kept, words in KINDS:
        lines = [best_over_q(evidence, source, name, kept) for name in HEURISTICS]
        if all(lines):
            largest = max(max(line.values()) for line in lines)
            yield Judgement(
                source,
                f"no heuristic is more than 40 % above the lower bound ({words})",
                f"{BEST}: largest mean over heuristics and q-bar, below 1.4",
                largest,
                largest < 1.4,
                "never more than 40 % worse, with good priorities (section 5.2)",
            )
    shelf, zero = (best_over_q(evidence, source, h, TRUE) for h in ("R-SHELF-NB", "R-LIST-0"))
    if 0.9 in shelf and 0.9 in zero:
        above = shelf[0.9] / zero[0.9] - 1
        yield Judgement(
            source,
            "R-SHELF-NB is far above R-LIST-0 at q-bar = 0.9",
            f"{BEST}: mean(R-SHELF-NB) / mean(R-LIST-0) - 1, at least 0.10",
            above,
            above >= 0.10,
            "15 % (section 5.2, Figure 4a)",
        )


def _best_rules(
    evidence: Evidence, source: str, heuristics: Sequence[str], best: tuple[str, str]
) -> Iterator[Judgement]:
    for heuristic in heuristics:
        overall = {
            rule: statistics.fmean(y for _, y in line)
            for rule in evidence.rules(source)
            if (line := evidence.line_over_q(source, heuristic, rule))
        }
        others = [mean for rule, mean in overall.items() if rule not in best]
        if others and all(rule in overall for rule in best):
            gap = min(others) - max(overall[rule] for rule in best)
            yield Judgement(
                source, f"{heuristic}: {' and '.join(best)} are the two best rules",
                "means over q-bar: best of the other rules minus the worse of the two, above 0",
                gap, gap > 0, "section 5.2, Figure 2",
            )  # fmt: skip


def _processors(evidence: Evidence, source: str) -> Iterator[Judgement]:
    """Figures 3 and 4(b)."""
    q, procs = evidence.over_procs(source)
    if len(procs) < 3:
        return
    for heuristic in LISTS:
        la, lpt = (
            dict(evidence.line_over_procs(source, heuristic, rule)) for rule in ("LA", "LPT")
        )
        if common := [p for p in la if p in lpt]:
            better = "LPT" if heuristic == "R-LIST-Q" else "LA"
            gaps = [(la[p] - lpt[p]) * (1 if better == "LPT" else -1) for p in common]
            yield Judgement(
                source, f"{heuristic}: {better} is the better of LPT and LA under all P",
                "smallest gap to the other rule over P, above 0", min(gaps), min(gaps) > 0,
                "section 5.2, Figure 3",
            )  # fmt: skip
    line = dict(evidence.line_over_procs(source, "R-LIST-0", "LA"))
    if line:
        spread = max(line.values()) / min(line.values()) - 1
        yield Judgement(
            source, "R-LIST-0 with LA is little affected by the number of processors",
            "largest mean over P divided by the smallest, minus 1, below 0.10", spread,
            spread < 0.10, "less than 10 % (section 5.2, Figure 4b)",
        )  # fmt: skip
    for kept, words in KINDS:
        wide = evidence.mean(Cell(source, 15_000, q, kept, "R-LIST-Q", "LPT"))
        if wide is not None and 15_000 in line:
            rise = wide / line[15_000] - 1
            yield Judgement(
                source, f"R-LIST-Q is far above R-LIST-0 at P = 15,000 ({words})",
                "mean(R-LIST-Q, LPT) / mean(R-LIST-0, LA) - 1, at least 0.15", rise, rise >= 0.15,
                "23 % (section 5.2, Figure 4b)",
            )  # fmt: skip


def judge_days(evidence: Evidence, source: str) -> Iterator[Judgement]:
    n_procs, qs = evidence.over_q(source)
    for q in qs:
        means = {
            heuristic: mean
            for heuristic in HEURISTICS
            if (mean := evidence.mean(Cell(source, n_procs, q, TRUE, heuristic, "LPT"))) is not None
        }
        if len(means) < len(HEURISTICS):
            continue
        if q > 0:
            lead = min(mean for name, mean in means.items() if name != "R-LIST-0")
            yield Judgement(
                source, f"R-LIST-0 is the best at q-bar = {q:g}",
                "LPT: best mean of the others minus R-LIST-0's, above 0", lead - means["R-LIST-0"],
                lead > means["R-LIST-0"], "section 5.3, Table 1",
            )  # fmt: skip
        gap = min(means[name] for name in SHELVES) - max(means[name] for name in LISTS)
        yield Judgement(
            source, f"the shelf-based heuristics are the worst at q-bar = {q:g}",
            "LPT: better mean of the shelves minus the worst of the lists, above 0", gap, gap > 0,
            "section 5.3, Table 1",
        )  # fmt: skip
        worst = max(
            row.mean
            for rule in ("LPT", "LA")
            for row in evidence.rows(Cell(source, n_procs, q, TRUE, "R-LIST-0", rule)).values()
        )
        yield Judgement(
            source, f"R-LIST-0 is never more than 50 % above the bound at q-bar = {q:g}",
            "LPT and LA: largest mean of a job set, below 1.5", worst, worst < 1.5, "section 5.3",
        )  # fmt: skip
