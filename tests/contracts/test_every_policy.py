# SPDX-License-Identifier: Apache-2.0
"""Rules that every preset must follow in every case."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rebat.core.jobs import Workload
from rebat.models.checkpoint import add_young_daly
from rebat.policies.presets import PRESETS, preset
from rebat.results.files.batsim_csv import jobs_csv
from rebat.results.files.run_csv import rows_csv
from tests.support.amount import few
from tests.support.scenarios import check_run, failures, flows, machine, run, workloads

pytestmark = pytest.mark.usefixtures("both_ways")

POLICIES = sorted(PRESETS)
relaxed = settings(max_examples=few(60), suppress_health_check=[HealthCheck.too_slow])
seldom = settings(relaxed, max_examples=few(8))


def prepared(workload: Workload, checkpoints: bool) -> Workload:
    """Add checkpoints to a workload, or return it unchanged."""
    if not checkpoints:
        return workload
    return add_young_daly(workload, n_nodes=10, mtbf_s=20, cost_s=1.0, recovery_s=2.0)


@pytest.mark.parametrize("policy", POLICIES)
class TestEveryPolicy:
    @relaxed
    @given(workload=workloads(), events=failures(), checkpoints=st.booleans())
    def test_is_safe_under_failures(self, policy, workload, events, checkpoints) -> None:
        workload = prepared(workload, checkpoints)
        result = run(policy, workload, events)
        check_run(result)
        assert len(result.rows) == len(workload.jobs)

    @seldom
    @given(workload=workloads(), events=failures(), checkpoints=st.booleans())
    def test_gives_the_same_bytes_again(self, policy, workload, events, checkpoints) -> None:
        workload = prepared(workload, checkpoints)
        first, second = run(policy, workload, events), run(policy, workload, events)
        assert [*jobs_csv(first.jobs)] == [*jobs_csv(second.jobs)]
        assert [*rows_csv(first.rows)] == [*rows_csv(second.rows)]

    def test_runs_a_job_alone_at_once(self, policy) -> None:
        assert flows(run(policy, machine(16, (4, 10)))) == {"1": 10}

    def test_rejects_what_is_larger_than_the_machine(self, policy) -> None:
        result = run(policy, machine(4, (5, 10), (1, 3)))
        states = {row.job_id: row.final_state for row in result.rows}
        assert states == {"1": "REJECTED", "2": "COMPLETED_SUCCESSFULLY"}

    def test_says_what_it_is(self, policy) -> None:
        chosen = preset(policy)
        assert chosen.summary and chosen.source
