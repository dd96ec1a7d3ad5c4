# SPDX-License-Identifier: Apache-2.0
"""The claims of RR-9296, section 5.2, on synthetic job sets: Figures 2 to 4."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from statistics import fmean
from typing import Any, NamedTuple

import msgspec

from rebat.models.resilient import HEURISTICS
from rebat.papers.common.claims import ABOVE, BELOW, Claim, Rule, above, between, judge
from rebat.papers.common.judgement import Judgement
from rebat.papers.silent_errors.resampled import resampled
from rebat.papers.silent_errors.sets import (
    BEST,
    KINDS,
    LISTS,
    SHELVES,
    STALE,
    TRUE,
    JobSets,
    Line,
    Sweep,
    over_procs,
    over_q,
)
from rebat.results.intervals import Weights

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
              _inside, "section 5.2, Figure 3", _peak), HEURISTICS),
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
