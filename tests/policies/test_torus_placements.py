# SPDX-License-Identifier: Apache-2.0
"""Placements on a torus: the fast plan equals the simple plan, and each chooses the right boxes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rebat.contract import Policy, Start
from rebat.core.attempts import Cause
from rebat.core.errors import InputError
from rebat.core.jobs import Workload
from rebat.core.units import to_us
from rebat.kernels.box_free import LINEAR, LOWEST, RANDOM
from rebat.models.failures.laws import make_law
from rebat.models.failures.per_node import WeibullNodes
from rebat.models.failures.renewal import Poisson
from rebat.models.topology import parse_torus
from rebat.policies.composition import Scheduler
from rebat.policies.placement.boxes import (
    BoxChooser,
    LeastHazard,
    Site,
    most_contact,
)
from rebat.policies.placement.choosers import Request
from rebat.policies.placement.hazards import FORESIGHTS, Ageing
from rebat.policies.placement.plans import Placement
from rebat.policies.placement.torus import boxed
from rebat.policies.planning.list_scheduling import MAINTENANCE
from rebat.policies.presets import preset
from rebat.runs.scenario import FailureScenario, Scenario
from rebat.runs.single import simulate
from rebat.runs.staging import staged
from tests.oracles.boxes import all_boxes
from tests.support.amount import few
from tests.support.planning import Watched, by_list
from tests.support.scenarios import Custom, check_run, fails, machine

relaxed = settings(max_examples=few(60), suppress_health_check=[HealthCheck.too_slow])
SITES = [
    ("4x4", "1x1"), ("2x3x4", "auto"), ("4x4x2", "2x2x1"), ("5x3", "auto"), ("8", "2"),
    ("3x2x2x2", "auto"),
]  # fmt: skip


def some_laws(n_nodes: int) -> WeibullNodes:
    rng = np.random.default_rng(3)
    return WeibullNodes(rng.uniform(50, 500, n_nodes), rng.uniform(0.7, 3, n_nodes))


def choosers(site: Site, n_nodes: int, seed: int) -> dict[str, BoxChooser]:
    """Return every placement on a torus."""
    return {
        "slurm-linear": BoxChooser(site, LINEAR),
        "torus-first": BoxChooser(site),
        "packed": BoxChooser(site, LOWEST, most_contact),
        "rps": BoxChooser(site, RANDOM, seed=seed),
        "faps": BoxChooser(site, LOWEST, LeastHazard(some_laws(n_nodes))),
        "packed faps": BoxChooser(site, LOWEST, LeastHazard(Ageing(-1), by_contact=True)),
    }


@st.composite
def loads(draw, n_nodes: int) -> Workload:
    """Draw jobs of all sizes. Some reach their walltime or end early."""
    jobs = draw(
        st.lists(
            st.tuples(
                st.integers(1, n_nodes) | st.integers(1, max(1, n_nodes // 4)),
                st.integers(1, 60), st.integers(0, 120), st.integers(1, 80),
            ),
            min_size=1, max_size=25,
        )
    )  # fmt: skip
    return machine(n_nodes, *jobs)


@relaxed
@given(st.data())
def test_the_fast_plan_starts_what_the_plain_one_starts(data: st.DataObject) -> None:
    """Both plans have the same attempts for any torus, boxes, planning and placement, and with
    failures."""
    torus, unit = data.draw(st.sampled_from(SITES))
    n_nodes, seed = parse_torus(torus).n_nodes, data.draw(st.integers(0, 99))
    site = Site(torus, unit, data.draw(st.sampled_from(["all", "aligned", "16"])))
    rule = data.draw(st.sampled_from([*choosers(site, n_nodes, seed)]))
    workload = data.draw(loads(n_nodes))
    mtbf_s = data.draw(st.sampled_from([None, 20, 100]))
    events = list(Poisson(mtbf_s, 10).events(n_nodes, seed, 300)) if mtbf_s else []
    planning = {
        "depth": data.draw(st.sampled_from([0, 1, 2, "all", "all"])),
        "maintenance": data.draw(st.sampled_from([*MAINTENANCE])),
        "reserve": data.draw(st.sampled_from(["first", "blocked"])),
        "margin": data.draw(st.sampled_from([0.0, 3.0])),
        "predict": data.draw(st.sampled_from(["walltime", "0.5", "0.02"])),
    }

    def ran(is_fast: bool) -> list[tuple[str, int, str, int]]:
        choose = choosers(site, n_nodes, seed)[rule]
        placed = by_list(boxed(choose) if is_fast else Placement(choose), **planning)
        result = simulate(workload, Custom(Scheduler(placed)), machine_events=events)
        check_run(result)
        return [(job.id, job.start_us, str(job.nodes), job.end_us) for job in result.jobs]

    assert ran(True) == ran(False)


class Uptimes:
    """A machine with only the uptimes and ages that placements read."""

    def __init__(self, uptime_s: np.ndarray, ages_s: np.ndarray | None = None) -> None:
        self.n_nodes, self.uptime_us = len(uptime_s), to_us(1) * uptime_s.astype(np.int64)
        self.age_us = self.uptime_us if ages_s is None else to_us(1) * ages_s


@relaxed
@given(st.data())
def test_no_free_box_is_less_likely_to_fail_than_that_of_faps(data: st.DataObject) -> None:
    sizes = data.draw(st.sampled_from([(3, 3), (4, 2), (2, 2, 3), (6,)]))
    n_nodes = int(np.prod(sizes))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    free, uptime_s = rng.random(n_nodes) < data.draw(st.sampled_from([0.6, 1.0])), None
    uptime_s = rng.integers(0, 300, n_nodes)
    laws, wanted = some_laws(n_nodes), data.draw(st.integers(1, n_nodes))
    choose = BoxChooser(Site("x".join(map(str, sizes))), LOWEST, LeastHazard(laws))
    request = Request(wanted, length_us=to_us(50))
    found = choose(free, request, Uptimes(uptime_s))
    hazard = laws.hazard(uptime_s.astype(float), 50.0)
    volume = next(v for v in itertools.count(wanted) if all_boxes(sizes, v))
    boxes = [box for box in all_boxes(sizes, volume) if all(free[node] for node in box)]
    if found is None:
        assert not boxes
        return
    assert frozenset(found) in boxes
    least = min(hazard[sorted(box)].sum() for box in boxes)
    assert hazard[list(found)].sum() <= least * (1 + 1e-9)


def starts(workload: Workload, policy: str) -> dict[str, tuple[float, str]]:
    result = simulate(workload, preset(policy))
    check_run(result)
    return {j.id.partition("!")[2]: (j.start_us / 1e6, str(j.nodes)) for j in result.jobs}


def test_first_takes_the_lowest_corner_and_waits_for_a_box() -> None:
    """On 4x4 nodes, columns are 0-3, 4-7 and so on. Next to a box of 8 and one of 4 nodes, 4 are
    left."""
    workload = machine(16, (8, 10), (4, 20), (2, 30), (2, 30), (6, 5))
    found = starts(workload, "torus-first:torus=4x4")
    assert found["1"] == (0, "0-1 4-5 8-9 12-13")
    assert found["2"] == (0, "2-3 6-7")
    assert found["5"][0] == 10  # 6 nodes need a box of 2x3, which is free only at 10


def test_a_box_that_is_larger_than_its_job_is_held_whole() -> None:
    """A job of 7 nodes holds the entire box of 2x4. The eighth node stays empty."""
    workload = machine(8, (7, 10), (1, 5))
    assert starts(workload, "torus-first:torus=2x4") == {"1": (0, "0-6"), "2": (10, "0")}
    assert starts(workload, "baseline")["2"] == (0, "7")


def test_units_are_handed_out_whole() -> None:
    workload = machine(16, (1, 10), (1, 10), (12, 10))
    found = starts(workload, "torus-first:torus=4x4,unit=2x2")
    assert found["1"] == (0, "0") and found["2"] == (0, "2")
    assert found["3"][0] == 10


def test_slurm_linear_takes_the_first_run_of_free_nodes() -> None:
    workload = machine(8, (2, 10), (2, 30), (2, 10), (2, 30), (4, 5, 12), (3, 5, 32))
    found = starts(workload, "slurm-linear:torus=8")
    assert [found[job][1] for job in "1234"] == ["0-1", "2-3", "4-5", "6-7"]
    assert found["5"] == (12, "0-1 4-5")  # four consecutive nodes are not free: the lowest ones
    assert found["6"] == (32, "0-2")


def test_rps_draws_each_box_as_often() -> None:
    """Jobs run one at a time on 2x2 nodes. Each of the four boxes of two nodes is drawn equally
    often."""
    workload = machine(4, *[(2, 1, at) for at in range(0, 800, 2)])
    drawn = [nodes for _, nodes in starts(workload, "rps:torus=2x2").values()]
    counts = [drawn.count(nodes) for nodes in ("0-1", "2-3", "0 2", "1 3")]
    assert sum(counts) == 400
    assert all(abs(count - 100) < 5 * (400 * 3 / 16) ** 0.5 for count in counts)  # five sigmas
    other = starts(workload, "rps:torus=2x2,seed=1")
    assert [nodes for _, nodes in other.values()] != drawn


def chosen(choose: BoxChooser, busy: set[int], n_nodes: int, wanted: int = 1, uptimes=None):
    """Return the nodes that a placement chooses on a ring for a job that starts now."""
    free = np.array([node not in busy for node in range(n_nodes)])
    told = Uptimes(np.zeros(n_nodes) if uptimes is None else np.array(uptimes))
    return str(choose(free, Request(wanted, to_us(50)), told))


def test_surface_packs_against_what_is_busy() -> None:
    """On a ring of 8 nodes where 3 and 5 are in use, node 4 has two busy neighbours."""
    assert chosen(BoxChooser(Site("8")), {3, 5}, 8) == "0"
    assert chosen(BoxChooser(Site("8"), LOWEST, most_contact), {3, 5}, 8) == "4"
    workload = machine(8, (3, 10), (1, 50), (1, 10), (1, 50), (1, 5, 20))
    assert starts(workload, "torus-first:torus=8")["5"] == (20, "0")
    assert starts(workload, "torus-first:torus=8,pack=surface")["5"] == (20, "4")


def test_among_equals_faps_takes_the_corner_or_the_most_contact() -> None:
    for by_contact, node in ((False, "0"), (True, "4")):
        pick = LeastHazard(Ageing(1), by_contact)
        assert chosen(BoxChooser(Site("8"), LOWEST, pick), {3, 5}, 8) == node


def test_without_a_law_the_youngest_or_the_oldest_are_taken() -> None:
    uptimes = [5, 5, 9, 9, 5, 1, 1, 5]
    for foresight, nodes in (("youngest", "5-6"), ("oldest", "2-3")):
        pick = LeastHazard(FORESIGHTS[foresight])
        assert chosen(BoxChooser(Site("8"), LOWEST, pick), set(), 8, 2, uptimes) == nodes


def test_a_law_that_counts_from_the_failure_is_asked_so() -> None:
    """Node 0 failed before node 1, but was repaired after it.

    By its failure node 0 is older, and by its repair younger.
    """
    told = Uptimes(np.array([10, 20]), ages_s=np.array([90, 30]))
    laws = WeibullNodes(np.full(2, 100.0), np.full(2, 8.0))
    free, request = np.ones(2, dtype=np.bool_), Request(1, to_us(20))
    for from_failure, node in ((False, "0"), (True, "1")):
        choose = BoxChooser(Site("2"), LOWEST, LeastHazard(laws, from_failure=from_failure))
        assert str(choose(free, request, told)) == node


def test_faps_is_told_how_long_ago_nodes_failed() -> None:
    """Node 0 fails at 10 s and is down for 50 s. At 70 s its age is 60 s."""
    seen = []

    class Looks(Policy):
        def plan(self, view, changes):
            seen.append(
                (view.now_us, view.machine.age_us.tolist(), view.machine.uptime_us.tolist())
            )
            return [Start(attempt) for attempt in view.queue]

    simulate(machine(2, (1, 5, 70)), Custom(Looks()), machine_events=fails(0, 10, 60))
    assert (to_us(70), [to_us(60), to_us(70)], [to_us(10), to_us(70)]) in seen


def test_hazards_of_another_machine_are_an_error() -> None:
    choose = BoxChooser(Site("4"), LOWEST, LeastHazard(some_laws(1)))
    with pytest.raises(InputError, match="has laws for 1 node"):
        simulate(machine(4, (1, 1)), Custom(Scheduler(by_list(boxed(choose)))))


def test_rps_draws_other_boxes_for_each_seed_of_the_failures() -> None:
    law, workload = make_law("poisson", {"mtbf": "1000h"}), machine(16, *[(4, 1)] * 8)
    drawn = []
    for seed in (0, 0, 1):
        stage = staged(workload, Scenario(failures=FailureScenario(law, seed, 1.0)))
        drawn.append([str(job.nodes) for job in stage.run(preset("rps:torus=4x4")).jobs])
    assert drawn[0] == drawn[1] != drawn[2]


def test_faps_packs_where_nothing_fails() -> None:
    result = staged(machine(16, (4, 1)), Scenario()).run(preset("faps:torus=4x4"))
    assert [str(job.nodes) for job in result.jobs] == ["0-1 4-5"]


@relaxed
@given(loads(16), st.sampled_from(["slurm-linear", "torus-first", "packed", "rps", "faps"]))
def test_a_conservative_plan_keeps_its_promises_when_nothing_fails(workload, rule) -> None:
    choose = choosers(Site("4x4"), 16, 0)[rule]
    planning = Watched(placement=boxed(choose))
    result = simulate(workload, Custom(Scheduler(planning)))
    assert all(job.start_us <= planning.promised[job.id] for job in result.jobs)


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ("torus-first", "no torus is known for 8 nodes"),
        ("torus-first:torus=4x4", "4x4 has 16 nodes"),
        ("faps:torus=8", "'law' needs the failure law of the run, which is unknown"),
    ],
)
def test_what_does_not_fit_the_machine(policy: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        starts(machine(8, (1, 1)), policy)


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ("torus-first:torus=4x0", "invalid torus"),
        ("torus-first:torus=4x4,unit=3x1", "do not divide"),
        ("torus-first:boxes=some", "boxes"),
        ("rps:pack=corner", "axis pack has no effect with"),
        ("baseline:torus=4x4", "axis torus has no effect with"),
        ("faps:foresight=stars", "foresight"),
        ("faps:foresight=nowhere.csv", "nowhere.csv"),
    ],
)
def test_choices_that_are_none(policy: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        preset(policy).make()


@pytest.mark.parametrize(("victim", "stolen"), [("fewest-nodes", []), ("fits", ["w0!2"])])
def test_a_victim_that_fits_completes_a_box(victim: str, stolen: list[str]) -> None:
    """On a ring of 8 nodes the first job has nodes 0 to 3. The others have nodes 4, 5, 6 and 7.

    Node 0 fails. Only node 4 completes the box 1 to 4. ``fewest-nodes`` selects the job on node 7,
    which was released last, but node 7 completes no box.
    """
    jobs = machine(8, (4, 50), (1, 60, 1), (1, 60, 2), (1, 60, 3), (1, 60, 4))
    policy = preset(f"sfsj:placement=torus-first,torus=8,victim={victim}")
    result = simulate(jobs, policy, machine_events=fails(0, 9, 1000))
    check_run(result)
    attempts = result.ledger.attempts
    assert [a.attempt.id for a in attempts if a.cause == Cause.STOLEN] == stolen
    again = next(a for a in attempts if a.attempt.n_nodes == 4 and a.attempt.number == 1)
    assert (again.start_us == to_us(9)) == bool(stolen)


@pytest.mark.parametrize(("victim", "stolen"), [("fewest-nodes", []), ("fits", ["w0!2"])])
def test_a_victim_that_fits_completes_a_box_with_free_nodes(victim: str, stolen: list[str]) -> None:
    """The first job loses two of its nodes 0 to 2. Node 4 is free. Only node 3 completes the box
    2 to 4."""
    jobs = machine(8, (3, 50), (1, 60, 1), (1, 5, 2), (1, 60, 3), (2, 60, 4))
    policy = preset(f"sfsj:placement=torus-first,torus=8,victim={victim}")
    events = [*fails(0, 9, 1000), *fails(1, 9, 1000)]
    result = simulate(jobs, policy, machine_events=sorted(events, key=lambda e: e.at_us))
    check_run(result)
    attempts = result.ledger.attempts
    assert [a.attempt.id for a in attempts if a.cause == Cause.STOLEN] == stolen


@relaxed
@given(st.data())
def test_where_any_nodes_do_a_victim_that_fits_is_that_with_the_fewest_nodes(
    data: st.DataObject,
) -> None:
    workload = data.draw(loads(8))
    events = list(Poisson(30, 10).events(8, data.draw(st.integers(0, 99)), 300))
    schedules = [
        simulate(workload, preset(f"sfsj:victim={victim}"), machine_events=events).ledger.attempts
        for victim in ("fewest-nodes", "fits")
    ]
    assert schedules[0] == schedules[1]
