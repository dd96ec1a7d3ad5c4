# SPDX-License-Identifier: Apache-2.0
"""The case of `rebat goodput`: a training job, its failures, checkpoints and recovery.

The engine receives failures before it simulates them, so they must not depend on its state. The
history of a single job is simple enough to compute it in advance: after a failure, the job starts
again when the stages of the recovery are over and enough nodes are up, on the lowest of these
nodes.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from functools import cached_property
from statistics import fmean

import msgspec
import numpy as np

from rebat.core.durations import RandomDuration, stream
from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload
from rebat.core.nodes import NodeSet
from rebat.core.options import HUNG, Recovery, StageDurations, parse_stage
from rebat.core.units import MAX_SECONDS, US_PER_S, to_s, to_us
from rebat.engine.engine import OnProgress
from rebat.models.ettr import (
    Levels,
    TrainingJob,
    TwoTiers,
    best_interval_s,
    ettr,
    levels_ettr,
    two_tier_ettr,
)
from rebat.models.failures.events import MachineEvent
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
    profile_fields,
)
from rebat.policies.presets import scheduler
from rebat.results.intervals import interval
from rebat.results.measures.platform import platform_time
from rebat.runs.single import Runnable, RunResult, simulate

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


JOB = "w0!1"
"""Id of the job, which the durations of its recoveries depend on."""


def failures_of_job(
    law: Fleet, n_nodes: int, n_spares: int, recovery: Recovery, seed: int
) -> Iterator[MachineEvent]:
    """Yield the failures and repairs of nodes, while a job runs on ``n_nodes`` of them.

    The law must have a constant failure rate and no failures of switches.
    """
    machine = n_nodes + n_spares
    rng, rates = stream(seed, "failures", "fleet", "of the job"), law.node_rates(machine, seed)
    up_us = np.zeros(machine, dtype=np.int64)
    repairs: list[tuple[int, int]] = []
    stages, now_us = recovery.stages, 0
    while True:
        ready_us = np.partition(up_us, n_nodes - 1)[n_nodes - 1]
        now_us = max(now_us, int(ready_us))
        job = np.flatnonzero(up_us <= now_us)[:n_nodes]
        bounds = np.cumsum(rates[job])
        now_us += 1 + round(rng.exponential(US_PER_S / bounds[-1]))
        hit = int(job[np.searchsorted(bounds, rng.random() * bounds[-1], side="right")])
        cause, size, repair_us = law.draw_failure(rng)
        failed = job[job // size == hit // size]
        while repairs and repairs[0][0] <= now_us:
            at_us, node = heapq.heappop(repairs)
            yield MachineEvent(at_us, True, NodeSet.of((node,)))
        yield MachineEvent(now_us, False, NodeSet.of(failed.tolist()), cause)
        up_us[failed] = now_us + repair_us
        for node in failed.tolist():
            heapq.heappush(repairs, (now_us + repair_us, node))
        drawn_us = recovery.drawn_us(stages, cause, JOB, now_us)
        now_us += sum(drawn_us.get(name, 0) for name in HUNG)


MOST_PATTERNS = 200_000
"""Maximum number of checkpoint patterns in a simulation."""

MOST_FAILURES = 100_000
"""Maximum expected number of failures per checkpoint pattern.

