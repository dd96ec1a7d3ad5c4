# SPDX-License-Identifier: Apache-2.0
"""The record of plans of a run: planned starts, causes of their changes, and obstacles."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebat.contract import Changes, PlannedStarts, Policy, Start
from rebat.contract.planned import NO_START
from rebat.core.attempts import job_name
from rebat.core.errors import PolicyError
from rebat.core.units import to_us
from rebat.drive.plan_record import PLAN_COLUMNS, PlanCause, PlanChange, PlanRecord
from rebat.policies.guard import Guarded
from rebat.results.explain.book import RunBook
from rebat.results.explain.story import story
from rebat.results.files.run_folder import read_plans
from rebat.runs.single import simulate, write_run
from tests.support.amount import few
from tests.support.scenarios import Custom, fails, machine, on_ring, workloads


class Row(NamedTuple):
    """A recorded change with names. The time is in seconds."""

    at_s: float
    attempt: str
    kind: str
    value: object
    causes: PlanCause


def record_of(policy, workload, events=()) -> PlanRecord:
    """Return the record of a run of a policy or of a preset with this name."""
    policy = on_ring(policy, workload.n_nodes) if isinstance(policy, str) else Custom(policy)
    record = simulate(workload, policy, machine_events=events, explain=True).plans
    assert record is not None
    return record


def readable(record: PlanRecord) -> list[Row]:
    """Return the changes of a record with names."""
    names = dict(zip(record.serials.tolist(), map(job_name, record.ids), strict=True))
    rows = []
    for index, serial, kind, value in record.rows.tolist():
        plan = dict(zip(PLAN_COLUMNS, record.plans[index].tolist(), strict=True))
        shown: object = names.get(value)
        if kind == PlanChange.PLANNED:
            shown = None if value == NO_START else value / 1e6
        elif kind == PlanChange.REASON:
            shown = record.texts[value]
        cause = PlanCause(plan["causes"])
        rows.append(Row(plan["at_us"] / 1e6, names[serial], PlanChange(kind).name, shown, cause))
    return rows


def rows_of(policy, workload, attempt, events=()) -> list[tuple]:
    """Return time, kind and value of the changes of one attempt."""
    rows = readable(record_of(policy, workload, events))
    return [(row.at_s, row.kind, row.value) for row in rows if row.attempt == attempt]


def causes_of(policy, workload, attempt, events=()) -> dict[float, PlanCause]:
    """Return the causes of the changes of an attempt by the time of the plan."""
    rows = readable(record_of(policy, workload, events))
    return {row.at_s: row.causes for row in rows if row.attempt == attempt}


TWO = machine(4, (4, 10, 0, 20), (4, 10, 1, 20))


def test_an_early_end_moves_a_reservation() -> None:
    assert rows_of("baseline", TWO, "1") == [(0, "PLANNED", 0)]
    assert rows_of("baseline", TWO, "2") == [
        (1, "PLANNED", 20),
        (1, "TOO_FEW", None),
        (10, "PLANNED", 10),
    ]
    causes = causes_of("baseline", TWO, "2")
    assert causes == {1: PlanCause.ARRIVAL, 10: PlanCause.END}


def test_a_plan_that_moves_nothing_adds_no_row() -> None:
    arrivals = machine(4, (4, 10, 0, 20), (4, 10, 1, 20), (4, 1, 2), (4, 1, 3))
    assert rows_of("baseline", arrivals, "2") == rows_of("baseline", TWO, "2")


def test_a_failure_and_a_repair_move_a_reservation() -> None:
    events = fails(0, 5, 12)
    assert rows_of("baseline", TWO, "2", events)[2:] == [
        (5, "PLANNED", None),  # three nodes are up, too few for the job
        (12, "PLANNED", 32),
        (22, "PLANNED", 22),
    ]
    causes = causes_of("baseline", TWO, "2", events)
    assert causes[5] == PlanCause.FAILURE | PlanCause.STOP | PlanCause.RETURN
    assert causes[12] == PlanCause.REPAIR


def test_the_plan_names_the_failed_node_and_the_stopped_attempt() -> None:
    record = record_of("baseline", TWO, fails(2, 5, 12))
    names = dict(zip(record.serials.tolist(), record.ids, strict=True))
    (plan,) = (p for p in record.plans.tolist() if p[0] == to_us(5))
    facts = dict(zip(PLAN_COLUMNS, plan, strict=True))
    assert facts["down_node"] == 2 and facts["n_free"] == 3
    assert (names[facts["stopped"]], names[facts["returned"]]) == ("w0!1", "w0!1#1")
    assert facts["arrived"] == facts["ended"] == facts["held"] == -1


def test_a_job_that_would_delay_the_head_is_reserved_for_it() -> None:
    """EASY: two nodes are free, but the third job would delay the reservation of the head."""
    workload = machine(4, (2, 10, 0, 10), (4, 10, 1, 10), (2, 20, 2, 20), (2, 3, 3, 3))
    assert (
        rows_of("easy", workload, "2")
        == [(1, "PLANNED", 10), (1, "TOO_FEW", None)] + [(10.0, "PLANNED", 10.0)] * 0
    )
    third = rows_of("easy", workload, "3")
    assert third[0] == (2, "RESERVED", "2")
    assert rows_of("easy", workload, "4") == [(3, "PLANNED", 3)]


def test_conservative_backfilling_names_the_reservation_that_would_be_delayed() -> None:
    workload = machine(4, (2, 10, 0, 10), (4, 10, 1, 10), (2, 20, 2, 20))
    third = rows_of("baseline", workload, "3")
    assert third[:2] == [(2, "PLANNED", 20), (2, "RESERVED", "2")]


def test_first_come_first_served_blocks_behind_the_head() -> None:
    workload = machine(4, (2, 10, 0, 10), (4, 10, 1, 10), (2, 3, 2, 3))
    assert rows_of("batsched-fcfs", workload, "2") == [(1, "TOO_FEW", None)]
    assert rows_of("batsched-fcfs", workload, "3") == [(2, "IN_ORDER", "2"), (10, "TOO_FEW", None)]


def test_a_steal_is_a_stop_before_the_plan() -> None:
    """The failed job takes the node of the smaller job, which returns to the queue."""
    workload = machine(4, (3, 10, 0, 20), (1, 30, 1, 40))
    record = record_of("sfsj", workload, fails(0, 5, 100))
    stolen = [row for row in readable(record) if row.attempt == "2#1"]
    assert stolen[0].at_s == 5
    assert PlanCause.STOP | PlanCause.FAILURE | PlanCause.RETURN in stolen[0].causes
    plan = dict(zip(PLAN_COLUMNS, record.plans[record.plans[:, 0] == to_us(5)][0], strict=True))
    names = dict(zip(record.serials.tolist(), record.ids, strict=True))
    assert names[plan["stopped"]] in ("w0!1", "w0!2")


class Explains(Policy):
    """A first-come, first-served policy with planned starts and reasons."""

    def plan(self, view, changes):
        free = view.n_free
        for attempt in view.queue.values():
            if attempt.n_nodes > free:
                return
            free -= attempt.n_nodes
            yield Start(attempt.id)

    def planned(self, view):
        ends = [running.planned_end_us for running in view.running.values()]
        return PlannedStarts.of(view, {name: max(ends) for name in view.queue})

    def reasons(self, view):
        return dict.fromkeys(view.queue, f"{view.n_free} of 4 nodes")


def test_a_custom_policy_attaches_planned_starts_and_reasons() -> None:
    policy = Guarded(Explains(), "Explains", [])
    assert rows_of(policy, TWO, "2") == [
        (1, "PLANNED", 20),
        (1, "TOO_FEW", None),
        (1, "REASON", "0 of 4 nodes"),
    ]


def test_a_policy_without_reservations_records_obstacles() -> None:
    class Waits(Explains):
        planned, reasons = Policy.planned, Policy.reasons

        def plan(self, view, changes):
            return super().plan(view, changes) if view.now_us != to_us(1) else ()

    workload = machine(4, (2, 10), (2, 10, 1), (1, 1, 3))
    assert rows_of(Guarded(Waits(), "Waits", []), workload, "2") == [(1, "NOT_STARTED", None)]


@pytest.mark.parametrize(
    ("name", "answer", "text"),
    [
        ("planned", {"w0!1": 5}, "expected PlannedStarts.of"),
        ("reasons", {"w0!1": 5}, "expected a dict of texts by id"),
        ("reasons", {"w0!9": "it waits"}, "expected a dict of texts by id"),
        ("reasons", "because", "expected a dict of texts by id"),
    ],
)
def test_wrong_reports_of_a_custom_policy_are_errors(name, answer, text) -> None:
    class Wrong(Explains):
        pass

    setattr(Wrong, name, lambda self, view: answer)
    with pytest.raises(PolicyError, match=f"at 0 s: returned .*{text}"):
        record_of(Guarded(Wrong(), "Wrong", []), TWO)


def test_arrays_of_a_custom_policy_must_describe_the_queue() -> None:
    class Foreign(Explains):
        def planned(self, view):
            starts = PlannedStarts.of(view, {})
            starts.serials = starts.serials + 10**6
            return starts

    with pytest.raises(PolicyError, match=r"expected PlannedStarts\.of"):
        record_of(Guarded(Foreign(), "Foreign", []), TWO)


def test_the_planned_starts_of_a_view_are_sorted_as_its_queue() -> None:
    class Looks(Explains):
        looked: PlannedStarts | None = None

        def planned(self, view):
            starts = PlannedStarts.of(view, {"w0!3": 7})
            if len(view.queue) == 2:
                Looks.looked = starts
            return starts

    record_of(Looks(), machine(4, (4, 10, 0), (3, 10, 1, 60), (1, 10, 2)))
    assert Looks.looked is not None
    assert Looks.looked.sizes.tolist() == [3, 1]
    assert Looks.looked.starts_us.tolist() == [NO_START, 7]
    assert Looks.looked.durations_us[0] == to_us(60)


def test_free_nodes_without_a_box_are_no_place() -> None:
    """Two of four nodes of a ring are free, but not next to each other."""
    workload = machine(4, (1, 9), (1, 30), (1, 9), (1, 30), (2, 5, 1))
    rows = rows_of("torus-first", workload, "5")
    assert rows[0] == (1, "PLANNED", pytest.approx(30, abs=0.1))
    assert [(at, kind) for at, kind, _ in rows[1:]][:2] == [(1, "TOO_FEW"), (9, "NO_PLACE")]


def test_shelves_state_why_jobs_wait() -> None:
    rows = rows_of("r-shelf-b", machine(4, (2, 10), (2, 10, 1)), "2")
    assert (1, "REASON", "it waits for the next shelf") in rows


POLICIES = (
    "baseline",
    "easy",
    "sfsj",
    "batsched-fcfs",
    "greedy",
    "baseline:placement=named",
    "torus-first",
    "cluster",
    "r-shelf-b",
    "pra",
    "compaction",
    "h211",
)


@settings(max_examples=few(40))
@given(workloads(), st.sampled_from(POLICIES), st.integers(0, 9), st.integers(1, 40))
def test_recording_changes_no_decision_and_tells_of_each_job(
    tmp_path_factory, workload, policy, node, at_s
) -> None:
    """With a record all other files are equal, and each job has a story from submission to end."""
    folder, events = tmp_path_factory.mktemp("record"), fails(node, at_s, at_s + 30)
    for name in ("plain", "explained"):
        explain = name == "explained"
        made = on_ring(policy, workload.n_nodes)
        result = simulate(workload, made, machine_events=events, explain=explain)
        write_run(folder / name, result, {})
    plain = {path.name: path.read_bytes() for path in (folder / "plain").iterdir()}
    explained = {path.name: path.read_bytes() for path in (folder / "explained").iterdir()}
    assert explained.pop("rebat_plans.npz")
    assert plain == explained
    assert result.plans is not None
    again = read_plans(folder / "explained")
    assert (again.rows == result.plans.rows).all() and (again.plans == result.plans.plans).all()
    book = RunBook(folder / "explained")
    for job in book.jobs:
        moments = story(book, job).moments
        assert moments[0].kind == "submitted" and moments[-1].kind == "ended"


def test_without_changes_a_recorder_is_not_needed() -> None:
    assert simulate(TWO, on_ring("easy", 4)).plans is None
    assert not Changes()
