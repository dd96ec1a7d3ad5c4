# SPDX-License-Identifier: Apache-2.0
"""The claims of RR-9296 on synthetic job sets (section 5.2, Figures 2 to 4) and on the days of a
machine (section 5.3, Figures 5 and 6, Table 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, pstdev
from typing import Any, NamedTuple

import msgspec

from rebat.core.numbers import decimal, number
from rebat.models.resilient import HEURISTICS
from rebat.report.claims import (
    ABOVE,
    BELOW,
    Claim,
    Judgement,
    Rule,
    above,
    below,
    between,
    compared,
    judge,
)
from rebat.results.intervals import Weights, interval

from .sets import (
    BEST,
    KINDS,
    LEAST_JOBS,
    LISTS,
    PRINTED,
    PRINTED_FAILURES,
    SHELVES,
    STALE,
    TRUE,
    Cell,
    JobSets,
    Line,
    Sets,
    Sweep,
    over_procs,
    over_q,
    resampled,
)

LOW_Q = 0.2
"""Maximum failure probability that counts as low."""

FAR = above(0.10)
"""Relative difference above which an effect is large. The paper calls less than 10 % little."""

WIDE = 15_000
"""The number of processors at which the paper compares R-LIST-Q with R-LIST-0."""


class InSweep(NamedTuple):
    """The subject of a claim: a sweep, a kind of reservations, and for most claims a heuristic."""

    sweep: Sweep
    heuristic: str = ""
    reservations: str = TRUE

    def weighted(self, row: int) -> InSweep:
        """Return the same subject with resampled job sets (see `ResampledSets`)."""
        return self._replace(sweep=self.sweep._replace(sets=self.sweep.sets.weighted(row)))

    @property
    def weights(self) -> Weights:
        """The resamples of the job sets."""
        return self.sweep.sets.weights(self.sweep.source)

    def line(self, rule: str = "LPT") -> Line:
        """Return the heuristic's means with a priority rule, by value of the swept parameter."""
        return self.sweep.line(self.heuristic, rule, self.reservations)

    def gaps(self) -> Line:
        """Return the heuristic's mean with LA minus its mean with LPT, by parameter value."""
        lpt, la = self.line(), self.line("LA")
        return {x: la[x] - lpt[x] for x in la if x in lpt}

    def at(self, x: float, reservations: str | None = None) -> dict[str, float]:
        """Return the mean of each heuristic at ``x``.

        Return an empty dict if one was not simulated.
        """
        lines = self.sweep.all_best(reservations or self.reservations)
        results = {name: line[x] for name, line in lines.items() if x in line}
        return results if len(results) == len(HEURISTICS) else {}

    def others(self) -> dict[str, dict[float, float]]:
        """Return the means of all heuristics except R-LIST-0, by value of the parameter."""
        return self.sweep.all_best(self.reservations, HEURISTICS[1:])

    def zero(self) -> Line:
        """Return the means of R-LIST-0 with LA, by value of the parameter."""
        return self.sweep.line("R-LIST-0", "LA")


class ClaimRow(NamedTuple):
    """A claim, and the heuristics for which it is judged separately.

    ``both`` states whether to judge the claim with both kinds of reservations, for heuristics that
    use reservations.
    """

    claim: Claim
    heuristics: tuple[str, ...] = ("",)
    both: bool = True


def judged(rows: tuple[ClaimRow, ...], sweep: Sweep) -> Iterator[Judgement]:
    """Judge the claims of all rows."""
    for claim, heuristics, both in rows:
        for name in heuristics:
            on = InSweep(sweep, name)
            if both and (not name or name in LISTS[1:]):
                yield from with_both(claim, on, sweep.source, {"name": name})
            else:
                yield from judge([resampled(claim)], on, sweep.source, {"name": name})


def with_both(
    claim: Claim, on: Any, about: str, words: Mapping[str, str]
) -> Iterator[Judgement]:  # fmt: skip
    """Judge a claim with both kinds of reservations.

    If a claim holds only with stale reservations, the report states this as the reason why it does
    not hold with Algorithm 1.
    """
    results: dict[str, Judgement] = {}
    for reservations, kind in KINDS:
        named = {**words, "name": f"{words.get('name')} ({kind})", "kind": kind}
        for verdict in judge(
            [resampled(claim)], on._replace(reservations=reservations), about, named
        ):
            results[reservations] = verdict
    ours, stale = results.get(TRUE), results.get(STALE)
    if ours and stale and stale.holds and not ours.holds:
        why = (
            "The cause is the kind of reservations: with stale reservations the value is "
            f"{stale.ours}, and the claim holds."
        )
        results[TRUE] = msgspec.structs.replace(ours, why=why)
    yield from results.values()


