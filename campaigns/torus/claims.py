# SPDX-License-Identifier: Apache-2.0
"""The claims of Vardas et al. 2022, section 3, each with a rule.

Claims are judged separately for every list of boxes. If a number is the largest or smallest of
several means, its interval is widened so that it is valid for all of them together (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from rebat.core.numbers import share
from rebat.report.claims import ABOVE, Claim, Judgement, Rule, above, below, extreme, judge
from rebat.results.intervals import BySeed, Interval, interval, minus

from .batches import (
    ALONE,
    GAINS,
    HOUR_S,
    LARGEST_GAIN,
    LINEAR,
    LISTS,
    RPS,
    SIZE,
    TABLE_1,
    Batches,
    BatchSetting,
    Trace,
)

WORDS = {LINEAR: "Slurm-linear", RPS: "RPS"}
MARGINAL = 0.05
"""Gains below these values count as rather limited, as marginal, or as none."""

_Number = Callable[[Batches], Interval | None]


def judgements(batches: Batches) -> Iterator[Judgement]:
    """Judge all claims for which there are runs in the paper's settings."""
    for setting in batches.traces:
        yield from judge(_table_1(batches, setting), batches)
    for (trace, hours, over), shares in GAINS.items():
        setting_of = batches.setting(trace, SIZE)
        for which in batches.lists(setting_of) if setting_of else ():
            about = f"{setting_of.trace}, list {which}" if setting_of else ""
            yield from judge(_printed(trace, hours, over, shares, which), batches, about)
    for which in LISTS:
        yield from judge(OF_A_LIST[which], batches)
    yield from judge(OVERALL, batches)


def _at_least(bound: float, words: str) -> Rule:
    return Rule(words, low=bound, closed=True)


def _table_1(batches: Batches, setting: BatchSetting) -> Iterator[Claim]:
    """Yield claims about the published MTTFs, which the paper truncates to the printed digits."""
    law = batches.trace(setting)
    row = TABLE_1.get(law) if law else None
    for metric, words, printed in (
        ("node_mttf_s", "a node", row and row.node_mttf_h),
        ("system_mttf_s", "the system", row and row.system_mttf_h),
    ):
        if row and printed:
            yield Claim(
                f"the mean time to failure of {words} is {printed:g} h",
                "mean over seeds", None,
                f"Table 1, trace {row.number}", partial(_hours, setting, metric),
                setting.trace, published=printed, unit="h",
            )  # fmt: skip


def _hours(setting: BatchSetting, metric: str, batches: Batches) -> Interval | None:
    values = batches.values(setting, ALONE, metric).values()
    return interval([value / HOUR_S for value in values])


def _printed(
    trace: Trace, hours: float, over: str, shares: Sequence[float], which: str
) -> list[Claim]:
    return [
        Claim(
            f"with FAPS jobs of {hours:g} h complete {share(gain)} sooner than with {WORDS[over]}",
            "mean gain", ABOVE, f"{share(gain)} (section 3)",
            _of_faps(max, [trace], SIZE, (hours,), which, (over,)), published=gain,
        )
        for gain in shares
    ]  # fmt: skip


def _of_faps(
    pick: Any, traces: Sequence[Trace], size: int, hours: Sequence[float], which: str,
    over: Sequence[str] = (LINEAR,),
) -> _Number:  # fmt: skip
    """Return a function that picks the largest or smallest gain of all combinations.

    A combination is a trace, a duration (h), and a policy in ``over``.
    """

    def number(batches: Batches) -> Interval | None:
        return extreme(pick, [
            batches.faps_gains(trace, size, duration_h, which, base)
            for trace in traces for duration_h in hours for base in over
        ])  # fmt: skip

    return number


