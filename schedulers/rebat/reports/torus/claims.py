"""The statements of Vardas et al. 2022, section 3, judged by rules stated beside the verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rebat.reports.parts import Judgement
from rebat.reports.torus.evidence import HOUR_S, Case, Evidence
from rebat.reports.torus.published import GAINS, LARGEST_GAIN, LINEAR, RPS, SIZE, TABLE_1, Trace

WORDS = {LINEAR: "Slurm-linear", RPS: "RPS"}
MARGINAL = 0.05
"""Below this share a benefit is called rather limited, marginal, or the same time."""
ENOUGH_SEEDS = 5


def judge(evidence: Evidence) -> Iterator[Judgement]:
    yield from _table_1(evidence)
    yield from _printed(evidence)
    yield from _short_jobs(evidence)
    yield from _marginally_worse(evidence)
    yield from _shapes(evidence)
    yield from _day_long(evidence)
    yield from _largest(evidence)
    yield from _jobs_of_512(evidence)


def _table_1(evidence: Evidence) -> Iterator[Judgement]:
    """Whether the printed MTTFs come out, truncated as they are."""
    for trace, by_metric in evidence.mttf_s.items():
        law = evidence.laws[trace]
        printed = TABLE_1.get(law) if law else None
        if printed is None:
            continue
        for metric, words, paper in (
            ("node_mttf_s", "a node", printed.node_mttf_h),
            ("system_mttf_s", "the system", printed.system_mttf_h),
        ):
            values = by_metric[metric].values()
            off = sum(values) / len(values) / HOUR_S / paper - 1
            yield Judgement(
                trace, f"the mean time to failure of {words} is {paper:g} h",
                "mean over seeds / printed value - 1, within 0.01", off, abs(off) <= 0.01,
                f"Table 1, trace {printed.number}",
            )  # fmt: skip


def _printed(evidence: Evidence) -> Iterator[Judgement]:
    """With fewer seeds the intervals are so wide that nearly any share lies in them."""
    for (trace, hours, over), shares in GAINS.items():
        setting = evidence.setting(trace, SIZE)
        if setting is None:
            continue
        gains = [
            gain
            for which in evidence.lists(setting)
            if (gain := evidence.gain(setting, Case(hours * HOUR_S, "faps", which), over))
            and gain.n >= ENOUGH_SEEDS
        ]
        for share in shares if gains else ():
            nearest = min(gains, key=lambda gain: abs(gain.value - share))
            yield Judgement(
                setting.trace,
                f"FAPS ends {hours:g} h jobs {share:.1%} sooner than {WORDS[over]}",
                "nearest mean gain with one of the lists; the printed share lies in the 95 % "
                "confidence interval of one",
                nearest.value, any(gain.holds(share) for gain in gains), f"{share:.1%} (section 3)",
            )  # fmt: skip


def _short_jobs(evidence: Evidence) -> Iterator[Judgement]:
    for scale_h, hours, words in (
        (22000, (4, 8, 24), "rather limited for jobs of 4, 8 and 24 h"),
        (5800, (4, 8), "none for jobs of 4 and 8 h"),
    ):
        gains = [
            _largest_faps(evidence, (scale_h, shape), SIZE, h, (LINEAR,))
            for shape in (8, 32)
            for h in hours
        ]
        if known := [gain for gain in gains if not math.isnan(gain)]:
            yield Judgement(
                f"scale {scale_h} h", f"the benefit of FAPS is {words}",
                f"largest mean gain over Slurm-linear, any list, below {MARGINAL}", max(known),
                max(known) < MARGINAL, "section 3, Figures 3 and 4",
            )  # fmt: skip


def _marginally_worse(evidence: Evidence) -> Iterator[Judgement]:
    setting = evidence.setting((22000, 8), SIZE)
    gains = [
        evidence.faps_gain((22000, 8), SIZE, hours, which, LINEAR)
        for which in (evidence.lists(setting) if setting else ())
        for hours in (4, 8, 24)
    ]
    if known := [gain for gain in gains if not math.isnan(gain)]:
        yield Judgement(
            "scale 22000 h, shape 8", "FAPS is marginally worse for jobs of 4, 8 or 24 h",
            "smallest mean gain over Slurm-linear, any list, above -0.01 and below 0", min(known),
            -0.01 < min(known) < 0, "section 3, Figure 3a",
        )  # fmt: skip


def _shapes(evidence: Evidence) -> Iterator[Judgement]:
    """With the list of all boxes, where the duration is as long as it gets."""
    for scale_h in (22000, 5800):
        eight, thirty_two = (
            evidence.faps_gain((scale_h, shape), SIZE, 72, "all", RPS) for shape in (8, 32)
        )
        if not math.isnan(eight - thirty_two):
            yield Judgement(
                f"scale {scale_h} h", "FAPS gains more over RPS under the smaller shape",
                "72 h, list all: mean gain with shape 8 minus that with shape 32, above 0",
                eight - thirty_two, eight > thirty_two,
                "section 3; its 23.5 % for shape 8 and 79 % for 32 say the opposite",
            )  # fmt: skip


def _day_long(evidence: Evidence) -> Iterator[Judgement]:
    eight, thirty_two = (
        evidence.faps_gain((5800, shape), SIZE, 24, "all", LINEAR) for shape in (8, 32)
    )
    if not math.isnan(eight - thirty_two):
        yield Judgement(
            "scale 5800 h", "FAPS has a notable benefit even for jobs of 24 h",
            f"list all: smaller mean gain over Slurm-linear of the two shapes, at least {MARGINAL}",
            min(eight, thirty_two), min(eight, thirty_two) >= MARGINAL, "section 3, Figure 4",
        )  # fmt: skip
        yield Judgement(
            "scale 5800 h", "that benefit is larger under the smaller shape",
            "list all, 24 h: mean gain with shape 8 minus that with shape 32, above 0",
            eight - thirty_two, eight > thirty_two, "section 3, Figure 4",
        )  # fmt: skip


def _largest(evidence: Evidence) -> Iterator[Judgement]:
    """Of FAPS on boxes, and of the ceiling that no list of boxes can pass."""
    for policy, words in (("faps", "FAPS"), ("ceiling", "the least hazardous nodes, no box,")):
        gains = [
            gain.value
            for setting, cases in evidence.batches.items()
            for case in cases
            if case.policy == policy and (gain := evidence.gain(setting, case, LINEAR))
        ]
        if gains:
            yield Judgement(
                "all traces", f"the benefit of {words} is up to 82 %",
                "largest mean gain over Slurm-linear, at least 0.79", max(gains),
                max(gains) >= LARGEST_GAIN - 0.03, "82 % (abstract, section 5)",
            )  # fmt: skip


def _jobs_of_512(evidence: Evidence) -> Iterator[Judgement]:
    short = [
        _largest_faps(evidence, (16000, s), 512, h, (LINEAR, RPS))
        for s in (8, 32)
        for h in (4, 8, 24)
    ]
    if known := [gain for gain in short if not math.isnan(gain)]:
        yield Judgement(
            "512 nodes", "marginal or no benefit up to 24 h",
            f"largest mean gain over Slurm-linear or RPS, any list, below {MARGINAL}", max(known),
            max(known) < MARGINAL, "section 3",
        )  # fmt: skip
    eight, thirty_two = (
        _largest_faps(evidence, (16000, shape), 512, 72, (LINEAR, RPS)) for shape in (8, 32)
    )
    if not math.isnan(eight):
        yield Judgement(
            "512 nodes", "a more notable benefit for longer jobs and shape 8",
            f"72 h: largest mean gain, any list, at least {MARGINAL}", eight, eight >= MARGINAL,
            "section 3",
        )  # fmt: skip
    if not math.isnan(thirty_two):
        yield Judgement(
            "512 nodes", "a limited benefit for shape 32, even for jobs of 72 h",
            f"72 h: largest mean gain, any list, below {MARGINAL}", thirty_two,
            thirty_two < MARGINAL, "section 3",
        )  # fmt: skip


def _largest_faps(
    evidence: Evidence, trace: Trace, size: int, hours: float, over: tuple[str, ...]
) -> float:
    """Of the lists that were played; not a number where none was."""
    setting = evidence.setting(trace, size)
    lists = evidence.lists(setting) if setting else []
    gains = [evidence.faps_gain(trace, size, hours, w, base) for w in lists for base in over]
    return max((gain for gain in gains if not math.isnan(gain)), default=math.nan)
