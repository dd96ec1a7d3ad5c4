# SPDX-License-Identifier: Apache-2.0
"""The statements of section V of Prabhakaran et al. 2018, judged by rules beside the verdict.

All numbers are medians over seeds of values that share a workload and, where there are any,
failures. A statement of an order holds by the sign of the median.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rebat.papers.common.parts import Judgement
from rebat.papers.common.runs_index import Setting, combined, minus, relative
from rebat.papers.replacement.evidence import NO_STEP_4, Case, Evidence
from rebat.papers.replacement.medians import Middle, middle
from rebat.papers.replacement.published import (
    AFFECTED,
    ENOUGH_SEEDS,
    MALLEABLE_RIGID,
    MIXED,
    MOLDABLE_RIGID,
    REQUEUED,
    RISES,
    RISES_REPLACED,
    SOURCES,
    UTILISATION,
    WORDS,
)
from rebat.results.intervals import BySeed

MALLEABLE = ("pra", "pwa", "dbes")
CLOSE = 0.02
"""A makespan is close to another, or almost the same, within the share that is printed of one."""

NEGLIGIBLE = 0.02
EQUAL_SHARES = 0.05
"""Shares of 18 and 20 % are called almost equal."""

_V_A, _V_B, _V_C = (f"section V-{part}" for part in "ABC")


class Rule(NamedTuple):
    """Between which bounds a median must lie, and how that is put."""

    words: str
    low: float = float("-inf")
    high: float = float("inf")

    def holds(self, value: float) -> bool:
        """Whether a median is within the bounds; a bound itself counts as outside unless both
        are the same."""
        return self.low < value < self.high or self.low == value == self.high


ABOVE, BELOW = Rule("above 0", low=0.0), Rule("below 0", high=0.0)


def judge(evidence: Evidence) -> Iterator[Judgement]:
    """All statements that there is evidence for, each on the first runs of its workload."""
    for workload, about in (
        (MIXED, _mixed), (MALLEABLE_RIGID, _malleable_rigid), (MOLDABLE_RIGID, _moldable_rigid),
    ):  # fmt: skip
        setting = evidence.main(workload)
        if setting:
            judge_one = _Judge(evidence, setting)
            yield from _printed_rises(judge_one)
            yield from about(judge_one)


class _Judge:
    """Of one workload: what was measured, and how a statement about it becomes a judgement."""

    def __init__(self, evidence: Evidence, setting: Setting) -> None:
        self.evidence, self.setting = evidence, setting

    def case(self, name: str, replaces: bool = False) -> Case | None:
        return self.evidence.find(self.setting, name, replaces)

    def free(self, name: str) -> BySeed:
        """Makespans without failures."""
        return self.evidence.free(self.setting, Case(name, False, False, "", ""), "makespan_s")

    def values(self, name: str, metric: str = "makespan_s", replaces: bool = False) -> BySeed:
        case = self.case(name, replaces)
        return self.evidence.values(self.setting, case, metric) if case else {}

    def rise(self, name: str, replaces: bool = False) -> BySeed:
        """By how much failures lengthen the makespan."""
        case = self.case(name, replaces)
        return self.evidence.rise(self.setting, case) if case else {}

    def shares(self, name: str, *sources: str) -> BySeed:
        case = self.case(name, True)
        return self.evidence.shares(self.setting, case, *sources) if case else {}

    def __call__(
        self, claim: str, what: str, values: BySeed, rule: Rule, paper: str
    ) -> Iterator[Judgement]:
        found = middle(values)
        if found:
            yield self._judgement(
                claim, f"{what}, {rule.words}{_doubt(found, rule)}", found,
                rule.holds(found.median), paper,
            )  # fmt: skip

    def printed(
        self, claim: str, what: str, values: BySeed, value: float, paper: str
    ) -> Iterator[Judgement]:
        """Whether the interval holds a printed value; with few seeds nearly any would do."""
        found = middle(values)
        if found and found.n >= ENOUGH_SEEDS:
            rule = f"{what}, whose interval holds the printed value"
            yield self._judgement(claim, rule, found, found.holds(value), paper)

    def _judgement(
        self, claim: str, rule: str, found: Middle, holds: bool, paper: str
    ) -> Judgement:
        interval = "" if found.low == found.high else f" [{found.low:.4f}, {found.high:.4f}]"
        return Judgement(self.setting.workload, claim, rule + interval, found.median, holds, paper)


def _doubt(found: Middle, rule: Rule) -> str:
    """Whether the interval reaches over a bound of the rule."""
    inside = rule.low <= found.low and found.high <= rule.high
    outside = found.high <= rule.low or found.low >= rule.high
    return "" if inside or outside else " (the seeds do not decide)"


def _printed_rises(judged: _Judge) -> Iterator[Judgement]:
    part = {MIXED: _V_A, MOLDABLE_RIGID: _V_C}
    workload = judged.setting.workload
    for table, replaces, words in (
        (RISES, False, "without replacement"), (RISES_REPLACED, True, "with replacement"),
    ):  # fmt: skip
        for name, share in table.get(workload, {}).items():
            yield from judged.printed(
                f"{WORDS[name]}: failures lengthen the makespan by {share:.0%} {words}",
                "median of with / without failures - 1", judged.rise(name, replaces), share,
                f"{share:.0%} ({part[workload]})",
            )  # fmt: skip


def _mixed(judged: _Judge) -> Iterator[Judgement]:
    rigid = judged.free("baseline")
    for name, rule, words in (
        ("pwa", BELOW, "shorter"), ("dbes", BELOW, "shorter"), ("pra", ABOVE, "longer"),
    ):  # fmt: skip
        yield from judged(
            f"without failures the makespan of {WORDS[name]} is {words} than rigid",
            "median relative difference", relative(judged.free(name), rigid), rule,
            f"{_V_A}, Figure 4",
        )  # fmt: skip
    yield from judged(
        "without failures DBES is negligibly better than PWA", "median relative difference",
        relative(judged.free("dbes"), judged.free("pwa")),
        Rule(f"below 0 and above {-NEGLIGIBLE}", -NEGLIGIBLE, 0.0), f"{_V_A}, Figure 4",
    )  # fmt: skip
    yield from _failures_cost(judged, ("baseline", *MALLEABLE), f"{_V_A}, Figure 4")
    for name in MALLEABLE:
        yield from judged(
            f"failures lengthen the makespan of {WORDS[name]} less than rigid",
            "median difference of the relative rises",
            minus(judged.rise(name), judged.rise("baseline")), BELOW, f"{_V_A}, Figure 4",
        )  # fmt: skip
    yield from _replacement_helps(judged, MALLEABLE, f"{_V_A}, Figure 4")
    yield from _sources(judged, f"{_V_A}, Figure 5")
    yield from _step_4(judged)


def _failures_cost(judged: _Judge, names: tuple[str, ...], paper: str) -> Iterator[Judgement]:
    for name in names:
        yield from judged(
            f"failures lengthen the makespan of {WORDS[name]}",
            "median of with / without failures - 1", judged.rise(name), ABOVE, paper,
        )  # fmt: skip


def _replacement_helps(judged: _Judge, names: tuple[str, ...], paper: str) -> Iterator[Judgement]:
    for name in names:
        gain = relative(judged.values(name, replaces=True), judged.values(name))
        yield from judged(
            f"replacement shortens the makespan of {WORDS[name]} under failures",
            "median relative difference", gain, BELOW, paper,
        )  # fmt: skip
        yield from judged(
            f"{WORDS[name]}: with replacement it stays close to that without failures",
            "median of with / without failures - 1", judged.rise(name, True),
            Rule(f"below {CLOSE}", high=CLOSE), paper,
        )  # fmt: skip


def _sources(judged: _Judge, paper: str) -> Iterator[Judgement]:
    """What Figures 5 and 7 show alike."""
    for name in MALLEABLE:
        remote = judged.shares(name, "by_remote")
        yield from judged(
            f"{WORDS[name]}: most replacements come from other malleable jobs that shrink",
            "their median share of all hits", remote, Rule("above 0.5", low=0.5), paper,
        )  # fmt: skip
        idle = judged.shares(name, "by_idle")
        yield from judged(
            f"{WORDS[name]}: these are more than idle ones", "median difference of the shares",
            minus(remote, idle), ABOVE, paper,
        )  # fmt: skip
    others = combined(max, judged.shares("pwa", "by_idle"), judged.shares("dbes", "by_idle"))
    yield from judged(
        "the share of idle replacements is highest under PRA",
        "median of PRA's less the larger of PWA's and DBES's",
        minus(judged.shares("pra", "by_idle"), others), ABOVE, paper,
    )  # fmt: skip


def _step_4(judged: _Judge) -> Iterator[Judgement]:
    """What starting moldable jobs over is good for."""
    for name in MALLEABLE:
        least = combined(
            min, judged.shares(name, "by_idle"), judged.shares(name, "by_local", "by_remote")
        )
        yield from judged(
            f"{WORDS[name]}: fewer replacements by moldable jobs that start over than by any other "
            "source", "median of their share less the least of idle and shrinking",
            minus(judged.shares(name, "by_restart"), least), BELOW, f"{_V_A}, Figure 5",
        )  # fmt: skip
    for name in MALLEABLE:
        yield from judged(
            f"{WORDS[name]}: no job is requeued for want of a replacement", "median number of them",
            judged.values(name, "resizes_requeued", True), Rule("0", 0.0, 0.0), _V_A,
        )  # fmt: skip
    off = Case("dbes", True, False, "", NO_STEP_4)
    evidence, setting = judged.evidence, judged.setting
    yield from judged(
        "DBES: more jobs are requeued where moldable ones may not start over",
        "median difference of their numbers",
        minus(evidence.values(setting, off, "resizes_requeued"),
              judged.values("dbes", "resizes_requeued", True)), ABOVE, _V_A,
    )  # fmt: skip
    yield from judged.printed(
        f"DBES: then {REQUEUED} of {AFFECTED} jobs that failures affect are requeued",
        "median share of all hits", evidence.shares(setting, off, "requeued"), REQUEUED / AFFECTED,
        f"{REQUEUED / AFFECTED:.1%} ({_V_A})",
    )  # fmt: skip


def _malleable_rigid(judged: _Judge) -> Iterator[Judgement]:
    paper = f"{_V_B}, Figure 6"
    free = {name: judged.free(name) for name in MALLEABLE}
    yield from judged(
        "without failures the makespan of PRA is the longest",
        "median relative difference to the longer of PWA and DBES",
        relative(free["pra"], combined(max, free["pwa"], free["dbes"])), ABOVE, paper,
    )  # fmt: skip
    yield from judged(
        "without failures the makespan of DBES is the shortest",
        "median relative difference to the shorter of PRA and PWA",
        relative(free["dbes"], combined(min, free["pra"], free["pwa"])), BELOW, paper,
    )  # fmt: skip
    yield from _failures_cost(judged, MALLEABLE, paper)
    yield from _replacement_helps(judged, MALLEABLE, paper)
    three = (free["dbes"], judged.values("dbes"), judged.values("dbes", replaces=True))
    yield from judged(
        "DBES: almost the same makespan without failures, with them, and with replacement",
        "median of the longest / shortest of the three - 1",
        relative(combined(max, *three), combined(min, *three)),
        Rule(f"below {CLOSE}", high=CLOSE), _V_B,
    )  # fmt: skip
    yield from _sources(judged, f"{_V_B}, Figure 7")


def _moldable_rigid(judged: _Judge) -> Iterator[Judgement]:
    yield from _failures_cost(judged, ("sa",), f"{_V_C}, Figure 8")
    yield from _replacement_helps(judged, ("sa",), f"{_V_C}, Figure 8")
    words = {"by_idle": "idle processors", "requeued": "waiting",
             "by_restart": "moldable jobs that start over"}  # fmt: skip
    for source, share in SOURCES[MOLDABLE_RIGID].items():
        yield from judged.printed(
            f"SA: {share:.0%} of replacements come from {words[source]}",
            "median share of all hits", judged.shares("sa", source), share,
            f"{share:.0%} ({_V_C}, Figure 9)",
        )  # fmt: skip
    even = Rule(f"between {-EQUAL_SHARES} and {EQUAL_SHARES}", -EQUAL_SHARES, EQUAL_SHARES)
    yield from judged(
        "SA: almost as many replacements by moldable jobs that start over as by waiting",
        "median difference of the shares",
        minus(judged.shares("sa", "by_restart"), judged.shares("sa", "requeued")), even, _V_C,
    )  # fmt: skip
    share = UTILISATION[MOLDABLE_RIGID]
    yield from judged.printed(
        f"SA: the utilisation is {share:.0%}", "median useful utilisation, with replacement",
        judged.values("sa", "useful_utilisation", True), share, f"{share:.0%} ({_V_C})",
    )  # fmt: skip
