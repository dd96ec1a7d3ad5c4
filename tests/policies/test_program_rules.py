# SPDX-License-Identifier: Apache-2.0
"""The node-stealing authors' program: every job of its recorded runs, and each of its rules.

The examples extend that of ``test_stealing_variants``: six nodes, B on node 0, F on nodes 1-3, C on
nodes 4-5. Node 1, which F uses, fails at 9, and no node is free. Jobs checkpoint with T = 10, C =
2, R = 1.
"""

from __future__ import annotations

import csv
import gzip

import pytest

from rebat.core.attempts import Attempt, Cause, Priority, Running
from rebat.core.jobs import Workload
from rebat.core.nodes import NodeSet
from rebat.core.options import Dialect
from rebat.models.failures.events import read_events
from rebat.models.interruptions import written
from rebat.models.remaining import period_as_forwarded_s
from rebat.policies.composition import Scheduler
from rebat.policies.context import Context
from rebat.policies.placement.plans import AnyOptions
from rebat.policies.presets import preset
from rebat.policies.queue_order import fcfs, program_id
from rebat.policies.reactions.stealing import NodeStealing, StealingOptions
from rebat.policies.reactions.victims import TIES, VICTIMS, Candidate, Steal, original_release
from rebat.results.files.batsim_csv import jobs_csv
from rebat.runs.single import simulate
from rebat.workloads.batsim_json import read_workload
from tests.policies.test_stealing_variants import EXAMPLE, FAILURE, flows, jobs
from tests.support.planning import by_list
from tests.support.recordings import DATA
from tests.support.scenarios import Custom, check_run, fails, run

pytestmark = pytest.mark.usefixtures("both_ways")

