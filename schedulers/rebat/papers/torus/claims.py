# SPDX-License-Identifier: Apache-2.0
"""The statements of Vardas et al. 2022, section 3, judged by rules stated beside the verdict.

Every list of boxes is judged by itself. Where a number is the largest or smallest of several means,
its interval is one that all of them have at once with 95 % (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rebat.papers.common.parts import Judgement
from rebat.papers.torus.evidence import (
    HOUR_S,
    LISTS,
    BySeed,
    Evidence,
    Mean,
    difference,
    extreme,
    mean_of,
)
from rebat.papers.torus.published import (
    GAINS,
    LARGEST_GAIN,
    LINEAR,
    RPS,
    SIZE,
    TABLE_1,
    Trace,
)

WORDS = {LINEAR: "Slurm-linear", RPS: "RPS"}
MARGINAL = 0.05
"""Below this share a benefit is called rather limited, marginal, or the same time."""
ENOUGH_SEEDS = 5


def judge(evidence: Evidence) -> Iterator[Judgement]:
    """All statements that there is evidence for: on the paper's torus, with its jobs and repair."""
    yield from _table_1(evidence)
    yield from _printed(evidence)
    for which in LISTS:
        yield from _short_jobs(evidence, which)
        yield from _marginally_worse(evidence, which)
        yield from _jobs_of_512(evidence, which)
    yield from _shapes(evidence)
    yield from _day_long(evidence)
    yield from _largest(evidence)


def _judged(
    about: str, claim: str, rule: str, found: Mean, holds: bool, paper: str
) -> Judgement:  # fmt: skip
    return Judgement(about, claim, rule, found.value, holds, paper, found.half)


def _table_1(evidence: Evidence) -> Iterator[Judgement]:
    """Whether the printed MTTFs come out, truncated as they are."""
    for (trace, torus), by_metric in evidence.mttf_s.items():
        law = evidence.paper_trace(trace, torus)
        printed = TABLE_1.get(law) if law else None
        if printed is None:
            continue
        for metric, words, paper in (
            ("node_mttf_s", "a node", printed.node_mttf_h),
            ("system_mttf_s", "the system", printed.system_mttf_h),
        ):
            off = mean_of([value / HOUR_S / paper - 1 for value in by_metric[metric].values()])
            yield _judged(
                trace, f"the mean time to failure of {words} is {paper:g} h",
                "mean over seeds / printed value - 1, within 0.01", off, abs(off.value) <= 0.01,
                f"Table 1, trace {printed.number}",
            )  # fmt: skip


def _printed(evidence: Evidence) -> Iterator[Judgement]:
    """With fewer seeds the intervals are so wide that nearly any share lies in them."""
    for (trace, hours, over), shares in GAINS.items():
        setting = evidence.setting(trace, SIZE)
        for which in evidence.lists(setting) if setting else ():
            gain = extreme(max, [evidence.faps_gains(trace, SIZE, hours, which, over)])
            if setting is None or gain is None or gain.n < ENOUGH_SEEDS:
                continue
            for share in shares:
                yield _judged(
                    f"{setting.trace}, list {which}",
                    f"FAPS ends {hours:g} h jobs {share:.1%} sooner than {WORDS[over]}",
                    "mean gain, whose interval holds the printed share", gain, gain.holds(share),
                    f"{share:.1%} (section 3)",
                )  # fmt: skip


def _short_jobs(evidence: Evidence, which: str) -> Iterator[Judgement]:
    for scale_h, hours, words in (
        (22000, (4, 8, 24), "rather limited for jobs of 4, 8 and 24 h"),
        (5800, (4, 8), "none for jobs of 4 and 8 h"),
    ):
        traces = [(scale_h, shape) for shape in (8, 32)]
        if found := extreme(max, _of_faps(evidence, traces, SIZE, hours, which, (LINEAR,))):
            yield _judged(
                f"scale {scale_h} h, list {which}", f"the benefit of FAPS is {words}",
                f"largest mean gain over Slurm-linear, below {MARGINAL}", found,
                found.value < MARGINAL, "section 3, Figures 3 and 4",
            )  # fmt: skip


