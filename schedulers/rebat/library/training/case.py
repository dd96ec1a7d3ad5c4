# SPDX-License-Identifier: Apache-2.0
"""The case of `rebat goodput`: a training job, its failures, checkpoints and recovery."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import msgspec

from rebat.core.durations import RandomDuration
from rebat.core.errors import InputError
from rebat.core.options import HUNG, StageDurations, parse_stage
from rebat.core.units import MAX_SECONDS
from rebat.models.ettr import (
    Levels,
    TrainingJob,
    TwoTiers,
    best_interval_s,
    ettr,
    levels_ettr,
    two_tier_ettr,
)
from rebat.models.failures.fleet import Fleet
from rebat.models.failures.laws import parse_law
from rebat.models.tiers import (
    SURVIVES,
    Shares,
    Tier,
    TierPattern,
    Tiers,
    needed,
    parse_tiers,
    pattern_of,
)

ALL, ONLY_JOB = "all", "job"
"""Which nodes can fail."""

FAILING = {
    ALL: "all nodes that are up can fail, including spare nodes and the nodes of a waiting job",
    ONLY_JOB: "only the nodes on which the job runs can fail",
}
"""The assumptions in words."""

USUAL_REPAIR = "90%*uniform:1h:3h+10%*uniform:1d:3d"


class TrainingCase(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A job that occupies its nodes for a long time, and fails.

    Attributes
    ----------
    nodes : int
        Number of nodes of the job.
    law : Fleet
        Failures of the nodes.
    interval_s : float, optional
        Work between two checkpoints. None means the best interval.
    write_s : float
        Time to write a checkpoint.
    load_s : float
        Time to load a checkpoint.
    stages : dict of str to str
        Durations of the stages detect, diagnose, reschedule and init.
    tiers : str, optional
        Tiers of checkpoints (`models.tiers`), which replace the interval and the times to write and
        load.
    failing : {"all", "job"}
        Which nodes can fail if there are spare nodes: all nodes that are up, including spare nodes
        and the nodes of a waiting job, or only the nodes on which the job runs.
    spares : int, optional
        Number of spare nodes. None means that a replacement is always available at the end of the
        stages.
    """

    nodes: int
    law: Fleet
    interval_s: float | None = None
    write_s: float = 0.0
    load_s: float = 0.0
    stages: dict[str, str] = {}
    spares: int | None = None
    tiers: str | None = None
    failing: str = ALL

    def __post_init__(self) -> None:
        for name in ("write_s", "load_s"):
            _check_seconds(name, getattr(self, name), least=0)
        if self.tiers is not None:
            self._check_tiers()
        elif self.interval_s is not None:
            _check_seconds("interval_s", self.interval_s, least=1e-6)
        elif self.write_s == 0:
            expected = "a duration: without a write time, there is no best interval"
            raise InputError("is missing", "interval", expected)
        if self.spares is not None and not 0 <= self.spares <= self.nodes:
            raise InputError(
                f"is {self.spares}", "spares", f"0 to {self.nodes}, the nodes of the job"
            )
        self._check_failing()
        for name, text in self.stages.items():
            try:
                parse_stage(text)
            except InputError as error:
                raise error.at(name) from None

    def _check_failing(self) -> None:
        if self.failing not in FAILING:
            raise InputError(f"is {self.failing}", "failing", " or ".join(FAILING))
        if self.failing == ONLY_JOB and self.spares is None:
            raise InputError("has no effect", "failing", "spares as well")
        law = self.law
        constant = law.shape == 1 and law.new_factor == 1 and not law.switch_rate
        if self.failing == ONLY_JOB and not constant:
            expected = f"{ALL}: the law has no constant failure rate, or failures of switches"
            raise InputError(f"is {ONLY_JOB}", "failing", expected)

    def _check_tiers(self) -> None:
        if self.interval_s is not None or self.write_s or self.load_s:
            expected = "these times in tiers: TIER=WRITE/LOAD@INTERVAL"
            raise InputError("have no effect with tiers", "interval, write, load", expected)
        try:
            parse_tiers(self.tiers or "")
        except InputError as error:
            raise error.at("tiers") from None

    @property
    def parsed_tiers(self) -> Tiers:
        """The tiers of checkpoints.

        If none are set, the only tier is remote storage, with the times of the case.
        """
        if self.tiers is not None:
            return parse_tiers(self.tiers)
        return Tiers(Tier("remote", self.write_s, self.load_s, self.period_s))

    @property
    def light_share(self) -> Shares:
        """The share of failures that each light tier survives.

        It is a number if there is at most one light tier.
        """
        lights = self.parsed_tiers.lights
        shares = tuple(self.law.survived_share(SURVIVES[light.name]) for light in lights)
        return shares if len(shares) > 1 else (*shares, 0.0)[0]

    @cached_property
    def pattern(self) -> TierPattern:
        """The intervals of the tiers."""
        return pattern_of(self.parsed_tiers, self.mtbf_s, self.light_share)

    @property
    def closed_ettr(self) -> float:
        """The exact ETTR if stages have their mean durations and there are enough spare nodes."""
        tiers, pattern, share = self.parsed_tiers, self.pattern, self.light_share
        if not tiers.lights:
            return ettr(self.job(pattern.interval_s))
        writes_s = tuple(tier.write_s for tier in tiers.all)
        loads_s = tuple(tier.load_s + self.mean_stage_s("init") for tier in tiers.all)
        detect_s = self.mean_stage_s(*HUNG)
        if isinstance(share, tuple):
            levels = Levels(
                mtbf_s=self.mtbf_s,
                shares=needed(share),
                writes_s=writes_s,
                loads_s=loads_s,
                detect_s=detect_s,
            )
            return levels_ettr(levels, pattern.interval_s, pattern.counts)
        return two_tier_ettr(
            TwoTiers(
                mtbf_s=self.mtbf_s,
                light_share=share,
                interval_s=pattern.interval_s,
                per_pattern=pattern.per_pattern,
                writes_s=(writes_s[0], writes_s[1]),
                loads_s=(loads_s[0], loads_s[1]),
                detect_s=detect_s,
            )
        )

    @property
    def mtbf_s(self) -> float:
        """Mean time between failures of the job."""
        return self.law.mtbf_on(self.nodes)

    @property
    def period_s(self) -> float:
        """The work between two checkpoints (s).

        With tiers, this is the interval of the first tier.
        """
        if self.tiers is not None:
            return self.pattern.interval_s
        return self.interval_s or best_interval_s(self.mtbf_s, self.write_s)

    def mean_stage_s(self, *names: str) -> float:
        """Return the sum of the mean durations (over causes of failures) of these stages."""
        return sum(self._mean_s(self.durations[name]) for name in names if name in self.durations)

    @cached_property
    def durations(self) -> dict[str, StageDurations]:
        """The durations of the stages that are set."""
        return {name: parse_stage(text) for name, text in self.stages.items()}

    def _mean_s(self, stage: StageDurations) -> float:
        def mean_s(duration: RandomDuration) -> float:
            return duration.mean_s

        return self._over_causes(stage, mean_s)

    def _over_causes(
        self, stage: StageDurations, value: Callable[[RandomDuration], float]
    ) -> float:
        return sum(w * value(stage.of(cause)) for cause, w in self.law.cause_shares.items())

    def job(self, interval_s: float | None = None) -> TrainingJob:
        """Return the job for the formulas, which assume mean durations and enough spare nodes."""
        return TrainingJob(
            mtbf_s=self.mtbf_s,
            interval_s=interval_s or self.period_s,
            write_s=self.parsed_tiers.deep.write_s,
            detect_s=self.mean_stage_s(*HUNG),
            load_s=self.parsed_tiers.deep.load_s + self.mean_stage_s("init"),
        )

    @property
    def mean_in_repair(self) -> float:
        """Mean number of nodes of the job that are in repair."""
        return self.law.mean_in_repair(self.nodes)


def _check_seconds(name: str, seconds: float, least: float) -> None:
    if not least <= seconds <= MAX_SECONDS:
        expected = "a duration above 0" if least else "a duration, 0 or more"
        raise InputError(f"is {seconds:g} s", name.removesuffix("_s"), expected)


def failures_of(rate: float | None, model: str | None, repair: str | None) -> Fleet:
    """Return the failures of a job from a rate (per 1,000 node-days) or the name of a model."""
    if (rate is None) == (model is None):
        problem = "are both set" if rate is not None else "are both missing"
        raise InputError(problem, "rate, model", "one of the two: --rate 6.5 or --model rsc-1")
    if model is None:
        law = f"fleet:rate={rate!r},repair={repair or USUAL_REPAIR}"
    elif repair is not None:
        law = f"{model}{',' if ':' in model else ':'}repair={repair}"
    else:
        law = model
    read = parse_law(law)
    if not isinstance(read, Fleet):
        raise InputError(
            f"unknown training cluster {model!r}", "model", "rsc-1, rsc-2, llama3, ..."
        )
    return read
