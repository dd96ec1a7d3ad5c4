# SPDX-License-Identifier: Apache-2.0
"""The claims of RR-9296, section 5.2, on the number of processors: Figures 3 and 4(b)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import fmean

from rebat.models.resilient import HEURISTICS
from rebat.reports.parts import Judgement
from rebat.reports.silent_errors.evidence import BEST, LISTS, TRUE, Evidence
from rebat.reports.silent_errors.judging import above, between, judged, of_each, with_both

WIDE = 15_000
"""Where the paper compares R-LIST-Q with R-LIST-0."""

Line = Mapping[float, float]
"""The mean on each number of processors."""


def judge_over_procs(evidence: Evidence, source: str) -> Iterator[Judgement]:
    if len(evidence.over_procs(source)[1]) < 3:
        return
    found = _Processors(evidence, source)
    for heuristic in HEURISTICS:
        yield from found.best_rules(heuristic)
    yield from of_each(HEURISTICS, found.better_of_two)
    yield from of_each(HEURISTICS, found.hump)
    yield from found.little_affected()
    for make in (found.zero_best, found.zero_least_affected, found.q_worst, found.q_far_above,
                 found.q_varies, found.never_far_from_the_bound):  # fmt: skip
        yield from with_both(make)


class _Processors:
    """Claims at the failure probability of Figure 3."""

    def __init__(self, evidence: Evidence, source: str) -> None:
        self.evidence, self.source = evidence, source

    def line(self, heuristic: str, kept: str, rule: str = "LPT") -> Line:
        return dict(self.evidence.line_over_procs(self.source, heuristic, rule, kept))

    def best(self, heuristic: str, kept: str) -> Line:
        """With the better of LPT and LA on each number of processors."""
        lpt, la = (self.line(heuristic, kept, rule) for rule in ("LPT", "LA"))
        return {p: min(lpt[p], la[p]) for p in lpt if p in la}

    def others(self, kept: str) -> dict[str, Line]:
        """By heuristic but R-LIST-0, `best`; none where some was not played."""
        found = {name: self.best(name, kept) for name in HEURISTICS[1:]}
        return found if all(found.values()) else {}

    def best_rules(self, heuristic: str) -> Iterator[Judgement]:
        overall = {
            rule: fmean(line.values())
            for rule in self.evidence.rules(self.source)
            if (line := self.line(heuristic, TRUE, rule))
        }
        others = [mean for rule, mean in overall.items() if rule not in ("LPT", "LA")]
        if others and {"LPT", "LA"} <= overall.keys():
            yield judged(
                self.source, f"{heuristic}: LA and LPT are the two best rules over P",
                "means over P: best of the other rules minus the worse of the two",
                min(others) - max(overall["LPT"], overall["LA"]), above(0), "section 5.2, Figure 3",
            )  # fmt: skip

    def better_of_two(self, heuristic: str, kept: str, name: str) -> Judgement | None:
        la, lpt = (self.line(heuristic, kept, rule) for rule in ("LA", "LPT"))
        better, sign = ("LA", -1) if heuristic in LISTS[:2] else ("LPT", 1)
        gaps = [(la[p] - lpt[p]) * sign for p in la if p in lpt]
        return judged(
            self.source, f"{name}: {better} is the better of LPT and LA under all P",
            "smallest gap to the other rule over P", min(gaps), above(0), "section 5.2, Figure 3",
        ) if gaps else None  # fmt: skip

    def hump(self, heuristic: str, kept: str, name: str) -> Judgement | None:
        line = self.line(heuristic, kept)
        if len(line) < 3:
            return None
        inside = sorted(line)[1:-1]
        return judged(
            self.source, f"{name}: normalised makespans first increase with P, then decrease",
            "LPT: the P of the largest mean", max(line, key=lambda p: line[p]),
            between(inside[0], inside[-1]), "section 5.2, Figure 3",
        )  # fmt: skip

    def little_affected(self) -> Iterator[Judgement]:
        if line := self.line("R-LIST-0", TRUE, "LA"):
            yield judged(
                self.source, "R-LIST-0 with LA is little affected by the number of processors",
                _SPREAD, _spread(line), between(0, 0.10),
                "less than 10 % (section 5.2, Figure 4b)",
            )  # fmt: skip

    def zero_best(self, kept: str, words: str) -> Judgement | None:
        zero = self.line("R-LIST-0", TRUE, "LA")
        ratios = [mean / zero[p] for line in self.others(kept).values() for p, mean in line.items()]
        return judged(
            self.source, f"R-LIST-0 with LA is the best under all P ({words})",
            f"{BEST}: smallest mean(other) / mean(R-LIST-0, LA) over others and P", min(ratios),
            above(1), "section 5.2, Figure 4b",
        ) if ratios else None  # fmt: skip

    def zero_least_affected(self, kept: str, words: str) -> Judgement | None:
        spreads = [_spread(line) for line in self.others(kept).values()]
        zero = self.line("R-LIST-0", TRUE, "LA")
        return judged(
            self.source, f"R-LIST-0 with LA is the least affected by P ({words})",
            f"{BEST}: smallest spread (largest mean over smallest) of the others minus its own",
            min(spreads) - _spread(zero), above(0), "section 5.2, Figure 4b",
        ) if spreads else None  # fmt: skip

    def q_worst(self, kept: str, words: str) -> Judgement | None:
        means = {name: line[WIDE] for name, line in self.others(kept).items() if WIDE in line}
        q = means.pop("R-LIST-Q", None)
        return judged(
            self.source, f"R-LIST-Q is the worst at P = {WIDE:,} ({words})",
            f"{BEST}: mean(R-LIST-Q) over the largest mean of the others",
            q / max(means.values()), above(1), "section 5.2, Figure 4b",
        ) if q and means else None  # fmt: skip

    def q_far_above(self, kept: str, words: str) -> Judgement | None:
        q, zero = self.best("R-LIST-Q", kept), self.line("R-LIST-0", TRUE, "LA")
        return judged(
            self.source, f"R-LIST-Q is far above R-LIST-0 at P = {WIDE:,} ({words})",
            f"{BEST}: mean(R-LIST-Q) / mean(R-LIST-0, LA) - 1", q[WIDE] / zero[WIDE] - 1,
            between(0.17, 0.29), "23 % (section 5.2, Figure 4b)",
        ) if WIDE in q and WIDE in zero else None  # fmt: skip

    def q_varies(self, kept: str, words: str) -> Judgement | None:
        line = self.best("R-LIST-Q", kept)
        return judged(
            self.source, f"R-LIST-Q varies much with P ({words})", f"{BEST}: {_SPREAD}",
            _spread(line), between(0.15, 0.25), "about 20 % (section 5.2, Figure 4b)",
        ) if line else None  # fmt: skip

    def never_far_from_the_bound(self, kept: str, words: str) -> Judgement | None:
        means = [mean for line in self.others(kept).values() for mean in line.values()]
        return judged(
            self.source, f"no heuristic is more than 40 % above the bound under any P ({words})",
            f"{BEST}: largest mean over heuristics and P", max(means), between(1, 1.4),
            "never more than 40 % worse, with good priorities (section 5.2)",
        ) if means else None  # fmt: skip


_SPREAD = "largest mean over P over the smallest, minus 1"


def _spread(line: Line) -> float:
    return max(line.values()) / min(line.values()) - 1