def _marginally_worse(evidence: Evidence, which: str) -> Iterator[Judgement]:
    """The smallest of several means is below 0 by chance: its interval must be."""
    gains = _of_faps(evidence, [(22000, 8)], SIZE, (4, 8, 24), which, (LINEAR,))
    if (found := extreme(min, gains)) and found.half is not None:
        yield _judged(
            f"scale 22000 h, shape 8, list {which}",
            "FAPS is marginally worse for jobs of 4, 8 or 24 h",
            "smallest mean gain over Slurm-linear, above -0.01, its whole interval below 0", found,
            found.value > -0.01 and found.value + found.half < 0, "section 3, Figure 3a",
        )  # fmt: skip


def _shapes(evidence: Evidence) -> Iterator[Judgement]:
    """With the list of all boxes, where the duration is as long as it gets."""
    for scale_h in (22000, 5800):
        eight, thirty_two = _by_shape(evidence, scale_h, 72, RPS)
        if found := difference(eight, thirty_two):
            yield _judged(
                f"scale {scale_h} h, list all", "FAPS gains more over RPS under the smaller shape",
                "72 h: mean gain with shape 8 minus that with shape 32, above 0",
                found, found.value > 0,
                "section 3; its 23.5 % for shape 8 and 79 % for 32 say the opposite",
            )  # fmt: skip


def _day_long(evidence: Evidence) -> Iterator[Judgement]:
    eight, thirty_two = _by_shape(evidence, 5800, 24, LINEAR)
    smaller, apart = extreme(min, [eight, thirty_two]), difference(eight, thirty_two)
    if not (smaller and apart):
        return
    yield _judged(
        "scale 5800 h, list all", "FAPS has a notable benefit even for jobs of 24 h",
        f"smaller mean gain over Slurm-linear of the two shapes, at least {MARGINAL}",
        smaller, smaller.value >= MARGINAL, "section 3, Figure 4",
    )  # fmt: skip
    yield _judged(
        "scale 5800 h, list all", "that benefit is larger under the smaller shape",
        "24 h: mean gain with shape 8 minus that with shape 32, above 0",
        apart, apart.value > 0, "section 3, Figure 4",
    )  # fmt: skip


def _largest(evidence: Evidence) -> Iterator[Judgement]:
    """Of FAPS on boxes, and of the ceiling that no list of boxes can pass."""
    faps = [("faps", which, "FAPS") for which in LISTS]
    for policy, which, words in (*faps, ("ceiling", None, "the least hazardous nodes, no box,")):
        gains = [
            evidence.gains(setting, case, LINEAR)
            for setting, cases in evidence.batches.items()
            for case in cases
            if evidence.trace(setting) and (case.policy, case.which) == (policy, which)
        ]
        if found := extreme(max, gains):
            yield _judged(
                f"all traces, list {which}" if which else "all traces",
                f"the benefit of {words} is up to 82 %",
                "largest mean gain over Slurm-linear, at least 0.79", found,
                found.value >= LARGEST_GAIN - 0.03, "82 % (abstract, section 5)",
            )  # fmt: skip


def _jobs_of_512(evidence: Evidence, which: str) -> Iterator[Judgement]:
    over = (LINEAR, RPS)
    for shapes, hours, words, notable in (
        ((8, 32), (4, 8, 24), "marginal or no benefit up to 24 h", False),
        ((8,), (72,), "a more notable benefit for longer jobs and shape 8", True),
        ((32,), (72,), "a limited benefit for shape 32, even for jobs of 72 h", False),
    ):
        traces = [(16000, shape) for shape in shapes]
        if found := extreme(max, _of_faps(evidence, traces, 512, hours, which, over)):
            spans = ", ".join(f"{h} h" for h in hours)
            bound = "at least" if notable else "below"
            yield _judged(
                f"512 nodes, list {which}", words,
                f"{spans}: largest mean gain over Slurm-linear or RPS, {bound} {MARGINAL}", found,
                (found.value >= MARGINAL) == notable, "section 3",
            )  # fmt: skip


def _of_faps(
    evidence: Evidence, traces: Sequence[Trace], size: int, hours: tuple[int, ...], which: str,
    over: tuple[str, ...],
) -> list[BySeed]:  # fmt: skip
    """The gains with one list, of every trace and duration, over each of some policies."""
    return [
        evidence.faps_gains(trace, size, duration_h, which, base)
        for trace in traces
        for duration_h in hours
        for base in over
    ]


def _by_shape(evidence: Evidence, scale_h: float, hours: float, over: str) -> tuple[BySeed, BySeed]:
    """The gains with the list of all boxes under both shapes."""
    eight, thirty_two = (
        evidence.faps_gains((scale_h, shape), SIZE, hours, "all", over) for shape in (8, 32)
    )
    return eight, thirty_two