def _two_best(rules: tuple[str, str]) -> Callable[[InSweep], float | None]:
    """Return a function that computes how much better ``rules`` are than all other rules."""

    def number(on: InSweep) -> float | None:
        lines = {rule: on.line(rule) for rule in on.sweep.sets.rules(on.sweep.source)}
        return best_of_others({r: fmean(line.values()) for r, line in lines.items() if line}, rules)

    return number


def best_of_others(means: Mapping[str, float], best: tuple[str, str]) -> float | None:
    """Return by how much the two rules ``best`` are better than all other rules.

    This is the smallest mean of the other rules minus the larger mean of the two rules.
    """
    others = [mean for rule, mean in means.items() if rule not in best]
    if not others or not all(rule in means for rule in best):
        return None
    return min(others) - max(means[rule] for rule in best)


def _peak(on: InSweep) -> float | None:
    line = on.line()
    return max(line, key=lambda x: line[x]) if len(line) > 2 else None


def _inside(on: InSweep) -> Rule:
    inside = sorted(on.line())[1:-1]
    return between(inside[0], inside[-1])


def _farthest(on: InSweep) -> float | None:
    line = on.line()
    if len(line) < 3:
        return None
    middle = fmean(line.values())
    return max((mean / middle - 1 for mean in line.values()), key=abs)


def _least(values: Any) -> float | None:
    return min(values, default=None)


def _most(values: Any) -> float | None:
    return max(values, default=None)


def _rise(on: InSweep) -> float | None:
    line = on.line()
    return max(line.values()) / line[0.0] - 1 if 0.0 in line and len(line) > 1 else None


def _over(means: Mapping[str, float], ours: str, base: str = "R-LIST-0") -> float | None:
    return means[ours] / means[base] - 1 if means else None


def _over_others(means: Mapping[str, float], name: str) -> float | None:
    others = [mean for other, mean in means.items() if other != name]
    return means[name] / max(others) if name in means and others else None


def _spread(line: Line) -> float | None:
    return max(line.values()) / min(line.values()) - 1 if line else None


def _alike(on: InSweep) -> float | None:
    lists = [mean for name, mean in on.at(0.0).items() if name in LISTS]
    return max(lists) / min(lists) - 1 if lists else None


def _outperforms(on: InSweep) -> float | None:
    lines = on.sweep.all_best(on.reservations)
    zero = lines.pop("R-LIST-0", {})
    return _least(mean / zero[q] for line in lines.values() for q, mean in line.items() if q > 0)


def _worst_outside(on: InSweep) -> float | None:
    ends = [means for q in (0.0, 0.9) if (means := on.at(q))]
    return _least(_over_others(means, "R-SHELF-NB") for means in ends) if len(ends) == 2 else None


def _zero_on_average(on: InSweep) -> float | None:
    lines = on.sweep.all_best()
    return fmean(lines["R-LIST-0"].values()) if lines else None


_RISE = "LPT: largest mean / mean at q-bar = 0, minus 1"
_HUMP = "normalised makespans first increase with"
_FIGURE_2, _FIGURE_4A = "section 5.2, Figure 2", "section 5.2, Figure 4a"
_OTHER_RULES = "best other rule minus the worse of these two rules"

