# SPDX-License-Identifier: Apache-2.0
"""Dynamic node replacement, step by step (section III of Prabhakaran, Neumann and Wolf 2018)."""

from __future__ import annotations

import pytest

from rebat.core.attempts import Cause
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.units import to_us
from rebat.models.checkpoint import add_perfect
from rebat.models.failures.events import MachineEvent
from rebat.policies.presets import preset
from tests.flexible import flexible, malleable, moldable
from tests.policies.test_flexible import story
from tests.scenarios import check_run, run

ON = "react=replacement"


def down(nodes: str, at: float, back: float) -> list[MachineEvent]:
    """Nodes that fail together and come back."""
    nodes = NodeSet.parse(nodes)
    return [MachineEvent(to_us(at), False, nodes), MachineEvent(to_us(back), True, nodes)]


def replaced(policy: str, workload, events):
    """What ran, and the words of the stops by attempt."""
    result = run(policy, add_perfect(workload), events)
    check_run(result)
    words = {
        r.attempt.id.partition("!")[2]: r.why
        for r in result.ledger.attempts
        if r.why not in ("", "grow", "shrink")
    }
    return story(result), words


def test_a_malleable_job_goes_on_on_the_nodes_that_are_left() -> None:
    """400 node-seconds: 100 until the failure, then three nodes, then the fourth again at 50."""
    workload = flexible(4, (4, 100, 0, malleable(2, 4)))
    ran, words = replaced(f"dbes:{ON}", workload, down("1", 25, 50))
    assert ran == {"1": (4, 0, 25), "1#1": (3, 25, 50), "1#2": (4, 50, 106.25)}
    assert words == {"1": "local"}


def test_idle_nodes_stand_in() -> None:
    workload = flexible(6, (4, 100, 0, None))
    ran, words = replaced(f"baseline:{ON}", workload, down("1", 25, 500))
    assert ran == {"1": (4, 0, 25), "1#1": (4, 25, 100)}
    assert words == {"1": "idle"}


def test_the_other_nodes_of_the_job_are_kept() -> None:
    result = run(f"baseline:{ON}", add_perfect(flexible(8, (4, 100, 0, None), (2, 100, 0, None))),
                 down("1-2", 25, 500))  # fmt: skip
    nodes = {r.attempt.id: str(r.nodes) for r in result.ledger.attempts}
    assert nodes["w0!1#1"].replace(" ", ",") in ("0,3,6-7", "0,3,6,7")


def test_a_failure_of_processors_of_two_jobs_is_decided_on_as_a_whole() -> None:
    """Nodes 2 and 3 die: one idle node is left, for the first of the two that were hit."""
    workload = flexible(6, (3, 100, 0, None), (2, 100, 0, None))
    ran, words = replaced(f"baseline:{ON}", workload, down("2-3", 20, 60))
    assert words == {"1": "idle"}
    assert ran["1#1"] == (3, 20, 100)
    assert ran["2#1"] == (2, 60, 140)


def test_spare_nodes_come_first_and_are_filled_up() -> None:
    """Of six nodes the last is spare, so job 2 waits; node 4, which is idle, is the next one."""
    workload = flexible(6, (4, 100, 0, None), (2, 10, 0, None), (5, 10, 60, None))
    result = run(f"baseline:{ON},spares=1", add_perfect(workload), down("0", 25, 50))
    nodes = {r.attempt.id.partition("!")[2]: str(r.nodes) for r in result.ledger.attempts}
    assert nodes["1#1"].replace(" ", ",") in ("1-3,5", "1,2,3,5")
    assert story(result)["1#1"] == (4, 25, 100)
    assert story(result)["2"] == (2, 100, 110)
    assert (nodes["3"], story(result)["3"][1]) == ("0-3 5", 110)


def test_while_a_job_that_was_hit_waits_spare_nodes_are_for_it() -> None:
    """Two nodes are lost and one is spare; at 40 job 3 ends, and with its node there are enough."""
    workload = flexible(8, (4, 100, 0, None), (2, 500, 0, None), (1, 40, 0, None))
    ran, _ = replaced(f"baseline:{ON},spares=1", workload, down("0-1", 10, 1000))
    assert ran["1#1"] == (4, 40, 130)


def test_others_shrink_for_it_together_with_what_is_idle() -> None:
    """Two nodes of job 1 die, one is idle, job 2 gives another."""
    workload = flexible(8, (4, 100, 0, None), (3, 100, 0, malleable(2, 3)))
    ran, words = replaced(f"dbes:{ON}", workload, down("0-1", 20, 500))
    assert words == {"2": "lend", "1": "remote"}
    assert ran["1#1"] == (4, 20, 100)
    assert ran["2#1"][:2] == (2, 20)


def test_without_a_step_the_next_one_helps() -> None:
    workload = flexible(8, (4, 100, 0, None), (3, 100, 0, malleable(2, 3)))
    steps = "steps=local+idle+restart+wait"
    ran, words = replaced(f"dbes:{ON},{steps}", workload, down("0-1", 20, 60))
    assert words == {}  # it waits, as under DBES without replacement, which shrinks job 2 for it
    assert ran["1#1"] == (4, 20, 100)
    assert ran["2#1"][:2] == (2, 20)


def test_nobody_starts_over_where_waiting_is_shorter() -> None:
    """Job 1 loses a node at 80. Job 2 began at 75 on four nodes, promised to end at 166: job 1
    would wait for 86 s. Over again on two nodes job 2 would end at 80 + 182: 96 s later."""
    workload = flexible(10, (4, 100, 0, None), (4, 90, 75, moldable(2)), (2, 1000, 0, None))
    ran, words = replaced(f"sa:{ON}", workload, down("0", 80, 5000))
    assert words == {}
    assert ran["1#1"] == (4, 165, 185)