# From section 5 of the note and the summaries of the runs: the number of failures that hit normal
# running jobs, and of steals whose victim was interrupted, completed before, or failed before.
RECORDED = {
    "baseline": (896, 0, 0, 0),
    "h111": (897, 83, 0, 0),
    "h122": (895, 87, 0, 0),
    "h211": (890, 82, 4, 0),
    "h222": (898, 84, 3, 1),
    "h311": (901, 58, 80, 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("policy", RECORDED)
def test_a_real_month_equals_the_recorded_run_job_for_job(shared, policy: str) -> None:
    """Each of 5,321 jobs has the same number of attempts as in the authors' own run.

    Each finish time differs by at most 1 ms.
    """
    folder = shared / "golden" / "node-stealing"
    with gzip.open(folder / f"authors-{policy}.flows.csv.gz", "rt") as lines:
        recorded = {row["id"]: row for row in csv.DictReader(lines)}
    result = simulate(
        read_workload(folder / "mira-2018-11-ckpt.json.gz"),
        preset(f"authors-{policy}"),
        machine_events=read_events(folder / "failures-mtbf1h-downtime1h-seed0.events.gz"),
    )
    ours = {row.job_id: row for row in result.rows}
    assert ours.keys() == recorded.keys()
    different = [
        name
        for name, row in recorded.items()
        if abs(ours[name].finish_time - float(row["finish"])) > 0.001
        or ours[name].attempts != int(row["attempts"])
    ]
    assert different == [], f"{len(recorded) - len(different)} of {len(recorded)} equal"
    ledger = result.ledger
    taken = sum(record.cause == Cause.STOLEN for record in ledger.attempts)
    off = [why for _, why in ledger.steals_off]
    counts = (len(ledger.failures_that_hit), taken, off.count("ended"), off.count("hit"))
    assert counts == RECORDED[policy]
    assert len(ledger.steals) == sum(counts[1:])


def test_periods_have_six_decimals_as_on_the_wire() -> None:
    """The file has a period of 10.246950765959598 s, but Batsim reads 10.246951.

    Therefore resubmissions have the lengths that they have in Batsim.
    """
    folder = DATA / "real-batsim/authors-10us/cli"
    result = simulate(
        read_workload(folder / "w.json"),
        preset("authors-h111"),
        machine_events=read_events(folder / "f.events"),
    )
    assert [*jobs_csv(result.jobs)] == (folder / "real_jobs.csv").read_text().splitlines()


def first_start(result, name: str) -> float:
    return min(r.start_us for r in result.ledger.attempts if r.attempt.job_id == f"w0!{name}") / 1e6


def test_ids_are_those_of_the_program_and_sort_as_texts() -> None:
    """Copies sort before originals, and the tenth copy before the second (rules 1 and 6)."""
    attempts = [Attempt(f"w0!7#{k}", "w0!7", 9, 1, k, 4, 100, 5, 70) for k in (1, 2, 10)]
    attempts.append(Attempt("w0!7", "w0!7", 9, 1, 0, 4, 100, 5, 70))
    names = sorted(map(program_id, attempts))
    assert names == ["resubmit!7-1", "resubmit!7-10", "resubmit!7-2", "w0!7"]


@pytest.mark.parametrize(("tie", "victim"), [("order", "w0!D"), ("id", "w0!B")])
def test_rule_1_the_last_tie_between_victims_is_an_axis(tie: str, victim: str) -> None:
    """B and D have one node each and the same submission time. D is later in order, B has the
    smaller id."""
    workload = jobs(("B", 1, 0, 40), ("D", 1, 0, 40), ("F", 3, 1, 30), ("C", 1, 0, 50))
    result = run(f"sfsj:tie={tie}", workload, fails(3, 9, 1000))
    check_run(result)
    assert [r.attempt.id for r in result.ledger.attempts if r.cause == Cause.STOLEN] == [victim]


@pytest.mark.parametrize(("tie", "victim"), [("order", "late"), ("run-time", "short")])
def test_the_job_that_has_run_for_the_shortest_time_may_be_the_victim(
    tie: str, victim: str
) -> None:
    """Of two jobs of two nodes, one was released later, and the other has run for a shorter
    time."""
    rows = (("late", 2, 20, 30), ("short", 2, 10, 50), ("large", 3, 40, 60))
    candidates = []
    for serial, (name, size, submit_us, start_us) in enumerate(rows):
        attempt = Attempt(name, name, serial, serial, 0, size, 100, submit_us, submit_us, 0)
        running = Running(attempt, start_us, NodeSet.of(range(size)))
        release = original_release(attempt)
        of_tie = TIES[tie](running, release)
        candidates.append(Candidate(size, start_us, submit_us, 0, 0, running, release, of_tie))
    assert min(candidates, key=VICTIMS["fewest-nodes"]).running.attempt.id == victim


@pytest.mark.parametrize(("margin", "start"), [("0", 42), ("900", 10)])
def test_rule_2_plans_take_held_nodes_to_be_held_longer(margin: str, start: float) -> None:
    """Node 1 is back at 10, while nodes 2 and 3 are held for F until 11. D needs three nodes.

    Without a margin, D is planned on these nodes at 11, so that E (19 s) cannot start on node 1 at
    10. With a margin of 900 s, the nodes are planned as held until 911. D is then planned after the
    ends of B and C, and E starts before D.
    """
    crowd = jobs(
        ("B", 1, 0, 40), ("F", 3, 1, 30), ("C", 2, 2, 50), ("D", 3, 9.25, 30), ("E", 1, 9.5, 19)
    )  # fmt: skip
    result = run(f"h211:hold_margin={margin}", crowd, fails(1, 9, 10))
    check_run(result)
    assert (first_start(result, "E") == 10) == (start == 10)


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        ("together", {"B": 11, "F": 11 + 31 - 1, "C": 50, "D": 42 - 10 + 3}),
        ("others-first", {"B": 11, "D": 14 - 10, "F": 14 + 31 - 1, "C": 50}),
    ],
)
def test_rule_3_others_may_take_the_nodes_of_a_victim_that_ends_first(ended, expected) -> None:
    """B ends at 11, before its checkpoint at 12. F holds nodes 2 and 3, and D waits for one
    node."""
    short = jobs(("B", 1, 0, 11), ("F", 3, 1, 30), ("C", 2, 2, 50), ("D", 1, 10, 3))
    result = run(f"h311:ended={ended}", short, FAILURE)
    check_run(result)
    assert flows(result) == expected
    assert [why for _, why in result.ledger.steals_off] == ["ended"]


@pytest.mark.parametrize(
    ("hit", "priority"), [("failed", Priority.FAILED), ("victim", Priority.VICTIM)]
)
def test_rule_4_a_victim_that_is_hit_is_a_failed_job_or_a_victim(hit: str, priority: int) -> None:
    result = run(f"h311:hit={hit}", EXAMPLE, [*FAILURE, *fails(0, 11, 1000)])
    check_run(result)
    again = [r.attempt for r in result.ledger.attempts if r.attempt.id == "w0!B#1"]
    assert [attempt.priority for attempt in again] == [priority]
    assert [why for _, why in result.ledger.steals_off] == ["hit"]
    assert len(result.ledger.failures_that_hit) == (2 if hit == "failed" else 1)


@pytest.mark.parametrize(("held", "nodes"), [("surviving", "1"), ("lowest", "2")])
def test_rule_5_what_is_left_of_held_nodes_is_held_anew_on_the_lowest(held, nodes) -> None:
    """F holds nodes 2 and 3 until 14 for its steal from C (T3). Node 1 is back at 9.5.

    At 10 node 3 fails, too. One node stays held: node 2, or the lowest one, node 1. D gets the
    other.
    """
    crowd = jobs(("B", 1, 0, 40), ("F", 3, 1, 30), ("C", 2, 2, 50), ("D", 1, 10.5, 2))
    events = sorted([*fails(1, 9, 9.5), *fails(3, 10, 1000)], key=lambda event: event.at_us)
    result = run(f"h321:held={held},placement=named", crowd, events)
    check_run(result)
    assert [str(r.nodes) for r in result.ledger.attempts if r.attempt.id == "w0!D"] == [nodes]


