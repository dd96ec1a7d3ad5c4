# SPDX-License-Identifier: Apache-2.0
"""The claims of section V of Prabhakaran et al. 2018, each with a rule.

All numbers are medians over seeds. Only values with the same workload and the same failures are
compared. A claim that one value exceeds another is judged by the sign of the median difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from rebat.core.numbers import about_percent, share
from rebat.report.claims import (
    ABOVE,
    BELOW,
    Claim,
    Judgement,
    Rule,
    above,
    below,
    between,
    judge,
)
from rebat.report.runs_index import Setting
from rebat.results.intervals import BySeed, combined, interval, minus, relative

from .runs import (
    AFFECTED,
    MALLEABLE_RIGID,
    MIXED,
    MOLDABLE_RIGID,
    NO_STEP_4,
    REQUEUED,
    RISES,
    RISES_REPLACED,
    UTILISATION,
    WORDS,
    ReplacementCase,
    Runs,
    free,
    rise,
)
from .runs import (
    PRINTED as SOURCES,
)

MALLEABLE = ("pra", "pwa", "dbes")
CLOSE = 0.02
"""Maximum relative difference of two makespans that count as close or almost the same.

The paper calls two makespans with this difference close.
"""

NEGLIGIBLE = 0.02
EQUAL_SHARES = 0.05
"""Maximum difference of shares that count as almost equal, as 18 and 20 % in the paper."""

_V_A, _V_B, _V_C = (f"section V-{part}" for part in "ABC")


class InWorkload(NamedTuple):
    """The subject of a claim: the runs of a workload, in its first setting."""

    runs: Runs
    setting: Setting

    def free(self, name: str) -> BySeed:
        """Return the makespans of a policy without failures."""
        return free(self.runs, self.setting, ReplacementCase(name))

    def values(self, name: str, metric: str = "makespan_s", replaces: bool = False) -> BySeed:
        """Return a metric of a policy under failures."""
        return self.runs.values(self.setting, ReplacementCase(name, replaces), metric)

    def rise(self, name: str, replaces: bool = False) -> BySeed:
        """Return the relative increase of the makespan due to failures."""
        return rise(self.runs, self.setting, ReplacementCase(name, replaces))

    def share(self, name: str, source: str) -> BySeed:
        """Return how often ``source`` replaced the node, as a share of failures that hit a job."""
        return self.values(name, f"share_{source}", True)

    def without_step_4(self, metric: str) -> BySeed:
        """Return a metric under DBES without step 4 (restarts of moldable jobs)."""
        return self.runs.values(self.setting, ReplacementCase("dbes", True, how=NO_STEP_4), metric)


def _claim(
    text: str,
    quantity: str,
    values: Callable[[InWorkload], BySeed],
    rule: Rule | None,
    paper: str,
    published: float | None = None,
    unit: str = "",
) -> Claim:
    return Claim(text, quantity, rule, paper, lambda on: interval(values(on), of_median=True),
                 published=published, unit=unit)  # fmt: skip


_RISE = "median of makespan with / without failures - 1"
_RELATIVE = "median relative difference"
_OF_HITS = "median share of all hits"
_CLOSE = below(CLOSE)


def _printed_rises(workload: str, part: str) -> list[Claim]:
    return [
        _claim(f"{WORDS[name]}: failures lengthen the makespan by {about_percent(share)} "
               f"{words}", _RISE,
               lambda on, name=name, replaces=replaces: on.rise(name, replaces),  # type: ignore[misc]
               ABOVE, f"{about_percent(share)} ({part})", share)
        for table, replaces, words in (
            (RISES, False, "without replacement"), (RISES_REPLACED, True, "with replacement"),
        )
        for name, share in table.get(workload, {}).items()
    ]  # fmt: skip


def _failures_cost(name: str, paper: str) -> Claim:
    return _claim(f"failures lengthen the makespan of {WORDS[name]}", _RISE,
                  lambda on: on.rise(name), ABOVE, paper)  # fmt: skip


def _replacement_helps(name: str, paper: str) -> list[Claim]:
    return [
        _claim(f"replacement shortens the makespan of {WORDS[name]} under failures", _RELATIVE,
               lambda on: relative(on.values(name, replaces=True), on.values(name)), BELOW, paper),
        _claim(f"{WORDS[name]}: with replacement the makespan stays close to the makespan without "
               "failures", _RISE,
               lambda on: on.rise(name, True), _CLOSE, paper),
    ]  # fmt: skip


def _remote(name: str, paper: str) -> list[Claim]:
    return [
        _claim(f"{WORDS[name]}: most replacements come from other malleable jobs that shrink",
               "their median share of all hits", lambda on: on.share(name, "by_remote"),
               above(0.5), paper),
        _claim(f"{WORDS[name]}: more replacements come from malleable jobs that shrink than from "
               "idle nodes",
               "median difference of the shares",
               lambda on: minus(on.share(name, "by_remote"), on.share(name, "by_idle")),
               ABOVE, paper),
    ]  # fmt: skip


def _sources(paper: str) -> list[Claim]:
    """Return the claims that section V makes about both Figure 5 and Figure 7."""
    return [
        *(claim for name in MALLEABLE for claim in _remote(name, paper)),
        _claim("the share of idle replacements is highest under PRA",
               "median of PRA's share minus the larger of PWA's and DBES's",
               lambda on: minus(on.share("pra", "by_idle"),
                                combined(max, on.share("pwa", "by_idle"),
                                         on.share("dbes", "by_idle"))),
               ABOVE, paper),
    ]  # fmt: skip


def _than_rigid(name: str, rule: Rule, words: str) -> Claim:
    return _claim(f"without failures the makespan of {WORDS[name]} is {words} than that of rigid",
                  _RELATIVE, lambda on: relative(on.free(name), on.free("baseline")), rule,
                  f"{_V_A}, Figure 4")  # fmt: skip


def _less_than_rigid(name: str) -> Claim:
    return _claim(f"failures lengthen the makespan of {WORDS[name]} less than that of rigid",
                  "median difference of the relative rises",
                  lambda on: minus(on.rise(name), on.rise("baseline")), BELOW,
                  f"{_V_A}, Figure 4")  # fmt: skip


def _few_start_over(name: str) -> Claim:
    return _claim(
        f"{WORDS[name]}: moldable jobs that start over provide fewer replacements than any other "
        "source", "median of their share minus the smaller share of idle and shrinking",
        lambda on: minus(on.share(name, "by_restart"),
                         combined(min, on.share(name, "by_idle"), on.share(name, "shrinks"))),
        BELOW, f"{_V_A}, Figure 5",
    )  # fmt: skip


def _none_requeued(name: str) -> Claim:
    return _claim(f"{WORDS[name]}: no job is requeued because a replacement is missing",
                  "median number of jobs", lambda on: on.values(name, "resizes_requeued", True),
                  between(0, 0)._replace(words="0"), _V_A, unit="jobs")  # fmt: skip


_FIGURE_4, _FIGURE_6, _FIGURE_8 = f"{_V_A}, Figure 4", f"{_V_B}, Figure 6", f"{_V_C}, Figure 8"

ON_MIXED = (
    *_printed_rises(MIXED, _V_A),
    _than_rigid("pwa", BELOW, "shorter"),
    _than_rigid("dbes", BELOW, "shorter"),
    _than_rigid("pra", ABOVE, "longer"),
    _claim("without failures DBES is negligibly better than PWA", _RELATIVE,
           lambda on: relative(on.free("dbes"), on.free("pwa")),
           Rule(f"below 0 and above {-NEGLIGIBLE}", -NEGLIGIBLE, 0.0), _FIGURE_4),
    *(_failures_cost(name, _FIGURE_4) for name in ("baseline", *MALLEABLE)),
    *map(_less_than_rigid, MALLEABLE),
    *(claim for name in MALLEABLE for claim in _replacement_helps(name, _FIGURE_4)),
    *_sources(f"{_V_A}, Figure 5"),
    *map(_few_start_over, MALLEABLE),
    *map(_none_requeued, MALLEABLE),
    _claim("DBES: more jobs are requeued if moldable jobs may not start over",
           "median difference of the numbers",
           lambda on: minus(on.without_step_4("resizes_requeued"),
                            on.values("dbes", "resizes_requeued", True)), ABOVE, _V_A, unit="jobs"),
    _claim(f"DBES: if moldable jobs may not start over, {REQUEUED} of {AFFECTED} jobs that "
           "failures affect are requeued", _OF_HITS,
           lambda on: on.without_step_4("share_requeued"), None,
           f"{share(REQUEUED / AFFECTED)} ({_V_A})", REQUEUED / AFFECTED),
)  # fmt: skip


def _three(on: InWorkload) -> BySeed:
    """Return by how much three makespans of DBES differ: the longest / the shortest - 1.

    One run has no failures, one has failures, and one has failures and replacement.
    """
    of = (on.free("dbes"), on.values("dbes"), on.values("dbes", replaces=True))
    return relative(combined(max, *of), combined(min, *of))


ON_MALLEABLE_RIGID = (
    _claim("without failures the makespan of PRA is the longest",
           "median relative difference to the longer of PWA and DBES",
           lambda on: relative(on.free("pra"), combined(max, on.free("pwa"), on.free("dbes"))),
           ABOVE, _FIGURE_6),
    _claim("without failures the makespan of DBES is the shortest",
           "median relative difference to the shorter of PRA and PWA",
           lambda on: relative(on.free("dbes"), combined(min, on.free("pra"), on.free("pwa"))),
           BELOW, _FIGURE_6),
    *(_failures_cost(name, _FIGURE_6) for name in MALLEABLE),
    *(claim for name in MALLEABLE for claim in _replacement_helps(name, _FIGURE_6)),
    _claim("DBES: the makespan is almost the same without failures, with failures, and with "
           "replacement",
           "median of the longest / shortest of the three - 1", _three, _CLOSE, _V_B),
    *_sources(f"{_V_B}, Figure 7"),
)  # fmt: skip

_FROM = {"by_idle": "idle processors", "requeued": "waiting",
         "by_restart": "moldable jobs that start over"}  # fmt: skip
_USED = UTILISATION[MOLDABLE_RIGID]

ON_MOLDABLE_RIGID = (
    *_printed_rises(MOLDABLE_RIGID, _V_C),
    _failures_cost("sa", _FIGURE_8),
    *_replacement_helps("sa", _FIGURE_8),
    *(
        _claim(f"SA: {about_percent(share)} of replacements come from {_FROM[source]}", _OF_HITS,
               lambda on, source=source: on.share("sa", source),  # type: ignore[misc]
               None, f"{about_percent(share)} ({_V_C}, Figure 9)", share)
        for source, share in SOURCES[MOLDABLE_RIGID].items()
    ),
    _claim("SA: moldable jobs that start over and waiting provide almost equal shares of the "
           "replacements", "median difference of the shares",
           lambda on: minus(on.share("sa", "by_restart"), on.share("sa", "requeued")),
           Rule(f"between {-EQUAL_SHARES} and {EQUAL_SHARES}", -EQUAL_SHARES, EQUAL_SHARES), _V_C),
    _claim(f"SA: the utilisation is {about_percent(_USED)}",
           "median useful utilisation, with replacement",
           lambda on: on.values("sa", "useful_utilisation", True), None,
           f"{about_percent(_USED)} ({_V_C})", _USED),
)  # fmt: skip

CLAIMS = {
    MIXED: ON_MIXED, MALLEABLE_RIGID: ON_MALLEABLE_RIGID, MOLDABLE_RIGID: ON_MOLDABLE_RIGID,
}  # fmt: skip


def judgements(runs: Runs) -> Iterator[Judgement]:
    """Judge all claims for which there are runs, on the first setting of each workload."""
    for workload, claims in CLAIMS.items():
        setting = runs.main(workload)
        if setting:
            yield from judge(claims, InWorkload(runs, setting), workload)
