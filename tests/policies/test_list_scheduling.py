# SPDX-License-Identifier: Apache-2.0
"""Small examples of planning."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from rebat.drive.ask import Session
from rebat.engine.engine import Engine
from rebat.policies.composition import Scheduler
from tests.support.amount import few
from tests.support.planning import Watched
from tests.support.scenarios import fails, failures, flows, machine, run, workloads

pytestmark = pytest.mark.usefixtures("both_ways")

# Of 4 nodes, 1 uses two and 2 needs all. 3 fits next to 1 but ends later; 4 ends earlier.
QUEUE = machine(4, (2, 10), (4, 10), (2, 20), (1, 5))


def test_greedy_starts_whatever_fits() -> None:
    assert flows(run("greedy", QUEUE)) == {"1": 10, "2": 30, "3": 20, "4": 15}


def test_easy_never_delays_the_head() -> None:
    assert flows(run("easy", QUEUE)) == {"1": 10, "2": 20, "3": 40, "4": 5}


def test_conservative_delays_nobody() -> None:
    assert flows(run("baseline", QUEUE)) == {"1": 10, "2": 20, "3": 40, "4": 5}


@settings(max_examples=few(200))
@given(workloads(), failures())
def test_a_conservative_plan_never_delays_a_queued_job_that_no_failure_touched(
    workload, events
) -> None:
    session = Session(Scheduler(Watched()))
    Engine(workload, events=events).run(session.handle)


@settings(max_examples=few(100))
@given(workloads())
def test_without_failures_stealing_changes_nothing(workload) -> None:
    assert flows(run("baseline", workload)) == flows(run("sfsj", workload))


def test_compression_lets_reservations_stand_that_a_rebuild_clears() -> None:
    """Jobs 1 and 3 end at 5, slightly early. Job 2 is reserved at 7 and job 4 at 5.01.

    With compression job 2 cannot start before 6.02, because job 4 keeps its reservation. With a
    rebuild job 2 is planned first, because it was submitted first.
    """
    workload = machine(3, (1, 5), (3, 7, 2), (2, 4, 1, 6), (1, 1, 4))
    assert flows(run("baseline:maintenance=compression", workload))["2"] == 11
    assert flows(run("baseline:maintenance=rebuild", workload))["2"] == 10


def test_the_program_compresses_on_a_rejuvenation() -> None:
    """While a node is down, job 2 cannot be placed, and job 3 takes a place before it.

    When the node is back at 7, the paper clears the plan, and job 2 is first again. The authors'
    program keeps the reservation of job 3 and moves it to 7.
    """
    workload = machine(4, (1, 8, 4), (4, 8, 4), (3, 9, 4, 17))
    paper = flows(run("baseline:maintenance=compression", workload, fails(2, 5, 7)))
    program = flows(run("baseline:maintenance=authors", workload, fails(2, 5, 7)))
    assert (paper["2"], paper["3"]) == (16, 25)
    assert (program["2"], program["3"]) == (20, 12)


def test_a_reservation_of_named_nodes_stands_in_the_way_where_a_counted_one_does_not() -> None:
    """Job 3 ends at 8 instead of 14. Job 2 could start on its node, which is reserved for job 4
    from 14.

    If the plan counts nodes, two nodes are left for job 4 at 14. If it names them, node 0 is taken
    from job 4, so job 2 waits for job 1.
    """
    workload = machine(3, (2, 8, 1), (1, 7, 2, 12), (1, 8, 0, 14), (2, 4, 4))
    assert flows(run("baseline:placement=any", workload))["2"] == 13
    assert flows(run("baseline:placement=named", workload))["2"] == 14