If it is larger, the job practically never advances, and a simulation would not end.
"""

USES = ("useful", "checkpoint", "recovery", "waste_failure")


OnFailures = Callable[[int, int], object]
"""Function of the number of simulated failures and their expected number."""


class SimulatedJob(msgspec.Struct, frozen=True):
    """Simulations of a case.

    Attributes
    ----------
    ettr, low, high : float
        Effective training time ratio over all simulations, with its 95 % interval.
    failures : int
        Number of failures that hit the job.
    shares : dict of str to float
        Share of the job's node time for each use: useful work, checkpoints, recovery (stages and
        loading), repeated work, and waiting for nodes.
    """

    ettr: float
    low: float
    high: float
    failures: int
    shares: dict[str, float]


def simulated(
    case: TrainingCase,
    seed: int = 0,
    runs: int = 20,
    failures: int = 200,
    on_done: OnFailures = lambda done, of: None,
) -> SimulatedJob:
    """Simulate a case with ``runs`` seeds and ``failures`` expected failures per seed.

    The job has the same work W for all seeds. The ETTR is W divided by the mean time, which is an
    unbiased estimate. The function ``on_done`` is called regularly with the number of simulated
    failures and their expected number. If more failures were simulated, both are equal.
    """
    workload = workload_of(case, failures)
    work_s = _work_s(case, failures)
    expected = runs * expected_failures(case, failures)
    times_s, hits, parts = [], 0, dict.fromkeys((*USES, "waiting"), 0.0)
    for number in range(runs):
        result = run_once(case, workload, seed + number, _counter(on_done, hits, expected))
        records = result.ledger.attempts
        time_s = to_s(max(record.end_us for record in records))
        times_s.append(time_s)
        hits += sum(result.ledger.interrupted.values())
        _add_uses(parts, case, result, time_s)
        on_done(hits, max(expected, hits))
    estimate = interval(times_s)
    assert estimate is not None
    total = case.nodes * sum(times_s)
    shares = {name: value / total for name, value in parts.items()}
    shares["waiting"] = max(0.0, 1 - sum(shares.values()))
    return SimulatedJob(
        work_s / fmean(times_s),
        work_s / (estimate.high if estimate.high is not None else math.inf),
        work_s / (estimate.low if estimate.low is not None else work_s),
        hits,
        shares,
    )


def _counter(on_done: OnFailures, begin: int, expected: int) -> OnProgress:
    """Return a callback that counts the failures in a simulation, from ``begin``.

    Every attempt ends with a failure, except the last one.
    """

    def on_progress(now_us: int, ended: int, total: int) -> None:
        failed = begin + max(0, ended - 1)
        on_done(failed, max(expected, failed))

    return on_progress


def never_advances(case: TrainingCase) -> bool:
    """Return whether the job practically never advances, according to the closed form."""
    return _failures_per_pattern(case) > MOST_FAILURES


def expected_failures(case: TrainingCase, failures: int) -> int:
    """Return the expected number of failures of one simulation, at least 1.

    It differs from ``failures`` because a simulation consists of complete checkpoint patterns.
    """
    return max(1, round(_n_patterns(case, failures) * _failures_per_pattern(case)))


def _failures_per_pattern(case: TrainingCase) -> float:
    advance_s = case.closed_ettr * (case.mtbf_s + case.job().detect_s)
    return _pattern_s(case) / advance_s if advance_s else math.inf


def run_once(
    case: TrainingCase, workload: Workload, seed: int, on_progress: OnProgress | None = None
) -> RunResult:
    """Simulate one job with the failures of a seed."""
    law, events = case.law, None
    if case.spares is None:
        law = msgspec.structs.replace(law, software="+".join(law.cause_shares), repair="1h")
    elif case.failing == ONLY_JOB:
        recovery = Recovery(**case.stages, seed=seed)
        events = failures_of_job(law, case.nodes, case.spares, recovery, seed)
    return simulate(
        workload,
        policy_of(case, seed),
        n_nodes=workload.n_nodes,
        machine_events=events or law.events(workload.n_nodes, seed),
        max_attempts=2**31,
        on_progress=on_progress,
    )


def policy_of(case: TrainingCase, seed: int) -> Runnable:
    """Return a scheduler that requeues the failed job after the recovery stages of the case."""
    stages = ",".join(f"{name}={text}" for name, text in case.stages.items())
    return scheduler(f"easy:seed={seed}{',' if stages else ''}{stages}")


def workload_of(case: TrainingCase, failures: int) -> Workload:
    """Return the workload: one job that consists of complete checkpoint patterns."""
    pattern = case.pattern
    fields, _ = profile_fields(case.parsed_tiers, pattern, case.law.software, case.law.group)
    length_s = float(str(fields["checkpoint_period"])) + case.parsed_tiers.deep.write_s
    profile = {"type": "delay", "delay": _n_patterns(case, failures) * length_s, **fields}
    job = Job("1", case.nodes, to_us(0), None, "training")
    machine = case.nodes + (case.spares or 0)
    return Workload("training", machine, (job,), {"training": profile})


def _n_patterns(case: TrainingCase, failures: int) -> int:
    time_s = failures * (case.mtbf_s + case.job().detect_s)
    n_patterns = math.ceil(time_s * case.closed_ettr / _pattern_s(case))
    return max(1, min(n_patterns, MOST_PATTERNS))


def _pattern_s(case: TrainingCase) -> float:
    return case.pattern.per_pattern * case.pattern.interval_s


def _work_s(case: TrainingCase, failures: int) -> float:
    return _n_patterns(case, failures) * _pattern_s(case)


def _add_uses(
    parts: dict[str, float], case: TrainingCase, result: RunResult, time_s: float
) -> None:
    used = platform_time(result.ledger, case.nodes + (case.spares or 0), (0, to_us(time_s)))
    for name in USES:
        parts[name] += getattr(used, name)
