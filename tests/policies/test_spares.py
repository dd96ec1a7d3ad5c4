# SPDX-License-Identifier: Apache-2.0
"""Jobs that can start only on spare nodes are rejected with each planning."""

from __future__ import annotations

import pytest

from rebat.api.remarks import of_results
from tests.session.test_hangs import story
from tests.support.flexible import flexible, malleable, moldable
from tests.support.scenarios import machine, run

SPARES = "react=replacement,spares=2"
PLANNINGS = [
    "baseline",
    "easy",
    "greedy",
    "conservative",
    "r-shelf-b",
    "r-list-q",
    "dbes",
    "pra",
    "sa",
]
REASON = "requires 8 nodes, but the maximum is 6: 2 of 8 nodes are spare nodes; reserve fewer"


def reasons(result) -> dict[str, str]:
    """Return the reason of each rejection by job."""
    return {name.rpartition("!")[2]: reason for name, reason in result.ledger.rejections}


@pytest.mark.parametrize("planning", PLANNINGS)
def test_a_job_on_the_entire_machine_is_rejected_and_the_message_names_the_spares(planning) -> None:
    workload = machine(8, (8, 10), (6, 10), (7, 10), (6, 10))
    result = run(f"{planning}:{SPARES}", workload)
    assert {name: cause for name, _, _, cause, _ in story(result)} == {
        "1": "rejected", "2": "completed", "3": "rejected", "4": "completed",
    }  # fmt: skip
    assert reasons(result)["1"].startswith(REASON)
    assert "requires 7 nodes, but the maximum is 6" in reasons(result)["3"]
    assert any(REASON in remark.text for remark in of_results([result]))


@pytest.mark.parametrize("planning", [*PLANNINGS, "training-swap"])
def test_without_spare_nodes_no_job_of_the_machine_is_rejected(planning) -> None:
    assert not reasons(run(f"{planning}:react=replacement", machine(8, (8, 10))))
    result = run(f"{planning}:react=replacement", machine(8, (9, 10)))
    assert reasons(result) == {"1": "requires 9 nodes, but the maximum is 8"}


def test_more_spare_nodes_than_nodes_leave_none() -> None:
    result = run("easy:react=replacement,spares=9", machine(8, (1, 10)))
    assert "the maximum is 0: 8 of 8 nodes are spare nodes" in reasons(result)["1"]


@pytest.mark.parametrize(
    ("planning", "shape", "rejected"),
    [
        ("dbes", malleable(1, 8), False),
        ("dbes:malleable=fixed", malleable(1, 8), True),  # only the requested size can start
        ("dbes:malleable=asked", malleable(1, 8), True),
        ("dbes", moldable(4, 8), False),
        ("dbes", moldable(7, 8), True),
        ("easy", malleable(1, 8), True),  # a malleable job is rigid here
    ],
)
def test_the_smallest_size_counts(planning: str, shape, rejected: bool) -> None:
    joined = f"{planning}{',' if ':' in planning else ':'}{SPARES}"
    result = run(joined, flexible(8, (8, 100, 0, shape)))
    assert bool(reasons(result)) == rejected
    assert all("2 of 8 nodes are spare nodes" in reason for reason in reasons(result).values())


def test_each_partition_has_a_share_of_the_spare_nodes() -> None:
    policy = f"cluster:{SPARES},partitions=low:0-3+high:4-7:2"
    workload = machine(8, (4, 10), (3, 10))
    result = run(policy, workload)
    assert reasons(result)["1"].startswith("requires 4 nodes, but the maximum is 3: 1 of 4 nodes")
    assert list(reasons(result)) == ["1"]
