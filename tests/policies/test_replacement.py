# SPDX-License-Identifier: Apache-2.0
"""Each step of dynamic node replacement (section III of Prabhakaran, Neumann and Wolf 2018)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rebat.core.attempts import Cause
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.units import to_us
from rebat.models.checkpoint import add_perfect
from rebat.models.failures.events import MachineEvent
from rebat.policies.presets import identity, preset
from tests.policies.test_flexible import story
from tests.support.flexible import flexible, malleable, moldable
from tests.support.scenarios import check_run, run

ON = "react=replacement"


def down(nodes: str, at: float, back: float) -> list[MachineEvent]:
    """Return the common failure and the common repair of some nodes."""
    nodes = NodeSet.parse(nodes)
    return [MachineEvent(to_us(at), False, nodes), MachineEvent(to_us(back), True, nodes)]


def replaced(policy: str, workload, events):
    """Return the attempts that ran, and the reasons of stops by attempt."""
    result = run(policy, add_perfect(workload), events)
    check_run(result)
    words = {
        r.attempt.id.partition("!")[2]: r.why
        for r in result.ledger.attempts
        if r.why not in ("", "grow", "shrink")
    }
    return story(result), words


def test_a_malleable_job_goes_on_on_the_nodes_that_are_left() -> None:
    """Of 400 node-seconds, 100 are done at the failure. The job continues on three nodes, and
    from 50 on four nodes again."""
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
    """Nodes 2 and 3 fail. One node is idle, and the first of the two failed jobs gets it."""
    workload = flexible(6, (3, 100, 0, None), (2, 100, 0, None))
    ran, words = replaced(f"baseline:{ON}", workload, down("2-3", 20, 60))
    assert words == {"1": "idle"}
    assert ran["1#1"] == (3, 20, 100)
    assert ran["2#1"] == (2, 60, 140)


def test_spare_nodes_come_first_and_are_filled_up() -> None:
    """The last of six nodes is a spare node, so job 2 waits. After the failure the idle node 4
    becomes the next spare node."""
    workload = flexible(6, (4, 100, 0, None), (2, 10, 0, None), (5, 10, 60, None))
    result = run(f"baseline:{ON},spares=1", add_perfect(workload), down("0", 25, 50))
    nodes = {r.attempt.id.partition("!")[2]: str(r.nodes) for r in result.ledger.attempts}
    assert nodes["1#1"].replace(" ", ",") in ("1-3,5", "1,2,3,5")
    assert story(result)["1#1"] == (4, 25, 100)
    assert story(result)["2"] == (2, 100, 110)
    assert (nodes["3"], story(result)["3"][1]) == ("0-3 5", 110)


def test_while_a_job_that_was_hit_waits_spare_nodes_are_for_it() -> None:
    """Job 1 loses two nodes, and there is one spare node. At 40 job 3 ends, and its node is the
    second."""
    workload = flexible(8, (4, 100, 0, None), (2, 500, 0, None), (1, 40, 0, None))
    ran, _ = replaced(f"baseline:{ON},spares=1", workload, down("0-1", 10, 1000))
    assert ran["1#1"] == (4, 40, 130)


def test_others_shrink_for_it_together_with_what_is_idle() -> None:
    """Two nodes of job 1 fail. One node is idle, and job 2 shrinks by another."""
    workload = flexible(8, (4, 100, 0, None), (3, 100, 0, malleable(2, 3)))
    ran, words = replaced(f"dbes:{ON}", workload, down("0-1", 20, 500))
    assert words == {"2": "lend", "1": "remote"}
    assert ran["1#1"] == (4, 20, 100)
    assert ran["2#1"][:2] == (2, 20)


@pytest.mark.parametrize(
    ("lenders", "lender"), [("rule", "3"), ("latest", "3"), ("earliest", "2"), ("fewest", "3")]
)
def test_the_order_of_expansions_decides_which_job_shrinks(lenders: str, lender: str) -> None:
    """Job 2 grows to four nodes at 0, job 3 at 5. At 20 node 0 of job 1 fails, and no node is idle.

    Both jobs have grown once, so that ``fewest`` selects the younger job.
    """
    workload = flexible(
        12, (4, 100, 0, None), (2, 100, 0, malleable(2, 4)), (2, 100, 5, malleable(2, 4))
    )
    policy = f"dbes:{ON},malleable=pwa,lenders={lenders}"
    ran, words = replaced(policy, workload, down("0", 20, 500))
    assert words == {f"{lender}#1": "lend", "1": "remote"}
    assert ran["1#1"] == (4, 20, 100)
    assert ran[f"{lender}#2"][:2] == (3, 20)


@pytest.mark.parametrize(("lenders", "lender"), [("rule", "3"), ("fewest", "2")])
def test_the_job_with_the_fewest_resizes_shrinks_first(lenders: str, lender: str) -> None:
    """Job 2 grows at 0. Job 3 grows at 5 and again at 10, when job 4 ends. At 20 node 0 fails."""
    workload = flexible(
        13,
        (4, 100, 0, None),
        (2, 100, 0, malleable(2, 4)),
        (2, 100, 5, malleable(2, 5)),
        (1, 10, 0, None),
    )
    policy = f"dbes:{ON},malleable=pwa,lenders={lenders}"
    ran, words = replaced(policy, workload, down("0", 20, 500))
    assert words == {f"{lender}#1" if lender == "2" else "3#2": "lend", "1": "remote"}
    assert ran["1#1"] == (4, 20, 100)


def test_without_a_step_the_next_one_helps() -> None:
    workload = flexible(8, (4, 100, 0, None), (3, 100, 0, malleable(2, 3)))
    steps = "steps=local+idle+restart+wait"
    ran, words = replaced(f"dbes:{ON},{steps}", workload, down("0-1", 20, 60))
    assert words == {}  # job 1 is requeued, and DBES shrinks job 2 for it, as without replacement
    assert ran["1#1"] == (4, 20, 100)
    assert ran["2#1"][:2] == (2, 20)


def test_nobody_starts_over_where_waiting_is_shorter() -> None:
    """Job 1 loses a node at 80. Job 2 started at 75 on four nodes and is planned to end at 166,
    so job 1 would wait for 86 s. If job 2 started over on two nodes, it would end at 80 + 182,
    which is 96 s later than planned."""
    workload = flexible(10, (4, 100, 0, None), (4, 90, 75, moldable(2)), (2, 1000, 0, None))
    ran, words = replaced(f"sa:{ON}", workload, down("0", 80, 5000))
    assert words == {}
    assert ran["1#1"] == (4, 165, 185)


def test_a_moldable_job_starts_over_where_that_delays_less() -> None:
    """Figure 3: job 2 started at 79 and is planned to end at 100, so job 1 would wait for 20 s.
    On three nodes job 2 is only slightly slower. If it starts over on them, it ends at
    80 + 21 x 1.008, which is 1.2 s later than planned."""
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
    """Figure 2: job 1 loses one of its four nodes at 2. Job 2 ends at 301 at the latest. On
    three nodes job 1 ends at 2 + 101 x 4/3 = 136.67, which is 35.67 s later than planned."""
    workload = flexible(6, (4, 100, 0, moldable(2, 3)), (2, 300, 0, None))
    ran, words = replaced(f"sa:{ON}", workload, down("0", 2, 5000))
    assert words == {"1": "restart"}
    assert ran["1#1"] == (3, 2, 135.333333)


def test_a_job_that_starts_over_keeps_the_silent_errors_that_it_has_left() -> None:
    """The first attempt ends with the only error of the job, at 100. The second loses a node."""
    workload = flexible(6, (4, 100, 0, moldable(2, 3)), (2, 300, 0, None))
    error = {"ret": 1, "silent_errors": 1}
    profiles = workload.profiles | {"p1": workload.profiles["p1"] | error}
    events = down("0", 102, 5000)
    result = run(f"sa:{ON},silent_errors=retry", replace(workload, profiles=profiles), events)
    attempts = [r for r in result.ledger.attempts if r.attempt.job_id == "w0!1"]
    assert [r.cause for r in attempts] == [Cause.SILENT_ERROR, Cause.NODE_FAILURE, Cause.COMPLETED]
    assert [r.attempt.n_nodes for r in attempts] == [4, 4, 3]


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
    """Job 2 was submitted before the resubmission, so it is planned before it."""
    workload = flexible(4, (4, 100, 0, None), (4, 10, 1, None))
    ran, words = replaced(f"baseline:{ON},steps=idle", workload, down("0", 10, 20))
    assert (ran["2"], ran["1#1"]) == ((4, 20, 30), (4, 30, 120))
    assert words == {"1": "requeue"}


def test_what_is_not_replaced_may_be_stolen() -> None:
    """No node is idle, so job 1 takes the node of job 2, as under SFSJ."""
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


# ---- rules of the paper that are not the defaults


def test_the_wait_counts_repairs_unless_only_jobs_are_expected() -> None:
    """Job 1 on three nodes would end at 2 + 101 x 4/3 = 136.67, which is 35.67 s later than
    planned. Job 2 ends at 301 at the latest. A repair is expected within 30 s, which is earlier,
    so job 1 waits."""
    jobs = (4, 100, 0, moldable(2, 3)), (2, 300, 0, None)
    ran, words = replaced(f"sa:{ON},repair=30", flexible(6, *jobs), down("0", 2, 12))
    assert (words, ran["1#1"]) == ({}, (4, 12, 110))
    spec = f"sa:{ON},expected=jobs"
    ran, words = replaced(spec, flexible(6, *jobs), down("0", 2, 12))
    assert (words, ran["1#1"]) == ({"1": "restart"}, (3, 2, 135.333333))


def test_a_paused_job_keeps_its_nodes() -> None:
    """Job 1 loses one of four nodes at 10 and is paused on three. Job 2 would fit on two of
    them, but starts only when job 1 has ended. A requeued job 1 would leave its three nodes to
    job 2."""
    workload = flexible(4, (4, 100, 0, None), (2, 10, 1, None))
    result = run(f"baseline:{ON},wait=hold", add_perfect(workload), down("0", 10, 20))
    check_run(result)
    assert story(result) == {"1": (4, 0, 10), "1#1": (4, 20, 110), "2": (2, 110, 120)}
    assert result.summary.platform.held == 30  # three nodes for 10 s
    assert result.summary.resizes.requeued == 1
    assert result.ledger.attempts[0].why == "pause"


def test_the_nodes_that_become_idle_go_to_the_paused_job() -> None:
    """Two nodes of job 1 fail at 10. Job 3 ends at 20, and its node is reserved for job 1, so
    job 4 waits. Job 2 ends at 30. Then job 1 continues on its own two nodes and the nodes of
    jobs 2 and 3."""
    jobs = (4, 100, 0, None), (1, 30, 0, None), (1, 20, 0, None), (1, 5, 1, None)
    workload = flexible(6, *jobs)
    result = run(f"baseline:{ON},wait=hold", add_perfect(workload), down("0-1", 10, 500))
    check_run(result)
    assert story(result)["1#1"] == (4, 30, 120)
    nodes = {r.attempt.id.partition("!")[2]: set(r.nodes) for r in result.ledger.attempts}
    assert nodes["1#1"] == {2, 3, 4, 5}
    assert story(result)["4"] == (1, 120, 125)
    assert result.summary.platform.held == 40  # two nodes for 20 s


def test_a_paused_job_that_needs_less_goes_before_an_earlier_one() -> None:
    """Job 1 loses two nodes at 10, job 2 loses one at 12. At 20 one node is idle, which is
    enough for job 2. Job 1 waits for its two nodes, which are back at 50."""
    workload = flexible(8, (4, 100, 0, None), (3, 100, 0, None), (1, 20, 0, None))
    events = sorted(
        [*down("0-1", 10, 50), *down("4", 12, 300)], key=lambda event: event.at_us
    )  # fmt: skip
    ran, words = replaced(f"baseline:{ON},wait=hold", workload, events)
    assert words == {"1": "pause", "2": "pause"}
    assert (ran["2#1"], ran["1#1"]) == ((3, 20, 108), (4, 50, 140))


def test_a_paused_job_whose_last_node_fails_waits_in_the_queue() -> None:
    workload = flexible(2, (2, 100, 0, None))
    events = sorted([*down("0", 10, 60), *down("1", 20, 40)], key=lambda event: event.at_us)
    result = run(f"baseline:{ON},wait=hold", add_perfect(workload), events)
    check_run(result)
    assert story(result)["1#1"] == (2, 60, 150)
    assert result.summary.platform.held == 10


def test_a_malleable_job_is_paused_until_it_has_its_minimum() -> None:
    """At 25 three of four nodes fail, but the minimum is three, and 300 of 400 node-seconds are
    left. One node is back at 30, another at 40, when the job continues on three. The fourth is
    back at 90."""
    events = sorted(
        [*down("0", 25, 30), *down("1", 25, 40), *down("2", 25, 90)],
        key=lambda event: event.at_us,
    )  # fmt: skip
    workload = flexible(4, (4, 100, 0, malleable(3, 4)))
    ran, words = replaced(f"dbes:{ON},wait=hold", workload, events)
    assert words["1"] == "pause"
    starts = sorted((start, size) for size, start, _ in ran.values())
    assert starts == [(0, 4), (40, 3), (90, 4)]
    assert max(end for _, _, end in ran.values()) == 127.5  # 300 - 150 over four nodes


def test_spare_nodes_are_for_a_paused_job() -> None:
    """Job 1 loses two nodes, and there is one spare node. At 40 job 3 ends, and its node is the
    second."""
    workload = flexible(8, (4, 100, 0, None), (2, 500, 0, None), (1, 40, 0, None))
    ran, _ = replaced(f"baseline:{ON},spares=1,wait=hold", workload, down("0-1", 10, 1000))
    assert ran["1#1"] == (4, 40, 130)


def test_a_moldable_job_continues_from_its_checkpoint_on_fewer_nodes() -> None:
    """Job 1 has 98 s of work left on four nodes, or 98 x 4/3 on three. By its walltime it ends
    33 s later than planned, but job 2 ends only at 301."""
    workload = flexible(6, (4, 100, 0, moldable(2, 3)), (2, 300, 0, None))
    result = run(f"sa:{ON},restarts=checkpoint", add_perfect(workload), down("0", 2, 5000))
    check_run(result)
    assert story(result)["1#1"] == (3, 2, 132.666667)
    assert result.ledger.attempts[0].useful_us == to_us(2)
    assert result.rows[0].wasted_node_seconds == 0
    assert result.summary.resizes.by_restart == 1


def test_others_continue_from_their_checkpoint_where_starting_over_is_too_long() -> None:
    """The jobs are those of ``test_nobody_starts_over_where_waiting_is_shorter``. At 80 job 2
    has 86 s of its walltime left, which are 172 s on two nodes. Its 85 s of work take 170 s on
    two nodes."""
    workload = flexible(10, (4, 100, 0, None), (4, 90, 75, moldable(2)), (2, 1000, 0, None))
    ran, words = replaced(f"sa:{ON},restarts=checkpoint", workload, down("0", 80, 5000))
    assert words == {}  # job 2 would end 252 - 166 = 86 s later, not less than the wait of job 1
    jobs = (4, 100, 0, None), (4, 90, 75, moldable(3)), (2, 1000, 0, None)
    ran, words = replaced(f"sa:{ON}", flexible(10, *jobs), down("0", 80, 5000))
    assert words == {"2": "restart for another", "1": "restart"}
    over = ran["2#1"]
    ran, words = replaced(f"sa:{ON},restarts=checkpoint", flexible(10, *jobs), down("0", 80, 5000))
    assert words == {"2": "restart for another", "1": "restart"}
    assert over == (3, 80, 200)  # 90 x 4/3
    assert ran["2#1"] == (3, 80, 193.333333)  # 85 x 4/3


def test_without_perfect_checkpoints_the_last_checkpoint_counts() -> None:
    """The job takes a checkpoint of 1 s after every 10 s of work and at the end. At 25 s two are
    done, so 20 of its 100 s of work are saved. The other 80 s on four nodes take 106.67 s on
    three, with ten complete periods and an incomplete one: 11 checkpoints, and a recovery of
    2 s."""
    workload = flexible(6, (4, 100, 0, moldable(3)), (2, 3000, 0, None))
    profile = workload.profiles["p1"]
    profile |= {"checkpoint_period": 10, "checkpoint_cost": 1, "recovery_cost": 2}
    profile["delay"] = 110
    first = replace(workload.jobs[0], walltime_us=to_us(120))
    workload = replace(workload, jobs=(first, workload.jobs[1]))
    result = run(f"sa:{ON},restarts=checkpoint", workload, down("0", 25, 50_000))
    check_run(result)
    assert story(result)["1#1"] == (3, 25, round(25 + 2 + 80 * 4 / 3 + 11, 6))


def test_the_defaults_are_no_part_of_the_identity() -> None:
    """Results that earlier versions wrote keep their keys."""
    plain = identity(preset(f"sa:{ON}"))
    assert plain == identity(preset(f"sa:{ON},expected=jobs+repairs,wait=requeue"))
    assert not plain.keys() & {"expected", "wait", "restarts"}
    for axis in ("expected=jobs", "wait=hold", "restarts=checkpoint"):
        assert identity(preset(f"sa:{ON},{axis}")) != plain


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("baseline:react=replacing", "replacing"),
        ("baseline:react=replacement+replacement", "without duplicates"),
        ("baseline:react=requeue+stealing", "without duplicates"),
        ("baseline:react=replacement,steps=local+nearby", "nearby"),
        ("baseline:react=replacement,spares=-1", "spares"),
        ("baseline:steps=local", "has no effect with"),
        ("dbes:resize_cost=-1", "resize_cost"),
        ("sa:resize_cost=3", "has no effect with"),
        ("baseline:react=stealing+replacement", "stealing helps only jobs without"),
        ("baseline:react=replacement,steps=local,spares=2", "has no effect with"),
        ("pwa:manager=egg", "egg"),
        ("dbes:manager=egs", "has no effect with"),
        ("faps:react=replacement", "any, named or cluster"),
        ("sa:react=replacement,expected=repairs", "expected"),
        ("sa:react=replacement,expected=jobs,repair=60", "has no effect with"),
        ("sa:react=replacement,steps=idle+wait,restarts=checkpoint", "has no effect with"),
        ("sa:react=replacement,steps=idle,wait=hold", "has no effect with"),
        ("baseline:react=replacement+stealing,wait=hold", "a paused job steals no nodes"),
        ("baseline:react=replacement,wait=hold,passes=two", "passes=one"),
    ],
)
def test_bad_options_are_told_in_one_line(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        preset(spec)
    assert "\n" not in str(error.value)


def test_recovery_is_another_word_for_react() -> None:
    assert preset("baseline:recovery=stealing").point == preset("sfsj").point


def test_under_pra_a_hit_job_goes_before_growth_only_where_nodes_are_replaced() -> None:
    """Job 1 loses a node at 20, and no step replaces it. At 30 job 3 ends and leaves two nodes.
    With replacement, idle nodes wait for job 1 (step 5). Without it, job 2 grows, as PRA
    defines."""
    jobs = (4, 100, 0, None), (2, 300, 0, malleable(2, 8)), (2, 30, 0, None)
    steps = "react=replacement,steps=local+idle+wait"
    ran, _ = replaced(f"pra:{steps}", flexible(8, *jobs), down("0", 20, 5000))
    assert (ran["1#1"], ran["2"]) == ((4, 30, 110), (2, 0, 110))
    ran, _ = replaced("pra", flexible(8, *jobs), down("0", 20, 5000))
    assert ran["2#1"] == (5, 20, 30)
    assert ran["1#1"][1] > 30
