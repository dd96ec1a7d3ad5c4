# SPDX-License-Identifier: Apache-2.0
"""The history of a job, and its effective training time up to any time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.core.errors import InputError
from rebat.models.tiers import add_tiers, parse_tiers
from rebat.results.measures.recoveries import cumulative_ettr, job_parts, largest_job
from tests.support.scenarios import fails, failures, machine, run

N_NODES = 10
POLICIES = (
    "easy:detect=3",
    "easy:detect=2,diagnose=1,reschedule=1,init=1",
    "training-requeue:detect=1",
    "training-swap:detect=2,spares=2",
)
TIERS = ("remote=2/5@7", "peer=1/3@5+remote=2/4@10", "memory=1/2@4+remote=3/1@12")


def tiered(tiers: str, *jobs: tuple):
    """Return jobs of (nodes, work, submission) with checkpoints in tiers and long walltimes."""
    workload = machine(N_NODES, *((*job, 100_000) for job in jobs))
    return add_tiers(
        workload, parse_tiers(tiers), n_nodes=N_NODES, mtbf_s=100, light_share=0.5, software=""
    )


def seconds(parts) -> list[tuple[str, float, float]]:
    return [(part.kind, part.start_us / 1e6, part.end_us / 1e6) for part in parts]


def test_a_failed_job_waits_hangs_loads_and_works() -> None:
    """A node fails at 23 s, 20 s after the start. The second checkpoint was complete after 18 s."""
    workload = tiered("remote=2/5@7", (N_NODES, 20, 3))
    policy = "easy:detect=3,reschedule=1,init=2"
    parts = job_parts(run(policy, workload, fails(0, 23, 40)).ledger, "1")
    assert seconds(parts) == [
        ("kept", 3, 21),
        ("lost", 21, 23),
        ("detect", 23, 26),
        ("reschedule", 26, 27),
        ("wait", 27, 40),
        ("load", 40, 47),
        ("kept", 47, 53),
    ]
    assert [part.work_us for part in parts if part.kind == "kept"] == [14_000_000, 6_000_000]


@given(
    st.integers(1, N_NODES - 2), st.integers(1, 40), st.integers(0, 20), failures(N_NODES),
    st.sampled_from(POLICIES), st.sampled_from(TIERS),
)  # fmt: skip
def test_the_ratio_at_the_end_is_that_of_the_metrics(
    nodes, work, submitted, events, policy, tiers
) -> None:
    result = run(policy, tiered(tiers, (nodes, work, submitted)), events)
    parts = job_parts(result.ledger, "1")
    starts, ends = ([getattr(part, name) for part in parts] for name in ("start_us", "end_us"))
    assert starts == [submitted * 1_000_000, *ends[:-1]]
    assert sum(part.work_us for part in parts) == work * 1_000_000
    ettr, queued = (values[0] for values in cumulative_ettr(parts, np.array([float(ends[-1])])))
    if result.summary.recoveries is not None:
        expected = result.summary.recoveries
        assert (ettr, queued) == pytest.approx((expected.ettr, expected.ettr_queued))
    else:
        spent = ends[-1] - starts[0]
        assert queued == pytest.approx(work * 1e6 / spent)


def test_the_ratio_falls_while_a_job_hangs_and_waits() -> None:
    workload = tiered("remote=2/5@7", (N_NODES, 20, 0))
    parts = job_parts(run("easy:detect=3", workload, fails(0, 7, 40)).ledger, "1")
    ettr, queued = cumulative_ettr(parts, np.array([7.0, 10.0, 40.0]) * 1e6)
    assert ettr == pytest.approx([0.0, 0.0, 0.0])  # no checkpoint before the failure
    assert queued == pytest.approx([0.0, 0.0, 0.0])
    late = run("easy:detect=3", workload, fails(0, 18, 40)).ledger
    ettr, queued = cumulative_ettr(job_parts(late, "1"), np.array([9.0, 21.0, 40.0]) * 1e6)
    assert ettr == pytest.approx([7 / 9, 14 / 21, 14 / 21])  # work up to a checkpoint remains kept
    assert queued == pytest.approx([7 / 9, 14 / 21, 14 / 40])


def test_the_largest_job_uses_the_most_node_time() -> None:
    ledger = run("easy", machine(10, (10, 5), (4, 20), (2, 30))).ledger
    assert largest_job(ledger) == "2"


def test_unknown_jobs_and_runs_without_jobs_are_refused() -> None:
    ledger = run("easy", machine(10, (11, 5))).ledger
    assert job_parts(ledger, "1") == []  # it never ran
    with pytest.raises(InputError, match="no job ran"):
        largest_job(ledger)
    with pytest.raises(InputError, match="unknown job '2'"):
        job_parts(ledger, "2")