def test_a_moldable_job_starts_over_where_that_delays_less() -> None:
    """Figure 3. Job 2 began at 79, promised for 100: job 1 would wait for 20 s. Three nodes are
    hardly slower: over again on them job 2 ends at 80 + 21 x 1.008, 1.2 s later than promised."""
    slow = {"model": "amdahl", "serial": 0.9}
    workload = flexible(
        10, (4, 100, 0, None), (4, 20, 79, moldable(3), slow), (2, 1000, 0, None)
    )  # fmt: skip
    ran, words = replaced(f"sa:{ON}", workload, down("0", 80, 5000))
    assert words == {"2": "restart for another", "1": "restart"}
    assert ran["1#1"] == (4, 80, 100)
    assert ran["2#1"][:2] == (3, 80)
    assert ran["2#1"][2] > 80 + 20  # from the beginning, on fewer nodes


def test_the_hit_job_itself_starts_over_on_fewer_nodes() -> None:
    """Figure 2: job 1 lost one of its four nodes after 2 s; job 2 ends at 301 at the latest. On
    three nodes it ends at 2 + 101 x 4/3 = 136.67, 35.67 s later than promised."""
    workload = flexible(6, (4, 100, 0, moldable(2, 3)), (2, 300, 0, None))
    ran, words = replaced(f"sa:{ON}", workload, down("0", 2, 5000))
    assert words == {"1": "restart"}
    assert ran["1#1"] == (3, 2, 135.333333)


@pytest.mark.parametrize("solver", ["kernel", "milp"])
def test_both_solvers_restart_the_same(solver: str) -> None:
    workload = flexible(6, (4, 100, 0, moldable(2, 3)), (2, 300, 0, None))
    ran, _ = replaced(f"sa:{ON},solver={solver}", workload, down("0", 2, 5000))
    assert ran["1#1"][0] == 3


def test_it_waits_at_the_head_of_the_queue() -> None:
    workload = flexible(4, (4, 100, 0, None), (2, 10, 1, None))
    ran, words = replaced(f"baseline:{ON}", workload, down("0", 10, 20))
    assert (ran["1#1"], ran["2"]) == ((4, 20, 110), (2, 10, 20))
    assert words == {}


def test_without_the_last_step_it_waits_at_the_end() -> None:
    """Job 2 was there before it, and is planned before it."""
    workload = flexible(4, (4, 100, 0, None), (4, 10, 1, None))
    ran, words = replaced(f"baseline:{ON},steps=idle", workload, down("0", 10, 20))
    assert (ran["2"], ran["1#1"]) == ((4, 20, 30), (4, 30, 120))
    assert words == {"1": "requeue"}


def test_what_is_not_replaced_may_be_stolen() -> None:
    """No node is idle: job 1 takes one of job 2's, as SFSJ has it."""
    workload = flexible(4, (3, 100, 0, None), (1, 100, 0, None))
    plain, _ = replaced(f"baseline:{ON}", workload, down("0", 10, 300))
    stolen, _ = replaced("baseline:react=replacement+stealing", workload, down("0", 10, 300))
    assert plain["1#1"][1] > 10
    assert stolen["1#1"] == (3, 10, 100)


def test_a_restart_loses_what_was_done() -> None:
    workload = flexible(6, (4, 100, 0, moldable(2, 3)), (2, 300, 0, None))
    result = run(f"sa:{ON}", add_perfect(workload), down("0", 2, 5000))
    first = result.ledger.attempts[0]
    assert (first.cause, first.useful_us) == (Cause.NODE_FAILURE, 0)
    assert result.rows[0].wasted_node_seconds == 8
    assert (result.summary.resizes.by_restart, result.summary.resizes.requeued) == (1, 0)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("baseline:react=replacing", "replacing"),
        ("baseline:react=replacement+replacement", "each at most once"),
        ("baseline:react=requeue+stealing", "each at most once"),
        ("baseline:react=replacement,steps=local+nearby", "nearby"),
        ("baseline:react=replacement,spares=-1", "spares"),
        ("baseline:steps=local", "has no effect here"),
        ("dbes:resize_cost=-1", "resize_cost"),
        ("sa:resize_cost=3", "has no effect here"),
        ("baseline:react=stealing+replacement", "stealing helps only jobs without"),
        ("baseline:react=replacement,steps=local,spares=2", "has no effect here"),
        ("pwa:manager=egg", "egg"),
        ("dbes:manager=egs", "has no effect here"),
        ("faps:react=replacement", "any, named or cluster"),
    ],
)
def test_bad_options_are_told_in_one_line(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        preset(spec)
    assert "\n" not in str(error.value)


def test_recovery_is_another_word_for_react() -> None:
    assert preset("baseline:recovery=stealing").point == preset("sfsj").point


def test_under_pra_a_hit_job_goes_before_growth_only_where_nodes_are_replaced() -> None:
    """Job 1 loses a node at 20, and nothing helps; at 30 job 3 leaves two. With replacement they
    wait for job 1 (step 5), without it job 2 takes them, as PRA has it."""
    jobs = (4, 100, 0, None), (2, 300, 0, malleable(2, 8)), (2, 30, 0, None)
    steps = "react=replacement,steps=local+idle+wait"
    ran, _ = replaced(f"pra:{steps}", flexible(8, *jobs), down("0", 20, 5000))
    assert (ran["1#1"], ran["2"]) == ((4, 30, 110), (2, 0, 110))
    ran, _ = replaced("pra", flexible(8, *jobs), down("0", 20, 5000))
    assert ran["2#1"] == (5, 20, 30)
    assert ran["1#1"][1] > 30
