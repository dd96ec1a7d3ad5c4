# SPDX-License-Identifier: Apache-2.0
"""The claims of RR-9296, section 5.3, on the days of a machine: Figures 5 and 6, Table 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean, pstdev

import msgspec

from rebat.models.resilient import HEURISTICS
from rebat.reports.parts import Judgement
from rebat.reports.silent_errors.evidence import LISTS, SHELVES, STALE, TRUE, Cell, Evidence
from rebat.reports.silent_errors.judging import above, below, between, judged, with_both
from rebat.reports.silent_errors.published import LEAST_JOBS, PRINTED_FAILURES

LARGEST = {"R-LIST": 1.5, "R-SHELF": 1.8}
"""What the largest ratios in Table 1 stay below (section 5.3)."""

LOW_DEVIATION = 0.1
"""A standard deviation over days up to this is called low; the largest of Table 1 is 0.088."""

Days = Mapping[str, float]
"""A value per day."""


def judge_days(evidence: Evidence, source: str) -> Iterator[Judgement]:
    days = _Days(evidence, source)
    yield from days.rules()
    for q in days.qs:
        yield from days.comparison(q)
        yield from days.table_1(q)


class _Days:
    """Claims on the days of a trace; the value of a day is a mean over its failure scenarios."""

    def __init__(self, evidence: Evidence, source: str) -> None:
        self.evidence, self.source = evidence, source
        self.n_procs, self.qs = evidence.over_q(source)

    def values(self, q: float, heuristic: str, rule: str, kept: str = TRUE) -> dict[str, float]:
        """By day."""
        cell = Cell(self.source, self.n_procs, q, kept, heuristic, rule)
        return {day: row.mean for day, row in self.evidence.rows(cell).items()}

    def mean(self, q: float, heuristic: str, rule: str, kept: str = TRUE) -> float | None:
        found = self.values(q, heuristic, rule, kept)
        return fmean(found.values()) if found else None

    # ---- Figures 5 and 6: rules

    def rules(self) -> Iterator[Judgement]:
        for heuristic in HEURISTICS:
            yield from self._best_rules(heuristic)
        yield from self._lpt_for_most_days()
        for rule in ("LA", "HPA"):
            yield from self._similar(rule)

    def _best_rules(self, heuristic: str) -> Iterator[Judgement]:
        overall: dict[str, float] = {}
        for rule in self.evidence.rules(self.source):
            means = [self.mean(q, heuristic, rule) for q in self.qs]
            known = [mean for mean in means if mean is not None]
            if len(known) == len(self.qs):
                overall[rule] = fmean(known)
        others = [mean for rule, mean in overall.items() if rule not in ("LPT", "LA")]
        if others and {"LPT", "LA"} <= overall.keys():
            yield judged(
                self.source, f"{heuristic}: LPT and LA are the two best rules on average",
                "means over days and q-bar: best of the other rules minus the worse of the two",
                min(others) - max(overall["LPT"], overall["LA"]), above(0),
                "section 5.3, Figures 5 and 6",
            )  # fmt: skip

    def _lpt_for_most_days(self) -> Iterator[Judgement]:
        shares = []
        for heuristic in HEURISTICS:
            pairs: list[bool] = []
            for q in self.qs:
                lpt, la = (self.values(q, heuristic, rule) for rule in ("LPT", "LA"))
                pairs += [lpt[day] <= la[day] for day in lpt if day in la]
            shares += [fmean(pairs)] if pairs else []
        if len(shares) == len(HEURISTICS):
            yield judged(
                self.source, "LPT is at least as good as LA for most job sets",
                "share of days, at any q-bar, of the heuristic where it is smallest", min(shares),
                above(0.5), "section 5.3",
            )  # fmt: skip

    def _similar(self, rule: str) -> Iterator[Judgement]:
        q = self.qs[-1]
        pairs = [(self.mean(q, h, rule), self.mean(q, h, "LPT")) for h in HEURISTICS]
        gaps = [other / lpt - 1 for other, lpt in pairs if other is not None and lpt is not None]
        if q > 0 and len(gaps) == len(HEURISTICS):
            yield judged(
                self.source, f"{rule} and LPT give similar performance at q-bar = {q:g}",
                f"mean({rule}) / mean(LPT) - 1, of the heuristic where it is farthest from 0",
                max(gaps, key=abs), between(-0.05, 0.05), "section 5.3",
                self._fewer_failures(q, rule),
            )  # fmt: skip

    def _fewer_failures(self, q: float, rule: str) -> str:
        """An experiment on why LA is farther from LPT than the paper says."""
        cell = Cell(self.source, self.n_procs, q, TRUE, "R-LIST-0", rule)
        ours = fmean(row.failures for row in self.evidence.rows(cell).values())
        printed = PRINTED_FAILURES.get(q)
        if rule != "LA" or printed is None or ours > printed / 2:
            return ""
        return (
            f"At this q-bar {ours:.1f} attempts fail on our days, {printed:.1f} on the paper's. At "
            "q-bar = 0.2 more of them fail on Mira's days of January and February 2020 than on the "
            "paper's, and the number is 0.0211 (campaigns/silent-errors/more-failures.toml)."
        )

    # ---- heuristics

    def comparison(self, q: float) -> Iterator[Judgement]:
        if q > 0:
            yield from with_both(partial(self._zero_best, q))
        means = {h: mean for h in HEURISTICS if (mean := self.mean(q, h, "LPT")) is not None}
        if len(means) < len(HEURISTICS):
            return
        if q > 0:
            b, nb = (means[name] for name in SHELVES)
            yield judged(
                self.source, f"R-SHELF-B is the worst at q-bar = {q:g}",
                "LPT: its mean minus R-SHELF-NB's", b - nb, above(0),
                "section 5.3; its Table 1 has R-SHELF-NB as the worst",
            )  # fmt: skip
        yield judged(
            self.source, f"the shelf-based heuristics are the worst at q-bar = {q:g}",
            "LPT: better mean of the shelves minus the worst of the lists",
            min(means[name] for name in SHELVES) - max(means[name] for name in LISTS), above(0),
            "section 5.3, Table 1",
        )  # fmt: skip
        yield from self._never_far(q)

    def _never_far(self, q: float) -> Iterator[Judgement]:
        """That R-LIST-0 stays near the bound; where it does not, whether LA alone is why."""
        by_rule = {
            rule: max(found.values())
            for rule in ("LPT", "LA")
            if (found := self.values(q, "R-LIST-0", rule))
        }
        one = judged(
            self.source, f"R-LIST-0 is never more than 50 % above the bound at q-bar = {q:g}",
            "LPT and LA: largest mean of a job set", max(by_rule.values()), below(1.5),
            "section 5.3, of all experiments",
        )  # fmt: skip
        if not one.holds and by_rule.get("LPT", 2.0) < 1.5:
            why = (
                f"It is with LA: with LPT the largest is {by_rule['LPT']:.4f}, and the claim holds."
            )
            one = msgspec.structs.replace(one, why=why)
        yield one

    def _zero_best(self, q: float, kept: str, words: str) -> Judgement | None:
        means = {h: mean for h in HEURISTICS if (mean := self.mean(q, h, "LPT", kept)) is not None}
        zero = means.pop("R-LIST-0", None)
        return judged(
            self.source, f"R-LIST-0 is the best at q-bar = {q:g} ({words})",
            "LPT: best mean of the others minus R-LIST-0's", min(means.values()) - zero, above(0),
            "section 5.3, Table 1",
        ) if zero is not None and len(means) == len(HEURISTICS) - 1 else None  # fmt: skip

    def table_1(self, q: float) -> Iterator[Judgement]:
        lists = [v for h in LISTS if (v := self.values(q, h, "LPT"))]
        stale = [v for h in LISTS[1:] if (v := self.values(q, h, "LPT", STALE))]
        shelves = [v for h in SHELVES if (v := self.values(q, h, "LPT"))]
        if len(lists) == len(LISTS):
            yield from self._lists(q, "Algorithm 1", lists)
        if len(stale) == len(LISTS[1:]) and lists:
            yield from self._lists(q, "stale reservations", [lists[0], *stale])
        if len(shelves) == len(SHELVES):
            yield self._largest(q, "R-SHELF", "", shelves)

    def _lists(self, q: float, words: str, lists: Sequence[Days]) -> Iterator[Judgement]:
        yield judged(
            self.source, f"list-based: average ratios very close to 1 at q-bar = {q:g} ({words})",
            "LPT: largest mean of the three over days", max(fmean(v.values()) for v in lists),
            between(1, 1.1), "section 5.3, Table 1",
        )  # fmt: skip
        yield judged(
            self.source, f"list-based: low standard deviations at q-bar = {q:g} ({words})",
            "LPT: largest of the three over days", max(pstdev(v.values()) for v in lists),
            between(0, LOW_DEVIATION), "section 5.3, Table 1", self._few_jobs(lists),
        )  # fmt: skip
        yield self._largest(q, "R-LIST", f" ({words})", lists)

    def _few_jobs(self, lists: Sequence[Days]) -> str:
        """Whether it is days with fewer jobs than any of the paper's that deviate."""
        crowded = [
            [value for day, value in v.items() if self._n_jobs(day) >= LEAST_JOBS] for v in lists
        ]
        n_days = min(map(len, crowded))
        deviation = max(map(pstdev, crowded)) if n_days > 1 else LOW_DEVIATION + 1
        return "" if deviation > LOW_DEVIATION else (
            f"It is days of few jobs: on the {n_days} that have {LEAST_JOBS} or more, as all of "
            f"the paper's have, it is {deviation:.4f}, and holds."
        )  # fmt: skip

    def _n_jobs(self, day: str) -> int:
        return self.evidence.jobs.get((self.source, day), 0)

    def _largest(self, q: float, family: str, words: str, values: Sequence[Days]) -> Judgement:
        bound = LARGEST[family]
        return judged(
            self.source, f"{family}: largest ratio below {bound} at q-bar = {q:g}{words}",
            "LPT: largest mean of a job set", max(max(v.values()) for v in values), below(bound),
            "section 5.3, Table 1",
        )  # fmt: skip
