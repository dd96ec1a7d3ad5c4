# SPDX-License-Identifier: Apache-2.0
"""Random runs must have the records of the slow oracle in ``tests/oracles/simulator.py``.

``python -m tests.support.against_oracle 20000`` compares 20,000 runs.
"""

from __future__ import annotations

import sys
from typing import Any

from rebat.core.attempts import Cause
from rebat.core.dependencies import conditions_of
from rebat.core.units import to_us
from rebat.runs.single import RunResult
from tests.oracles.simulator import FOREVER, Job, Pattern, Simulation, StuckError
from tests.support.both_ways import Case
from tests.support.seeds import play_all


def options_of(policy: str) -> dict[str, str]:
    """Return the options of a policy ``baseline:...``."""
    rest = policy.partition(":")[2]
    return dict(option.split("=", 1) for option in rest.split(",")) if rest else {}


def pattern_of(profile: dict[str, Any]) -> Pattern | None:
    """Return the checkpoints of a profile (workload-file.md)."""
    if "checkpoint_period" not in profile:
        return None
    period = profile["checkpoint_period"]
    names = ("checkpoint_cost", "recovery_cost", "Tfirst", "Rfirst")
    rest = [
        profile.get(name, default) for name, default in zip(names, (0, 0, period, 0), strict=True)
    ]
    return Pattern(*map(to_us, (period, *rest)))


def jobs_of(case: Any) -> list[Job]:
    """Return the jobs of a case for the oracle."""
    jobs = []
    for job in case.workload.jobs:
        profile, extra = case.workload.profiles[job.profile], job.extra
        wall = FOREVER if job.walltime_us is None else job.walltime_us
        jobs.append(
            Job(
                job.id, job.n_nodes, job.submit_us, wall, to_us(profile["delay"]),
                bool(profile.get("ret")), pattern_of(profile), extra.get("user", ""),
                extra.get("priority_class", 0),
                [(c.kind, c.job) for c in conditions_of(extra.get("dependency", ""))],
                extra.get("array", ""), extra.get("queue", ""),
            )
        )  # fmt: skip
    return jobs


def simulation_of(case: Any) -> Simulation:
    """Return the oracle of a case."""
    events = [(e.at_us, e.available, [*map(int, e.nodes)]) for e in case.events]
    return Simulation(
        jobs_of(case), case.n_nodes, events, options_of(case.policy), case.max_attempts,
        case.lazily,
    )  # fmt: skip


def rows_of(result: RunResult) -> list[tuple[Any, ...]]:
    """Return the attempts of a run, in the order of its records."""
    rows = []
    for row in result.ledger.attempts:
        nodes = tuple(map(int, row.nodes)) if row.nodes else ()
        name = row.attempt.id.partition("!")[2]
        rejected = row.cause == Cause.REJECTED
        times = (-1, -1) if rejected else (row.start_us, row.end_us)
        rows.append((name, *times, row.cause.value, row.useful_us, nodes))
    return rows


def play(case: Any) -> str:
    """Compare a case with the oracle; return what was compared.

    In the circumstances `Simulation.doubts`, neither the documentation nor the paper decides. The
    result names such a difference.
    """
    oracle = simulation_of(case)
    try:
        return compare(case, oracle)
    except AssertionError:
        if not oracle.doubts:
            raise
    return f"not decided: {', '.join(sorted(oracle.doubts))}"


def compare(case: Any, oracle: Simulation) -> str:
    """Check that a case has the records of the oracle; return what was compared."""
    try:
        oracle.run()
        stuck = False
    except StuckError:
        stuck = True
    expected = case.run("auto")
    if isinstance(expected, str):
        assert stuck, f"the program stops: {expected}"
        return "stuck"
    assert not stuck, "the oracle has no more events"
    ours = [(r.id, r.start, r.end, r.cause, r.useful, r.nodes) for r in oracle.records]
    theirs = rows_of(expected)
    for mine, other in zip(ours, theirs, strict=False):
        assert mine == other, f"\n  oracle  {mine}\n  program {other}"
    assert len(ours) == len(theirs), (len(ours), len(theirs))
    refused = [(job.partition("!")[2], why) for job, why in expected.ledger.rejections]
    assert oracle.rejections == refused, (oracle.rejections, refused)
    names = [job.partition("!")[2] for job in expected.ledger.given_up]
    assert sorted(oracle.given_up) == sorted(names), (oracle.given_up, names)
    ledger = expected.ledger
    assert oracle.steals == [*ledger.steals], (oracle.steals, ledger.steals)
    off = sorted(oracle.steals_off), sorted(ledger.steals_off)  # no order within an instant
    assert off[0] == off[1], off
    if ledger.holds:
        return "holds"
    return "steals" if ledger.steals else "requeues" if ledger.interrupted else "plain"


def case_of(seed: int) -> Case:
    """Return the case of a seed, which the oracle can simulate: jobs with errors run once."""
    case = Case(seed, limited=False)
    case.policy = case.policy.replace(",silent_errors=retry", "")
    return case


if __name__ == "__main__":
    play_all(
        lambda seed: [play(case_of(seed))],
        lambda seed: case_of(seed).policy,
        *map(int, sys.argv[1:]),
        excepts=True,
    )
