"""Planning as small stories."""

from __future__ import annotations

from hypothesis import given, settings

from rebat.engine.engine import Engine
from rebat.policies.composition import Scheduler
from rebat.policies.planning.list_scheduling import ListScheduling
from rebat.session.session import Session
from tests.scenarios import failures, flows, machine, run, workloads

# On 4 nodes: 1 runs, 2 needs the whole machine, 3 fits beside 1 but outlasts it, 4 fits in time.
QUEUE = machine(4, (2, 10), (4, 10), (2, 20), (1, 5))


def test_greedy_starts_whatever_fits() -> None:
    assert flows(run("greedy", QUEUE)) == {"1": 10, "2": 30, "3": 20, "4": 15}


def test_easy_never_delays_the_head() -> None:
    assert flows(run("easy", QUEUE)) == {"1": 10, "2": 20, "3": 40, "4": 5}


def test_conservative_delays_nobody() -> None:
    assert flows(run("baseline", QUEUE)) == {"1": 10, "2": 20, "3": 40, "4": 5}


class Watched(ListScheduling):
    """Remembers each attempt's reservation, and complains when one moves later for no reason."""

    def __init__(self) -> None:
        super().__init__()
        self.promised: dict[str, int] = {}

    def plan(self, view, changes):
        touched = changes.failed_nodes or changes.rejuvenated_nodes or changes.resubmitted
        starts = list(super().plan(view, changes))
        queue = self._queue
        now = {a.id: int(s) for a, s in zip(queue.attempts, queue.start, strict=False)}
        now |= {start.attempt_id: view.now_us for start in starts}
        if not touched:
            for attempt_id, date in self.promised.items():
                if attempt_id in now:
                    assert now[attempt_id] <= date, attempt_id
        self.promised = now
        return starts


@settings(max_examples=200, deadline=None)
@given(workloads(), failures())
def test_a_conservative_plan_never_delays_a_queued_job_that_no_failure_touched(
    workload, events
) -> None:
    session = Session(Scheduler(Watched()))
    Engine(workload, events=events).run(session.handle)


@settings(max_examples=100, deadline=None)
@given(workloads())
def test_without_failures_stealing_changes_nothing(workload) -> None:
    assert flows(run("baseline", workload)) == flows(run("sfsj", workload))