@pytest.mark.parametrize(("order", "first"), [("fcfs", "2"), ("fcfs-by-id", "10")])
def test_rule_6_what_comes_at_one_date_goes_by_its_id_as_a_text(order: str, first: str) -> None:
    """Jobs 2 and 10 fail at the same time, and only one of them fits on the remaining nodes."""
    workload = jobs(("2", 3, 0, 40), ("10", 3, 1, 40))
    result = run(f"baseline:order={order}", workload, [*fails(1, 9, 1000), *fails(4, 9, 1000)])
    check_run(result)
    again = [r for r in result.ledger.attempts if r.attempt.number]
    assert min(again, key=lambda r: r.start_us).attempt.job_id == f"w0!{first}"


@pytest.mark.parametrize(("digits", "length"), [("all", 12334.678), ("six", 12334.7)])
def test_rule_7_resubmissions_are_written_with_six_digits(digits: str, length: float) -> None:
    """The job fails at 14, after its first checkpoint (12). R + 12345.678 - 12 seconds remain."""
    result = run(f"baseline:digits={digits}", jobs(("A", 3, 0, 12345.678)), fails(1, 14, 20))
    assert flows(result)["A"] == pytest.approx(14 + length, abs=1e-6)


def test_rule_8_periods_are_worked_out_from_a_rate_with_six_decimals() -> None:
    assert period_as_forwarded_s(3600.0, 300.0, 8192) == pytest.approx(3600.00107, abs=1e-5)
    assert written(period_as_forwarded_s(3600.0, 300.0, 8192)) == 3600
    assert period_as_forwarded_s(1e15, 1.0, 1) == 1e15  # a rate of 0 means no checkpoint


def cases(as_the_program: bool, timing: str, workload: Workload, events) -> list[Steal]:
    """Return the steals for which a criterion is evaluated. It refuses only those for B."""
    asked: list[Steal] = []

    def agree(steal: Steal) -> bool:
        if steal.failed.attempt.job_id == "w0!B":
            return False
        asked.append(steal)
        return True

    dialect = Dialect(k3="program" if as_the_program else "text")
    context = Context(fcfs, 0, AnyOptions().make(None, 0), dialect=dialect)
    stealing = NodeStealing(StealingOptions(timing=timing), context)
    stealing._criterion = agree
    check_run(simulate(workload, Custom(Scheduler(by_list(), [stealing])), machine_events=events))
    return asked


@pytest.mark.parametrize(("as_the_program", "end"), [(False, 46), (True, 45)])
def test_rule_9_k3_takes_the_victims_end_without_its_recovery(as_the_program, end) -> None:
    """B fails at 3 and starts over at 4, with 1 s of recovery and a walltime of 41 s: until 46
    at most."""
    events = sorted([*fails(0, 3, 4), *FAILURE], key=lambda event: event.at_us)
    (steal,) = cases(as_the_program, "now", EXAMPLE, events)
    assert steal.victim_end_us == end * 1e6


@pytest.mark.parametrize(("as_the_program", "end"), [(False, 41), (True, 15)])
def test_rule_9_k3_counts_nodes_that_are_held(as_the_program, end) -> None:
    """F waits until 15 for the checkpoint of its victim D, the youngest job. C fails at 10."""
    workload = jobs(("B", 1, 0, 40), ("F", 3, 1, 30), ("C", 2, 2, 50), ("D", 1, 3, 60))
    workload = Workload("seven", 7, workload.jobs, workload.profiles)
    events = [*fails(1, 9, 1000), *fails(4, 10, 1000)]
    first, second = cases(as_the_program, "next", workload, events)
    assert first.victim.attempt.id == "w0!D" and second.victim.attempt.id == "w0!B"
    assert second.next_end_us == end * 1e6


@pytest.mark.parametrize(("chosen", "steals"), [("again", 2), ("once", 1)])
def test_rule_9_a_victim_that_was_spared_may_be_chosen_again_or_not(chosen, steals) -> None:
    """F is to take B's node at 12, but loses two more nodes before, so B continues. C fails at
    10.5.

    B is the only job with fewer nodes than C.
    """
    workload = jobs(("B", 1, 0, 40), ("F", 3, 1, 30), ("C", 2, 2, 50))
    events = [
        *fails(1, 9, 1000), *fails(2, 10, 1000), *fails(3, 10.25, 1000), *fails(4, 10.5, 1000)
    ]  # fmt: skip
    result = run(f"h311:chosen={chosen}", workload, sorted(events, key=lambda event: event.at_us))
    check_run(result)
    assert len(result.ledger.steals) == steals
    assert result.ledger.steals_off[0][1] == "given up"
