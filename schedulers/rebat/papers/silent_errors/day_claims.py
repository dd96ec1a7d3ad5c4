# SPDX-License-Identifier: Apache-2.0
"""The claims of RR-9296, section 5.3, on the days of a machine: Figures 5 and 6, Table 1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean, pstdev
from typing import NamedTuple

from rebat.models.resilient import HEURISTICS
from rebat.papers.common.claims import ABOVE, Claim, above, below, between, compared, judge
from rebat.papers.common.judgement import Judgement
from rebat.papers.silent_errors.claims import best_of_others, with_both
from rebat.papers.silent_errors.published import LEAST_JOBS, PRINTED, PRINTED_FAILURES
from rebat.papers.silent_errors.resampled import resampled
from rebat.papers.silent_errors.sets import (
    KINDS,
    LISTS,
    SHELVES,
    TRUE,
    Cell,
    JobSets,
    Sets,
    over_q,
)
from rebat.results.intervals import Weights, interval

LARGEST = {"R-LIST": 1.5, "R-SHELF": 1.8}
"""Upper bounds of the largest ratios in Table 1, according to section 5.3."""

LOW_DEVIATION = 0.1
"""Maximum standard deviation over days that counts as low. The largest in Table 1 is 0.088."""


class InDays(NamedTuple):
    """The subject of a claim: the days of a trace at one failure probability.

    The value of a day is a mean over its failure scenarios.
    """

    sets: JobSets
    source: str
    n_procs: int
    qs: Sequence[float]
    q: float
    reservations: str = TRUE

    def weighted(self, row: int) -> InDays:
        """Return the same subject with resampled days (see `ResampledSets`)."""
        return self._replace(sets=self.sets.weighted(row))

    @property
    def weights(self) -> Weights:
        """The resamples of the days."""
        return self.sets.weights(self.source)

    def _cell(self, heuristic: str, rule: str, q: float | None) -> Cell:
        at = self.q if q is None else q
        return Cell(self.source, self.n_procs, at, self.reservations, heuristic, rule)

    def days(self, heuristic: str, rule: str = "LPT", q: float | None = None) -> Sets:
        """Return the values by day."""
        return self.sets.of(self._cell(heuristic, rule, q))

    def mean(self, heuristic: str, rule: str = "LPT", q: float | None = None) -> float | None:
        """Return the mean over the days. Return None if there are no results."""
        return self.sets.mean_of(self._cell(heuristic, rule, q))

    def means(self, rule: str = "LPT") -> dict[str, float]:
        """Return the mean of each heuristic. Return an empty dict if one was not simulated."""
        results = {h: mean for h in HEURISTICS if (mean := self.mean(h, rule)) is not None}
        return results if len(results) == len(HEURISTICS) else {}

    def all_days(self, heuristics: Sequence[str]) -> list[Sets]:
        """Return the values by day of each heuristic.

        Return an empty list if one was not simulated.
        """
        results = [self.days(heuristic) for heuristic in heuristics]
        return results if all(results) else []


# ---- Figures 5 and 6: rules


def _two_best(heuristic: str, on: InDays) -> float | None:
    overall = {}
    for rule in on.sets.rules(on.source):
        means = [on.mean(heuristic, rule, q) for q in on.qs]
        if None not in means:
            overall[rule] = fmean(mean for mean in means if mean is not None)
    return best_of_others(overall, ("LPT", "LA"))


def _for_most_days(on: InDays) -> float | None:
    shares = []
    for heuristic in HEURISTICS:
        pairs: list[bool] = []
        for q in on.qs:
            lpt, la = (on.days(heuristic, rule, q) for rule in ("LPT", "LA"))
            pairs += [lpt[day] <= la[day] for day in lpt if day in la]
        shares += [fmean(pairs)] if pairs else []
    return min(shares) if len(shares) == len(HEURISTICS) else None


def _gap(rule: str, on: InDays) -> float | None:
    others, lpt = on.means(rule), on.means()
    gaps = [others[h] / lpt[h] - 1 for h in HEURISTICS] if others and lpt else []
    return max(gaps, key=abs) if on.q > 0 and gaps else None


def _fewer_failures(on: InDays) -> str:
    """Return why LA differs more from LPT than in the paper: because fewer attempts fail.

    The text is empty if the number of failures is similar.
    """
    cell = Cell(on.source, on.n_procs, on.q, TRUE, "R-LIST-0", "LA")
    ours = fmean(on.sets.of(cell, "failures").values())
    printed = PRINTED_FAILURES.get(on.q)
    if printed is None or ours > printed / 2:
        return ""
    return (
        f"At this q-bar {ours:.1f} attempts fail per day of the trace, but {printed:.1f} per day "
        "in the paper. At q-bar = 0.2 more attempts fail on the days of the trace (January and "
        "February 2020) than on the paper's days. The value is then 0.0211 "
        "(campaigns/silent-errors/more-failures.toml)."
    )


RULES = (
    *(
        Claim(f"{heuristic}: LPT and LA are the two best rules on average",
              "means over days and q-bar: best other rule minus the worse of these two rules",
              ABOVE, "section 5.3, Figures 5 and 6", lambda on, h=heuristic: _two_best(h, on))
        for heuristic in HEURISTICS
    ),
    Claim("LPT is at least as good as LA for most job sets",
          "share of all days and q-bar, for the heuristic with the smallest share", above(0.5),
          "section 5.3", _for_most_days),
    *(
        Claim(f"{rule} and LPT give similar performance at q-bar = {{q}}",
              f"mean({rule}) / mean(LPT) - 1, for the heuristic where it is farthest from 0",
              between(-0.05, 0.05), "section 5.3", lambda on, r=rule: _gap(r, on), why=why)
        for rule, why in (("LA", _fewer_failures), ("HPA", ""))
    ),
)  # fmt: skip
"""Claims about one failure probability. They are judged at the largest probability with results."""


# ---- heuristics


def _zero_best(on: InDays) -> float | None:
    means = on.means()
    zero = means.pop("R-LIST-0", 0.0)
    return min(means.values()) - zero if means and on.q > 0 else None


ZERO_BEST = Claim(
    "R-LIST-0 is the best at q-bar = {q} ({kind})",
    "LPT: best mean of the others minus R-LIST-0's", ABOVE, "section 5.3, Table 1", _zero_best,
)  # fmt: skip


def _blocking_worst(on: InDays) -> float | None:
    means = on.means()
    return means["R-SHELF-B"] - means["R-SHELF-NB"] if means and on.q > 0 else None


def _shelves_worst(on: InDays) -> float | None:
    means = on.means()
    return (
        min(means[name] for name in SHELVES) - max(means[name] for name in LISTS) if means else None
    )


def _largest_of_rules(on: InDays) -> dict[str, float]:
    largest = {rule: on.days("R-LIST-0", rule) for rule in ("LPT", "LA")}
    return {rule: max(days.values()) for rule, days in largest.items() if days and on.means()}


def _la_alone(on: InDays) -> str:
    """Return a sentence if LA is the only rule that exceeds the bound.

    Otherwise, return an empty text.
    """
    lpt = _largest_of_rules(on).get("LPT", 2.0)
    if lpt >= 1.5:
        return ""
    return f"This value is for LA. For LPT the largest value is {lpt:.4f}, and the claim holds."


COMPARISON = (
    Claim("R-SHELF-B is the worst at q-bar = {q}",
          "LPT: R-SHELF-B's mean minus R-SHELF-NB's mean", ABOVE,
          "section 5.3; its Table 1 has R-SHELF-NB as the worst", _blocking_worst),
    Claim("the shelf-based heuristics are the worst at q-bar = {q}",
          "LPT: better mean of the shelves minus the worst of the lists", ABOVE,
          "section 5.3, Table 1", _shelves_worst),
    Claim("R-LIST-0 is never more than 50 % above the bound at q-bar = {q}",
          "LPT and LA: largest mean of a job set", below(1.5), "section 5.3, of all experiments",
          lambda on: max(_largest_of_rules(on).values(), default=None), why=_la_alone),
)  # fmt: skip


# ---- Table 1


def _few_jobs(on: InDays) -> str:
    """Return why the deviation is high, if days with few jobs cause it.

    Otherwise, return an empty text.
    """
    crowded = [
        [v for day, v in days.items() if on.sets.jobs.get((on.source, day), 0) >= LEAST_JOBS]
        for days in on.all_days(LISTS)
    ]
    n_days = min(map(len, crowded))
    deviation = max(map(pstdev, crowded)) if n_days > 1 else LOW_DEVIATION + 1
    return "" if deviation > LOW_DEVIATION else (
        f"The cause is days with few jobs. All days of the paper have {LEAST_JOBS} or more jobs. "
        f"On the {n_days} days of the trace with {LEAST_JOBS} or more jobs the deviation is "
        f"{deviation:.4f}, and the claim holds."
    )  # fmt: skip


def _largest(family: str, heuristics: Sequence[str], kind: str) -> Claim:
    return Claim(
        f"{family}: largest ratio below {LARGEST[family]} at q-bar = {{q}}{kind}",
        "LPT: largest mean of a job set", below(LARGEST[family]), "section 5.3, Table 1",
        lambda on: max((max(v.values()) for v in on.all_days(heuristics)), default=None),
    )  # fmt: skip


TABLE_1 = (
    Claim("the list-based heuristics have average ratios very close to 1 at q-bar = {q} ({kind})",
          "LPT: largest mean of the three over days", between(1, 1.1), "section 5.3, Table 1",
          lambda on: max((fmean(v.values()) for v in on.all_days(LISTS)), default=None)),
    Claim("the list-based heuristics have low standard deviations at q-bar = {q} ({kind})",
          "LPT: largest of the three over days", between(0, LOW_DEVIATION), "section 5.3, Table 1",
          lambda on: max((pstdev(v.values()) for v in on.all_days(LISTS)), default=None),
          why=_few_jobs),
    _largest("R-LIST", LISTS, " ({kind})"),
)  # fmt: skip
TABLE_1_SHELVES = (_largest("R-SHELF", SHELVES, ""),)


def _table_1(on: InDays) -> Iterator[Judgement]:
    """Compare, for each heuristic, the average ratios in Table 1 with the means over days."""
    for reservations, kind in KINDS:
        at = on._replace(reservations=reservations)
        numbers = {
            heuristic: (interval(days), PRINTED[on.q, heuristic].average)
            for heuristic in HEURISTICS
            if (days := at.days(heuristic)) and (on.q, heuristic) in PRINTED
        }
        if numbers:
            text = f"average ratios of the heuristics with LPT at q-bar = {on.q:g} ({kind})"
            yield compared(on.source, text, "Table 1", numbers)


def judge_days(sets: JobSets, source: str) -> Iterator[Judgement]:
    """Judge all claims on the days of a trace."""
    sweep = over_q(sets, source)
    on = InDays(sets, source, int(sweep.fixed), sweep.xs, sweep.xs[-1])
    yield from judge(map(resampled, RULES), on, source, {"q": f"{on.q:g}"})
    for q in on.qs:
        at, words = on._replace(q=q), {"q": f"{q:g}"}
        yield from with_both(ZERO_BEST, at, source, words)
        yield from judge(map(resampled, COMPARISON), at, source, words)
        for reservations, kind in KINDS:
            with_kind = at._replace(reservations=reservations)
            yield from judge(map(resampled, TABLE_1), with_kind, source, words | {"kind": kind})
        yield from judge(map(resampled, TABLE_1_SHELVES), at, source, words)
        yield from _table_1(at)
