# SPDX-License-Identifier: Apache-2.0
"""Use of spare nodes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.results.measures.changes import spares
from rebat.results.measures.summary import as_json
from rebat.results.metric import flat_metrics
from tests.oracles.spare_use import spare_use
from tests.support.scenarios import fails, failures, machine, run

N_NODES = 10
SWAP = "easy:react=replacement,steps=idle+wait"
POLICIES = [f"{SWAP},spares=1", f"{SWAP},spares=3", f"{SWAP},spares=2,detect=2,init=1"]
JOBS = st.lists(
    st.tuples(st.integers(1, N_NODES - 3), st.integers(1, 40), st.integers(0, 60)),
    min_size=1, max_size=8,
)  # fmt: skip


def lengths(result) -> tuple[float, float, float]:
    measured = result.summary.spares
    return measured.ready, measured.replacing, measured.utilisation


def test_a_spare_replaces_until_the_failed_node_is_repaired() -> None:
    """Node 0 fails at 20 s and is repaired at 50 s; the spare node 3 remains in the job."""
    result = run(f"{SWAP},spares=1", machine(4, (3, 100, 0, 999)), fails(0, 20, 50))
    end = result.summary.makespan_s  # no checkpoints: the job starts again at 20
    assert end == 120
    assert lengths(result) == (20 + 120 - 50, 30, 30 / 120)  # at 50 node 0 becomes the spare node


def test_a_spare_replaces_until_its_job_ends() -> None:
    result = run(f"{SWAP},spares=1", machine(4, (3, 100, 0, 999)), fails(0, 20, 500))
    assert lengths(result) == (20, 100, 100 / 120)


def test_a_lent_spare_counts_only_in_a_job_that_lost_nodes() -> None:
    """Two nodes fail, so one spare is not enough: the job waits, and its spare runs another job."""
    jobs = machine(5, (4, 100, 0, 999), (1, 30, 21, 40))
    result = run(f"{SWAP},spares=1", jobs, [*fails(0, 20, 60), *fails(1, 20, 61)])
    last = max(result.ledger.attempts, key=lambda r: r.start_us)
    assert (str(last.nodes), last.start_us, last.end_us) == ("0 2-4", 60_000_000, 160_000_000)
    # Node 4 is lent at 20 s, 40 s before the job starts on it. From 61 s on node 1 is the spare
    # node.
    assert lengths(result) == (20 + 160 - 61, 0, 0)


def test_spare_nodes_that_are_down_are_not_ready() -> None:
    result = run(f"{SWAP},spares=2", machine(4, (2, 100, 0, 999)), fails(3, 20, 50))
    assert lengths(result) == (170, 0, 0)


def test_only_the_window_counts() -> None:
    result = run(f"{SWAP},spares=1", machine(4, (3, 100, 0, 999)), fails(0, 20, 50))
    measured = spares(result.ledger, (10_000_000, 30_000_000))
    assert (measured.ready, measured.replacing, measured.utilisation) == (10, 10, 0.5)


@given(JOBS, failures(N_NODES), st.sampled_from(POLICIES))
def test_the_measure_is_that_of_the_slow_oracle(jobs, events, policy) -> None:
    workload = machine(N_NODES, *((*job, 100_000) for job in jobs))
    result = run(policy, workload, events)
    ready, replacing = spare_use(result.ledger, round(result.summary.makespan_s))
    assert lengths(result)[:2] == (ready, replacing)


def test_policies_without_spare_nodes_have_no_such_metric() -> None:
    workload, events = machine(4, (3, 100)), fails(0, 20, 50)
    names = {
        policy: {name for name, *_ in flat_metrics(as_json(run(policy, workload, events).summary))}
        for policy in (SWAP, f"{SWAP},spares=1")
    }
    own = {"spares_utilisation", "spares_ready", "spares_replacing"}
    assert names[f"{SWAP},spares=1"] - names[SWAP] == own


def test_no_time_of_spare_nodes_has_no_utilisation() -> None:
    result = run(f"{SWAP},spares=1", machine(4, (3, 100)))
    assert spares(result.ledger, (200_000_000, 200_000_001)).utilisation == pytest.approx(0)