def _of_a_list(which: str) -> list[Claim]:
    """Return the claims that apply to every list of boxes."""
    largest = "largest mean gain over Slurm-linear"
    claims = [
        Claim(f"the benefit of FAPS is {words}", largest, below(MARGINAL),
              "section 3, Figures 3 and 4",
              _of_faps(max, [(scale_h, 8), (scale_h, 32)], SIZE, hours, which),
              f"scale {scale_h} h, list {which}")
        for scale_h, hours, words in (
            (22000, (4, 8, 24), "rather limited for jobs of 4, 8 and 24 h"),
            (5800, (4, 8), "none for jobs of 4 and 8 h"),
        )
    ]  # fmt: skip
    worse = _of_faps(min, [(22000, 8)], SIZE, (4, 8, 24), which)
    claims.append(
        Claim("FAPS is marginally worse for jobs of 4, 8 or 24 h",
              "smallest mean gain over Slurm-linear", MARGINALLY_WORSE, "section 3, Figure 3a",
              worse,
              f"scale 22000 h, shape 8, list {which}")
    )  # fmt: skip
    for shapes, hours, words, notable in (
        ((8, 32), (4, 8, 24), "FAPS has a marginal or no benefit up to 24 h", False),
        ((8,), (72,), "FAPS has a more notable benefit for longer jobs and shape 8", True),
        ((32,), (72,), "FAPS has a limited benefit for shape 32, even for jobs of 72 h", False),
    ):
        spans = ", ".join(f"{h} h" for h in hours)
        rule = _at_least(MARGINAL, f"at least {MARGINAL}") if notable else below(MARGINAL)
        traces = [(16000.0, shape) for shape in shapes]
        number = _of_faps(max, traces, 512, hours, which, (LINEAR, RPS))
        claims.append(Claim(words, f"{spans}: {largest} or RPS", rule, "section 3", number,
                            f"512 nodes, list {which}"))  # fmt: skip
    return claims


MARGINALLY_WORSE = Rule("below 0, but above -0.01", -0.01, 0.0)
OF_A_LIST = {which: _of_a_list(which) for which in LISTS}


def _by_shape(batches: Batches, scale_h: float, hours: float, over: str) -> list[BySeed]:
    traces = [(scale_h, shape) for shape in (8.0, 32.0)]
    return [batches.faps_gains(trace, SIZE, hours, "all", over) for trace in traces]


def _apart(scale_h: float, hours: float, over: str) -> _Number:
    def number(batches: Batches) -> Interval | None:
        return interval(minus(*_by_shape(batches, scale_h, hours, over)))

    return number


def _smaller(batches: Batches) -> Interval | None:
    gains = _by_shape(batches, 5800, 24, LINEAR)
    return extreme(min, gains) if minus(*gains) else None


def _largest(policy: str, which: str | None, batches: Batches) -> Interval | None:
    return extreme(max, [
        batches.gains(setting, case, LINEAR)
        for setting in batches.settings if batches.trace(setting)
        if (setting.begin_s, setting.trace_end_s) == (None, None)
        for case in batches.cases(setting) if (case.policy, case.which) == (policy, which)
    ])  # fmt: skip


OVERALL = (
    *(
        Claim("FAPS gains more over RPS for the smaller shape",
              "72 h: mean gain with shape 8 minus mean gain with shape 32", ABOVE,
              "section 3; its 23.5 % for shape 8 and 79 % for shape 32 contradict this",
              _apart(scale_h, 72, RPS), f"scale {scale_h} h, list all")
        for scale_h in (22000, 5800)
    ),
    Claim("FAPS has a notable benefit even for jobs of 24 h",
          "mean gain over Slurm-linear, for the shape with the smaller gain",
          _at_least(MARGINAL, f"at least {MARGINAL}"), "section 3, Figure 4", _smaller,
          "scale 5800 h, list all"),
    Claim("the benefit for jobs of 24 h is larger for the smaller shape",
          "24 h: mean gain with shape 8 minus mean gain with shape 32", ABOVE,
          "section 3, Figure 4",
          _apart(5800, 24, LINEAR), "scale 5800 h, list all"),
    *(
        Claim(f"the benefit of {words} is up to 82 %", "largest mean gain over Slurm-linear",
              above(MARGINAL), "82 % (abstract, section 5)",
              partial(_largest, policy, which),
              f"all traces, list {which}" if which else "all traces",
              published=LARGEST_GAIN, own=not which)
        for policy, which, words in (
            *(("faps", item, "FAPS") for item in LISTS),
            ("ceiling", None, "the least hazardous nodes without boxes"),
        )
    ),
)  # fmt: skip