OVER_Q = (
    ClaimRow(Claim("{name}: " + _HUMP + " q-bar, then decrease",
              "LPT: the q-bar of the largest mean", _inside, _FIGURE_2, _peak), LISTS),
    ClaimRow(Claim("{name}: performance appears to be independent of q-bar",
              "LPT: mean / mean over all q-bar - 1, at the q-bar where it is farthest from 0",
              between(-0.05, 0.05), _FIGURE_2, _farthest), SHELVES),
    *(
        ClaimRow(Claim("{name}: " + " and ".join(best) + " are the two best rules",
                  f"means over q-bar: {_OTHER_RULES}", ABOVE, _FIGURE_2, _two_best(best)),
            heuristics, both=False)
        for heuristics, best in ((LISTS, ("LPT", "LA")), (SHELVES, ("LPT", "SPT")))
    ),
    ClaimRow(Claim("{name}: LA performs better than LPT under any q-bar",
              "largest of mean(LA) - mean(LPT) over q-bar", BELOW, "section 5.2",
              lambda on: _most(on.gaps().values())), LISTS[:1]),
    ClaimRow(Claim("{name}: LPT performs better than LA if q-bar is low",
              f"smallest of mean(LA) - mean(LPT) over q-bar up to {LOW_Q:g}", ABOVE, "section 5.2",
              lambda on: _least(gap for q, gap in on.gaps().items() if q <= LOW_Q)), LISTS[1:]),
    ClaimRow(Claim("{name} is little affected by failures", _RISE, between(0, 0.10),
              "less than 10 % (section 5.2)", _rise), LISTS[:1]),
    *(
        ClaimRow(Claim("{name} is much affected by failures", _RISE, FAR,
                  f"20 to 30 % (section 5.2{but})", _rise, published=(0.20, 0.30)), heuristics)
        for heuristics, but in (
            (LISTS[1:], ""), (SHELVES, "; for shelves it also states that q-bar does not matter"),
        )
    ),
    ClaimRow(Claim("the list-based heuristics behave similarly at q-bar = 0 ({kind})",
              f"{BEST}: largest mean over smallest, minus 1", between(0, 0.02), _FIGURE_4A,
              _alike)),
    ClaimRow(Claim("R-LIST-0 clearly outperforms the others when jobs can fail ({kind})",
              f"{BEST}: smallest mean(other) / mean(R-LIST-0) over others and q-bar > 0",
              above(1.02), _FIGURE_4A, _outperforms)),
    ClaimRow(Claim("R-LIST-Q is the worst at q-bar = 0.5 ({kind})",
              f"{BEST}: mean(R-LIST-Q) / largest mean of the others", above(1), _FIGURE_4A,
              lambda on: _over_others(on.at(0.5), "R-LIST-Q"))),
    ClaimRow(Claim("R-LIST-Q is far above R-LIST-0 at q-bar = 0.5 ({kind})",
              f"{BEST}: mean(R-LIST-Q) / mean(R-LIST-0) - 1", FAR, "26 % (section 5.2, Figure 4a)",
              lambda on: _over(on.at(0.5), "R-LIST-Q"), published=0.26)),
    ClaimRow(Claim("R-SHELF-NB is the worst at q-bar = 0 and 0.9 ({kind})",
              f"{BEST}: mean(R-SHELF-NB) / largest mean of the others, the smaller of the two",
              above(1), _FIGURE_4A, _worst_outside)),
    ClaimRow(Claim("no heuristic is more than 40 % above the lower bound ({kind})",
              f"{BEST}: largest mean over heuristics and q-bar", between(1, 1.4),
              "never more than 40 % worse, with good priorities (section 5.2)",
              lambda on: _most(mean for line in on.sweep.all_best(on.reservations).values()
                               for mean in line.values()))),
    ClaimRow(Claim("R-SHELF-NB is far above R-LIST-0 at q-bar = 0.9",
              f"{BEST}: mean(R-SHELF-NB) / mean(R-LIST-0) - 1", FAR,
              "15 % (section 5.2, Figure 4a)", lambda on: _over(on.at(0.9), "R-SHELF-NB"),
              published=0.15),
        both=False),
    ClaimRow(Claim("R-LIST-0 is within a few percent of the lower bound on average",
              f"{BEST}: mean over q-bar", between(1, 1.05), "section 5.3, of all experiments",
              _zero_on_average), both=False),
)  # fmt: skip
"""Figures 2 and 4(a)."""


def _better(rule: str) -> Claim:
    sign = -1 if rule == "LA" else 1
    return Claim(f"{{name}}: {rule} is the better of LPT and LA for all P",
                 "smallest gap to the other rule over P", ABOVE, "section 5.2, Figure 3",
                 lambda on: _least(gap * sign for gap in on.gaps().values()))  # fmt: skip


def _least_affected(on: InSweep) -> float | None:
    spreads = [spread for line in on.others().values() if (spread := _spread(line)) is not None]
    zero = _spread(on.zero())
    return min(spreads) - zero if spreads and zero is not None else None


def _q_worst(on: InSweep) -> float | None:
    return _over_others({n: line[WIDE] for n, line in on.others().items() if WIDE in line},
                        "R-LIST-Q")  # fmt: skip


