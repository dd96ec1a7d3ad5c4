# SPDX-License-Identifier: Apache-2.0
"""Possible runs of moldable and malleable jobs have no findings; impossible ones have some."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebat.core.nodes import NodeSet
from rebat.models.checkpoint import add_perfect, add_young_daly
from rebat.results.files.batsim_files import JobRecord, read_jobs
from rebat.results.validate.findings import Reference
from rebat.results.validate.validate import validate
from rebat.runs.single import write_run
from tests.support.amount import few
from tests.support.flexible import flexible, flexible_workloads, group_failures, malleable, moldable
from tests.support.scenarios import fails, run

POLICIES = ["sa", "pra", "pwa:react=replacement", "dbes", "dbes:react=replacement"]


@settings(max_examples=few(80))
@given(
    workload=flexible_workloads(),
    events=group_failures(),
    policy=st.sampled_from(POLICIES),
    prepare=st.sampled_from(["none", "perfect", "young-daly"]),
)
def test_runs_are_clean(workload, events, policy, prepare) -> None:
    if prepare == "perfect":
        workload = add_perfect(workload)
    if prepare == "young-daly":
        workload = add_young_daly(workload, n_nodes=12, mtbf_s=20, cost_s=1.0, recovery_s=2.0)
    result = run(policy, workload, events)
    with tempfile.TemporaryDirectory() as folder:
        write_run(Path(folder), result, {})
        table = read_jobs(Path(folder))
    assert validate(table, Reference(12, events, workload, resubmits=True)) == []
    assert validate(table) == []


def findings(policy: str, workload, events, tmp_path: Path, **wrong) -> list[str]:
    """Return the kinds of findings after fields of the last row are changed."""
    result = run(policy, workload, events)
    write_run(tmp_path, result, {})
    table = read_jobs(tmp_path)
    reference = Reference(workload.n_nodes, events, workload, resubmits=True)
    assert validate(table, reference) == []
    last: JobRecord = table.records[-1]
    records = [*table.records[:-1], msgspec.structs.replace(last, **wrong)]
    changed = msgspec.structs.replace(table, records=records)
    return [finding.kind for finding in validate(changed, reference)]


def cut(row_end_us: int) -> dict[str, int | None]:
    """Return the fields of a row that ends at this time."""
    return {"end_us": row_end_us, "run_us": None, "flow_us": None, "stretch": None}


@pytest.mark.parametrize("shape", [malleable(2, 4), moldable(2)])
def test_a_size_beyond_the_shape_is_found(shape, tmp_path: Path) -> None:
    workload = add_perfect(flexible(8, (4, 100, 0, shape)))
    wrong = {"n_nodes": 6, "nodes": NodeSet.parse("0-5")}
    assert "size" in findings("sa", workload, fails(0, 20, 50), tmp_path, **wrong)


def test_a_resized_job_that_did_not_do_its_work_is_found(tmp_path: Path) -> None:
    """The job grew to 8 nodes for its last 30 s; the changed row has only 1 s of them."""
    workload = add_perfect(flexible(8, (4, 80, 0, malleable(2, 8)), (4, 20, 0, None)))
    result = run("pwa", workload)
    begins = max(job.start_us for job in result.jobs)
    assert "run time" in findings("pwa", workload, [], tmp_path, **cut(begins + 1_000_000))
