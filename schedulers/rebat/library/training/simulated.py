# SPDX-License-Identifier: Apache-2.0
"""Simulations of one training job on the engine, under a scheduler with recovery in stages."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import fmean

import msgspec

from rebat.core.jobs import Job, Workload
from rebat.core.options import Recovery
from rebat.core.units import to_s, to_us
from rebat.engine.engine import OnProgress
from rebat.library.training.case import ONLY_JOB, TrainingCase
from rebat.library.training.job_failures import failures_of_job
from rebat.models.tiers import profile_fields
from rebat.policies.presets import scheduler
from rebat.results.intervals import interval
from rebat.results.measures.platform import platform_time
from rebat.runs.single import Runnable, RunResult, simulate

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
    """Return a callback that counts the ended attempts of a simulation, from ``begin``."""

    def on_progress(now_us: int, ended: int, total: int) -> None:
        on_done(begin + ended, max(expected, begin + ended))

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