def _q_far_above(on: InSweep) -> float | None:
    q, zero = on.sweep.best("R-LIST-Q", on.reservations), on.zero()
    return q[WIDE] / zero[WIDE] - 1 if WIDE in q and WIDE in zero else None


_SPREAD = "largest mean over P / smallest, minus 1"
_FIGURE_4B = "section 5.2, Figure 4b"

OVER_PROCS = (
    ClaimRow(Claim("{name}: LA and LPT are the two best rules over P",
              f"means over P: {_OTHER_RULES}", ABOVE, "section 5.2, Figure 3",
              _two_best(("LPT", "LA"))), HEURISTICS, both=False),
    ClaimRow(_better("LA"), LISTS[:2]),
    ClaimRow(_better("LPT"), (*LISTS[2:], *SHELVES)),
    ClaimRow(Claim("{name}: " + _HUMP + " P, then decrease", "LPT: the P of the largest mean",
              _inside, "section 5.2, Figure 3", _peak, unit="processors"), HEURISTICS),
    ClaimRow(Claim("R-LIST-0 with LA is little affected by the number of processors", _SPREAD,
              between(0, 0.10), "less than 10 % (section 5.2, Figure 4b)",
              lambda on: _spread(on.zero())), both=False),
    ClaimRow(Claim("R-LIST-0 with LA is the best for all P ({kind})",
              f"{BEST}: smallest mean(other) / mean(R-LIST-0, LA) over others and P", above(1),
              _FIGURE_4B, lambda on: _least(mean / on.zero()[p] for line in on.others().values()
                                            for p, mean in line.items()))),
    ClaimRow(Claim("R-LIST-0 with LA is the least affected by P ({kind})",
              f"{BEST}: smallest spread (largest / smallest mean) of the others minus its spread",
              ABOVE, _FIGURE_4B, _least_affected)),
    ClaimRow(Claim(f"R-LIST-Q is the worst at P = {WIDE:,} ({{kind}})",
              f"{BEST}: mean(R-LIST-Q) / largest mean of the others", above(1), _FIGURE_4B,
              _q_worst)),
    ClaimRow(Claim(f"R-LIST-Q is far above R-LIST-0 at P = {WIDE:,} ({{kind}})",
              f"{BEST}: mean(R-LIST-Q) / mean(R-LIST-0, LA) - 1", FAR,
              "23 % (section 5.2, Figure 4b)", _q_far_above, published=0.23)),
    ClaimRow(Claim("R-LIST-Q varies much with P ({kind})", f"{BEST}: {_SPREAD}",
              FAR, "about 20 % (section 5.2, Figure 4b)",
              lambda on: _spread(on.sweep.best("R-LIST-Q", on.reservations)), published=0.20)),
    ClaimRow(Claim("no heuristic is more than 40 % above the lower bound for any P ({kind})",
              f"{BEST}: largest mean over heuristics and P", between(1, 1.4),
              "never more than 40 % worse, with good priorities (section 5.2)",
              lambda on: _most(mean for line in on.others().values() for mean in line.values()))),
)  # fmt: skip
"""Figures 3 and 4(b)."""


def judge_synthetic(sets: JobSets, source: str) -> Iterator[Judgement]:
    """Judge all claims on synthetic job sets."""
    yield from judged(OVER_Q, over_q(sets, source))
    sweep = over_procs(sets, source)
    if len(sweep.xs) > 2:
        yield from judged(OVER_PROCS, sweep)


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


def _two_best_days(heuristic: str, on: InDays) -> float | None:
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
        f"At this q-bar {decimal(ours)} attempts fail per day of the trace, but "
        f"{decimal(printed)} per day in the paper. At q-bar = 0.2 more attempts fail on the "
        "days of the trace (January and February 2020) than on the paper's days. The value is then "
        "0.0211 (campaigns/silent_errors/more-failures.toml)."
    )


RULES = (
    *(
        Claim(f"{heuristic}: LPT and LA are the two best rules on average",
              "means over days and q-bar: best other rule minus the worse of these two rules",
              ABOVE, "section 5.3, Figures 5 and 6", lambda on, h=heuristic: _two_best_days(h, on))
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
    return f"This value is for LA. For LPT the largest value is {number(lpt)}, and the claim holds."


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
        f"{number(deviation)}, and the claim holds."
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
