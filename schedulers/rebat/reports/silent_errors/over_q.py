# SPDX-License-Identifier: Apache-2.0
"""The claims of RR-9296, section 5.2, on the failure probability: Figures 2 and 4(a)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from rebat.models.resilient import HEURISTICS
from rebat.reports.parts import Judgement
from rebat.reports.silent_errors.evidence import BEST, LISTS, SHELVES, TRUE, Evidence, best_over_q
from rebat.reports.silent_errors.judging import above, below, between, judged, of_each, with_both

LOW_Q = 0.2
"""A failure probability up to this is called low."""

Line = Mapping[float, float]
"""The mean at each failure probability."""


def judge_over_q(evidence: Evidence, source: str) -> Iterator[Judgement]:
    one = _OneHeuristic(evidence, source)
    yield from of_each(LISTS, one.hump)
    yield from of_each(SHELVES, one.independent)
    for names, best in ((LISTS, ("LPT", "LA")), (SHELVES, ("LPT", "SPT"))):
        yield from _best_rules(evidence, source, names, best)
    yield from of_each(LISTS[:1], one.la_better)
    yield from of_each(LISTS[1:], one.lpt_better_when_low)
    yield from of_each(LISTS[:1], one.little_affected)
    yield from of_each(HEURISTICS[1:], one.much_affected)
    all_of_them = _Comparison(evidence, source)
    for make in (
        all_of_them.alike_without_failures, all_of_them.zero_outperforms,
        all_of_them.q_worst_in_the_middle, all_of_them.q_far_above, all_of_them.shelf_worst_outside,
        all_of_them.never_far_from_the_bound,
    ):  # fmt: skip
        yield from with_both(make)
    yield from all_of_them.with_one_kind()


def _best_rules(
    evidence: Evidence, source: str, heuristics: Sequence[str], best: tuple[str, str]
) -> Iterator[Judgement]:
    for heuristic in heuristics:
        overall = {
            rule: fmean(y for _, y in line)
            for rule in evidence.rules(source)
            if (line := evidence.line_over_q(source, heuristic, rule))
        }
        others = [mean for rule, mean in overall.items() if rule not in best]
        if others and all(rule in overall for rule in best):
            yield judged(
                source,
                f"{heuristic}: {' and '.join(best)} are the two best rules",
                "means over q-bar: best of the other rules minus the worse of the two",
                min(others) - max(overall[rule] for rule in best),
                above(0),
                "section 5.2, Figure 2",
            )


class _OneHeuristic:
    """Claims on a heuristic by itself."""

    def __init__(self, evidence: Evidence, source: str) -> None:
        self.evidence, self.source = evidence, source

    def line(self, heuristic: str, kept: str, rule: str = "LPT") -> Line:
        return dict(self.evidence.line_over_q(self.source, heuristic, rule, kept))

    def gaps(self, heuristic: str, kept: str) -> Line:
        """mean(LA) - mean(LPT)."""
        lpt, la = (self.line(heuristic, kept, rule) for rule in ("LPT", "LA"))
        return {q: la[q] - lpt[q] for q in la if q in lpt}

    def hump(self, heuristic: str, kept: str, name: str) -> Judgement | None:
        line = self.line(heuristic, kept)
        if len(line) < 3:
            return None
        inside = sorted(line)[1:-1]
        return judged(
            self.source,
            f"{name}: normalised makespans first increase with q-bar, then decrease",
            "LPT: the q-bar of the largest mean",
            max(line, key=lambda q: line[q]),
            between(inside[0], inside[-1]),
            "section 5.2, Figure 2",
        )

    def independent(self, heuristic: str, kept: str, name: str) -> Judgement | None:
        line = self.line(heuristic, kept)
        if len(line) < 3:
            return None
        middle = fmean(line.values())
        return judged(
            self.source,
            f"{name}: performance appears to be independent of q-bar",
            "LPT: mean / mean over all q-bar - 1, where it is farthest from 0",
            max((mean / middle - 1 for mean in line.values()), key=abs),
            between(-0.05, 0.05),
            "section 5.2, Figure 2",
        )

    def la_better(self, heuristic: str, kept: str, name: str) -> Judgement | None:
        gaps = self.gaps(heuristic, kept)
        return judged(
            self.source, f"{name}: LA performs better than LPT under any q-bar",
            "largest of mean(LA) - mean(LPT) over q-bar", max(gaps.values()), below(0),
            "section 5.2",
        ) if gaps else None  # fmt: skip

    def lpt_better_when_low(self, heuristic: str, kept: str, name: str) -> Judgement | None:
        low = [gap for q, gap in self.gaps(heuristic, kept).items() if q <= LOW_Q]
        return judged(
            self.source, f"{name}: LPT performs better than LA when q-bar is low",
            f"smallest of mean(LA) - mean(LPT) over q-bar up to {LOW_Q:g}", min(low), above(0),
            "section 5.2",
        ) if low else None  # fmt: skip

    def little_affected(self, heuristic: str, kept: str, name: str) -> Judgement | None:
        rise = self._rise(heuristic, kept)
        return None if rise is None else judged(
            self.source, f"{name} is little affected by failures", _RISE, rise, between(0, 0.10),
            "less than 10 % (section 5.2)",
        )  # fmt: skip

    def much_affected(self, heuristic: str, kept: str, name: str) -> Judgement | None:
        rise = self._rise(heuristic, kept)
        but = "; it says of shelves that q-bar does not matter" if heuristic in SHELVES else ""
        return None if rise is None else judged(
            self.source, f"{name} is much affected by failures", _RISE, rise, between(0.20, 0.30),
            f"20 to 30 % (section 5.2{but})",
        )  # fmt: skip

    def _rise(self, heuristic: str, kept: str) -> float | None:
        line = self.line(heuristic, kept)
        return max(line.values()) / line[0.0] - 1 if 0.0 in line and len(line) > 1 else None


_RISE = "LPT: largest mean over that at q-bar = 0, minus 1"


class _Comparison:
    """Claims on the heuristics beside each other, with good rules: Figure 4(a)."""

    def __init__(self, evidence: Evidence, source: str) -> None:
        self.evidence, self.source = evidence, source

    def lines(self, kept: str) -> dict[str, Line]:
        """By heuristic; none where some was not played."""
        found = {h: best_over_q(self.evidence, self.source, h, kept) for h in HEURISTICS}
        return dict(found) if all(found.values()) else {}

    def at(self, q: float, kept: str) -> dict[str, float]:
        """The mean of each heuristic; none where some was not played."""
        found = {name: line[q] for name, line in self.lines(kept).items() if q in line}
        return found if len(found) == len(HEURISTICS) else {}

    def alike_without_failures(self, kept: str, words: str) -> Judgement | None:
        means = self.at(0.0, kept)
        lists = [means[name] for name in LISTS] if means else []
        return judged(
            self.source, f"the list-based heuristics behave similarly at q-bar = 0 ({words})",
            f"{BEST}: largest mean over smallest, minus 1", max(lists) / min(lists) - 1,
            between(0, 0.02), "section 5.2, Figure 4a",
        ) if lists else None  # fmt: skip

    def zero_outperforms(self, kept: str, words: str) -> Judgement | None:
        lines = self.lines(kept)
        ratios = [
            line[q] / lines["R-LIST-0"][q]
            for name, line in lines.items()
            for q in line
            if name != "R-LIST-0" and q > 0
        ]
        return judged(
            self.source,
            f"R-LIST-0 clearly outperforms the others when jobs can fail ({words})",
            f"{BEST}: smallest mean(other) / mean(R-LIST-0) over others and q-bar > 0",
            min(ratios), above(1.02), "section 5.2, Figure 4a",
        ) if ratios else None  # fmt: skip

    def q_worst_in_the_middle(self, kept: str, words: str) -> Judgement | None:
        means = self.at(0.5, kept)
        return judged(
            self.source, f"R-LIST-Q is the worst at q-bar = 0.5 ({words})",
            f"{BEST}: mean(R-LIST-Q) over the largest mean of the others",
            _over_others(means, "R-LIST-Q"), above(1), "section 5.2, Figure 4a",
        ) if means else None  # fmt: skip

    def q_far_above(self, kept: str, words: str) -> Judgement | None:
        means = self.at(0.5, kept)
        return judged(
            self.source, f"R-LIST-Q is far above R-LIST-0 at q-bar = 0.5 ({words})",
            f"{BEST}: mean(R-LIST-Q) / mean(R-LIST-0) - 1",
            means["R-LIST-Q"] / means["R-LIST-0"] - 1, between(0.20, 0.32),
            "26 % (section 5.2, Figure 4a)",
        ) if means else None  # fmt: skip

    def shelf_worst_outside(self, kept: str, words: str) -> Judgement | None:
        ends = [means for q in (0.0, 0.9) if (means := self.at(q, kept))]
        return judged(
            self.source, f"R-SHELF-NB is the worst at q-bar = 0 and 0.9 ({words})",
            f"{BEST}: mean(R-SHELF-NB) over the largest mean of the others, the smaller of both",
            min(_over_others(means, "R-SHELF-NB") for means in ends), above(1),
            "section 5.2, Figure 4a",
        ) if len(ends) == 2 else None  # fmt: skip

    def never_far_from_the_bound(self, kept: str, words: str) -> Judgement | None:
        means = [mean for line in self.lines(kept).values() for mean in line.values()]
        return judged(
            self.source, f"no heuristic is more than 40 % above the lower bound ({words})",
            f"{BEST}: largest mean over heuristics and q-bar", max(means), between(1, 1.4),
            "never more than 40 % worse, with good priorities (section 5.2)",
        ) if means else None  # fmt: skip

    def with_one_kind(self) -> Iterator[Judgement]:
        """What reservations have no part in."""
        if means := self.at(0.9, TRUE):
            yield judged(
                self.source, "R-SHELF-NB is far above R-LIST-0 at q-bar = 0.9",
                f"{BEST}: mean(R-SHELF-NB) / mean(R-LIST-0) - 1",
                means["R-SHELF-NB"] / means["R-LIST-0"] - 1, between(0.10, 0.20),
                "15 % (section 5.2, Figure 4a)",
            )  # fmt: skip
        if lines := self.lines(TRUE):
            yield judged(
                self.source, "R-LIST-0 is within a few percent of the lower bound on average",
                f"{BEST}: mean over q-bar", fmean(lines["R-LIST-0"].values()), between(1, 1.05),
                "section 5.3, of all experiments",
            )  # fmt: skip


def _over_others(means: Mapping[str, float], name: str) -> float:
    return means[name] / max(mean for other, mean in means.items() if other != name)
