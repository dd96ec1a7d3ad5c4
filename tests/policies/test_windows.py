# SPDX-License-Identifier: Apache-2.0
"""Reservations of nodes and announced maintenance."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rebat.core.errors import Deadlock, InputError
from rebat.core.jobs import Job, Workload
from rebat.core.nodes import NodeSet
from rebat.core.traits import traits_of
from rebat.core.units import FOREVER_US, to_us
from rebat.drive.parts import whole_machine
from rebat.drive.site_windows import SiteWindows
from rebat.kernels import cell_plan
from rebat.models.failures.events import GenericEvent, MachineEvent
from rebat.models.operations import ANNOUNCE, read_operations, with_announcements
from rebat.policies.presets import preset
from rebat.policies.windows import read_reservations
from rebat.rules.by_value import arrays_of
from rebat.rules.windows import note
from rebat.runs.single import simulate
from rebat.state import rooms, tables
from rebat.state.rows import zeros
from tests.support.amount import few
from tests.support.restless import plain_ledger, supporting_point, with_fields, workload

ROWS = [
    (0, 1, 50, 50, "ann"),
    (10, 4, 30, 30, "ann"),
    (12, 1, 20, 20, "bo"),
    (13, 1, 200, 10, "bo"),
]
"""Submission, nodes, walltime, run time and user of jobs."""

POLICIES = ("easy", "baseline", "easy:placement=named", "baseline:partitions=all:0-3")


def starts_of(policy: str, operations=(), rows=ROWS, **options: str) -> list[float]:
    """Return the starts of jobs on 4 nodes."""
    jobs = tuple(
        Job(str(n), size, to_us(at), to_us(wall), f"d{run}", {"user": user})
        for n, (at, size, wall, run, user) in enumerate(rows)
    )
    profiles = {f"d{run}": {"type": "delay", "delay": run} for *_, run, _ in rows}
    events = with_announcements([GenericEvent(to_us(at), data) for at, data in operations])
    for name, value in options.items():
        policy += f"{',' if ':' in policy else ':'}{name}={value}"
    result = simulate(Workload("w", 4, jobs, profiles), preset(policy), operations=events)
    return result.rows.column("first_start").tolist()


@pytest.mark.parametrize(
    ("reservations", "starts"),
    [
        # Job 1 would run from 50 to 80 s on all nodes. Job 2 ends before 60 s.
        ("maint:0-3:begin=60:length=100", [0, 160, 12, 190]),
        # Job 0 starts on node 2 or 3, because it would run into the reservation.
        ("maint:0-1:begin=40:length=100", [0, 140, 12, 170]),
        ("two:0-1:begin=40:length=100:user=ann", [0, 50, 12, 80]),
        ("past:0-3:begin=0:length=5", [5, 55, 12, 85]),
        # Job 3 (200 s) fits between no two windows of 100 s, and all nodes have windows.
        ("daily:0-3:begin=60:length=20:every=100", [0, 80, 12, float("nan")]),
        # On the other nodes, it is possible.
        ("daily:0-1:begin=60:length=20:every=100", [0, 80, 12, 110]),
    ],
)
@pytest.mark.parametrize("policy", POLICIES)
def test_known_starts(policy: str, reservations: str, starts: list[float]) -> None:
    assert starts_of(policy, reservations=reservations) == pytest.approx(starts, nan_ok=True)


def nodes_of(policy: str, reservations: str, rows, fields) -> list[tuple[float, str]]:
    """Return the start and the nodes of jobs (submission, nodes, walltime, run time) on 4 nodes."""
    jobs = tuple(
        Job(str(n), size, to_us(at), to_us(wall), f"d{run}", fields[n])
        for n, (at, size, wall, run) in enumerate(rows)
    )
    profiles = {f"d{run}": {"type": "delay", "delay": run} for *_, run in rows}
    chosen = f"{policy}{',' if ':' in policy else ':'}reservations={reservations}"
    result = simulate(Workload("w", 4, jobs, profiles), preset(chosen))
    found = {
        record.attempt.job_id.partition("!")[2]: (record.start_us / 1e6, str(record.nodes))
        for record in result.ledger.attempts
        if record.nodes is not None
    }
    return [found[str(n)] for n in range(len(rows))]


PLACES = (*POLICIES, "easy:planning=fifo", "greedy")
PAIR = [(20, 2, 30, 10), (20, 2, 30, 10)]
ANN, BO = {"user": "ann", "account": "phys"}, {"user": "bo", "account": "chem"}
ASKS = {"user": "zed", "reservation": "r"}


@pytest.mark.parametrize("policy", PLACES)
@pytest.mark.parametrize("owner", ["user=ann", "account=phys", "user=zed:account=phys"])
def test_jobs_of_owners_prefer_the_nodes_of_the_reservation(policy: str, owner: str) -> None:
    # Job 0 of ann is on the reserved nodes, so job 1 of bo has the others.
    for nodes, others in (("0-1", "2-3"), ("2-3", "0-1"), ("1-2", "0 3")):
        text = f"r:{nodes}:begin=10:length=100:{owner}"
        assert nodes_of(policy, text, PAIR, [ANN, BO]) == [(20, nodes), (20, others)]
    # A job of ann that does not fit inside uses other nodes, too.
    text = f"r:0:begin=10:length=100:{owner}"
    assert nodes_of(policy, text, PAIR[:1], [ANN])[0][0] == 20


@pytest.mark.parametrize("policy", PLACES)
@pytest.mark.parametrize("owner", ["", ":user=zed", ":account=phys"])
def test_jobs_that_request_a_reservation_start_in_it(policy: str, owner: str) -> None:
    # At 20 s, the nodes 2-3 are free, but the job waits for its reservation.
    text = f"r:0-1:begin=50:length=100{owner}"
    rows = [(20, 2, 30, 10), (60, 2, 30, 10), (61, 2, 30, 10)]
    assert nodes_of(policy, text, rows, [ASKS, BO, ASKS]) == [(50, "0-1"), (60, "2-3"), (61, "0-1")]
    # After the reservation, or if it is too small, the job is like all others.
    late = f"r:0-1:begin=1:length=5{owner}"
    assert nodes_of(policy, late, rows[:1], [ASKS])[0][0] == 20
    small = f"r:3:begin=50:length=100{owner}"
    assert nodes_of(policy, small, rows[:1], [ASKS])[0][0] == 20
    # Without this reservation, its name has no effect.
    other = "s:0-1:begin=500:length=5"
    assert nodes_of(policy, other, rows[:1], [ASKS])[0][0] == 20


@pytest.mark.parametrize("policy", PLACES)
def test_requests_of_a_reservation_of_all_nodes_wait_for_it(policy: str) -> None:
    assert nodes_of(policy, "r:0-3:begin=50:length=100", PAIR[:1], [ASKS]) == [(50, "0-1")]


@pytest.mark.parametrize("policy", ["greedy", "easy", "baseline", "baseline:placement=named"])
def test_margins_do_not_delay_jobs_before_a_reservation(policy: str) -> None:
    # A walltime of 30 s ends before the reservation at 55 s, and fits in a window of 32 s.
    rows, policy = [(20, 2, 30, 10)], f"{policy}{',' if ':' in policy else ':'}margin=60"
    assert nodes_of(policy, "m:0-3:begin=55:length=32", rows, [BO]) == [(20, "0-1")]
    assert nodes_of(policy, "m:0-3:begin=55:length=32:every=64", rows, [BO]) == [(20, "0-1")]
    assert nodes_of(policy, "r:0-3:begin=55:length=32:every=64", rows, [ASKS]) == [(55, "0-1")]


@pytest.mark.parametrize("policy", ["baseline", "easy:planning=fifo"])
def test_requests_that_never_fit_in_their_partition_are_like_others(policy: str) -> None:
    for nodes in ("2-3", "1-3"):
        text = f"r:{nodes}:begin=50:length=40:every=80"
        chosen = f"{policy}{',' if ':' in policy else ':'}partitions=a:0-1+b:2-3"
        fields = [ASKS | {"partition": "a"}, ASKS | {"partition": "b"}]
        assert nodes_of(chosen, text, PAIR, fields) == [(20, "0-1"), (50, "2-3")]


@pytest.mark.parametrize("policy", ["easy", "baseline:placement=named", "easy:planning=fifo"])
def test_a_job_whose_repeated_reservation_has_no_nodes_does_not_wait_for_ever(policy: str) -> None:
    events = [MachineEvent(to_us(1), available=False, nodes=NodeSet.of([3]))]
    jobs = (Job("0", 2, to_us(2), to_us(10), "d", {"reservation": "r"}),)
    load = Workload("w", 4, jobs, {"d": {"type": "delay", "delay": 5}})
    text = "reservations=r:2-3:begin=5:length=13:every=40"
    chosen = preset(f"{policy}{',' if ':' in policy else ':'}{text}")
    with pytest.raises(Deadlock):
        simulate(load, chosen, machine_events=events)
    back = MachineEvent(to_us(500), available=True, nodes=NodeSet.of([3]))
    result = simulate(load, chosen, machine_events=[*events, back])
    assert result.rows.column("first_start").tolist() == [525.0]


@pytest.mark.parametrize("policy", POLICIES)
def test_requests_of_a_repeated_reservation_wait_for_its_next_window(policy: str) -> None:
    text = "r:2-3:begin=10:length=20:every=100"
    rows = [(40, 2, 15, 10), (40, 2, 15, 10)]
    assert nodes_of(policy, text, rows, [ASKS, BO]) == [(110, "2-3"), (40, "0-1")]


@pytest.mark.parametrize("policy", [*POLICIES, "easy:planning=fifo", "cluster"])
def test_announced_maintenance_lets_no_job_start_that_would_run_into_it(policy: str) -> None:
    drain = {"type": "drain", "nodes": "0-3"}
    undrain = (100, {"type": "undrain", "nodes": "0-3"})
    at_once = starts_of(policy, [(60, drain), undrain])
    assert at_once[1] == 50  # it is checkpointed at 60 s
    announced = starts_of(policy, [(60, {**drain, "announced": 5}), undrain])
    assert announced[1] == 100
    assert starts_of(policy, [(60, {**drain, "announced": 55}), undrain])[1] == 50


def test_a_reservation_is_read_or_refused() -> None:
    (row,) = read_reservations("n%2B:0-3 7:begin=22h:length=8h:every=1d:user=ann:user=b%3Ao")
    assert (row.name, row.nodes, row.users) == ("n+", NodeSet.parse("0-3 7"), {"ann", "b:o"})
    for text in ("a", "a:0", "a:0:begin=1", "a:0:begin=1:length=0", "a:0:begin=1:length=x",
                 "a:0:begin=1:length=9:every=9", "a:x:begin=1:length=2",
                 "a:0:begin=1:begin=2:length=2"):  # fmt: skip
        with pytest.raises(InputError):
            read_reservations(text)
    with pytest.raises(InputError, match="node 4 is not on the machine"):
        starts_of("easy", reservations="a:0-4:begin=1:length=2")
    for policy in ("torus-first", "dbes", "r-shelf-b", "easy:react=replacement,spares=1"):
        joint = "," if ":" in policy else ":"
        with pytest.raises(InputError, match="reservations of nodes are not possible"):
            preset(f"{policy}{joint}reservations=a:0:begin=1:length=2")


def test_an_announcement_is_read_or_refused(tmp_path) -> None:
    file = tmp_path / "operations.jsonl"
    file.write_text(
        '{"timestamp": 60, "type": "drain", "nodes": "0-3", "announced": 5}\n'
        '{"timestamp": 70, "type": "drain", "nodes": "5", "announced": 70}\n'
        '{"timestamp": 90, "type": "undrain", "nodes": "3"}\n'
    )
    rows = read_operations(file)
    assert [(row.at_us, row.data) for row in rows if row.data["type"] == ANNOUNCE] == [
        (to_us(5), {"type": ANNOUNCE, "nodes": "0-3", "begin": 60.0, "end": 90.0}),
        (to_us(70), {"type": ANNOUNCE, "nodes": "5", "begin": 70.0}),
    ]
    for line in (
        '{"timestamp": 60, "type": "drain", "nodes": "0", "announced": 61}',
        '{"timestamp": 60, "type": "undrain", "nodes": "0", "announced": 5}',
        '{"timestamp": 60, "type": "announce", "nodes": "0", "begin": 70, "end": 70}',
        '{"timestamp": 60, "type": "announce", "nodes": "0"}',
    ):
        file.write_text(line)
        with pytest.raises(InputError):
            read_operations(file)


@pytest.mark.sampled
@pytest.mark.parametrize("first", range(4))
def test_nothing_runs_into_announced_maintenance_under_failures(first: int) -> None:
    """In random runs with failures, stealing, checkpoints, partitions and split messages.

    An attempt that started after the announcement has a planned end before the maintenance, or no
    node in it.
    """
    n_checked = 0
    for seed in range(first * few(60), (first + 1) * few(60)):
        rng = random.Random(seed)
        n_nodes = rng.choice([4, 10])
        options = {"reservations": "announced", "drain": rng.choice(["migrate", "wait"])}
        point = supporting_point(rng, n_nodes, options)
        nodes = NodeSet.of(rng.sample(range(n_nodes), rng.randint(1, n_nodes)))
        announced, begin = rng.randint(0, 15), rng.randint(15, 40)
        end = begin + rng.randint(1, 30)
        data = {"type": ANNOUNCE, "nodes": str(nodes), "begin": begin, "end": end}
        operations = [
            GenericEvent(to_us(announced), data),
            GenericEvent(to_us(begin), {"type": "drain", "nodes": str(nodes)}),
            GenericEvent(to_us(end), {"type": "undrain", "nodes": str(nodes)}),
        ]
        for record in plain_ledger(point, workload(rng, n_nodes), rng, seed, operations).attempts:
            if record.nodes is None or not to_us(announced) < record.start_us < to_us(end):
                continue
            planned_us = min(record.start_us + record.attempt.walltime_us, FOREVER_US)
            n_checked += 1
            if record.nodes.meets(nodes):
                assert planned_us <= to_us(begin), (seed, record.attempt.id)
    assert n_checked


@pytest.mark.sampled
@pytest.mark.parametrize("first", range(4))
def test_nothing_of_other_users_runs_in_a_reservation(first: int) -> None:
    """In random runs with failures, stealing, checkpoints, partitions and split messages."""
    n_checked = 0
    for seed in range(first * few(60), (first + 1) * few(60)):
        rng = random.Random(seed)
        n_nodes = rng.choice([4, 10])
        nodes = NodeSet.of(rng.sample(range(n_nodes), rng.randint(1, n_nodes)))
        length = rng.randint(1, 9)
        every = rng.choice(["", f":every={length + rng.randint(1, 60)}"])
        text = f"r:{nodes}:begin={rng.randint(0, 20)}:length={length}{every}:user=a"
        point = supporting_point(rng, n_nodes, {"reservations": text})
        load = workload(rng, n_nodes)
        users = {job.id: rng.choice("ab") for job in load.jobs}
        load = with_fields(load, {job_id: {"user": user} for job_id, user in users.items()})
        ledger = plain_ledger(point, load, rng, seed)
        (row,) = read_reservations(text)
        for record in ledger.attempts:
            job = record.attempt.job_id.partition("!")[2]
            if record.nodes is None or users[job] == "a" or not record.nodes.meets(nodes):
                continue
            planned_us = min(record.start_us + record.attempt.walltime_us, FOREVER_US)
            ended_us = record.start_us - row.begin_us - row.length_us
            number = max(0, ended_us // row.every_us + 1) if row.every_us else 0
            next_us = row.begin_us + number * row.every_us
            n_checked += 1
            is_over = next_us + row.length_us <= record.start_us
            assert is_over or planned_us <= next_us, (seed, record.attempt.id)
    assert n_checked


@pytest.mark.sampled
@pytest.mark.parametrize("first", range(4))
def test_requests_of_a_reservation_start_inside_under_failures(first: int) -> None:
    """In random runs with failures, stealing, checkpoints and split messages.

    A job that requested the reservation starts in its time on its nodes, or after it.
    """
    n_checked = 0
    for seed in range(first * few(240), (first + 1) * few(240)):
        rng = random.Random(seed)
        n_nodes = rng.choice([4, 10])
        nodes = NodeSet.of(rng.sample(range(n_nodes), rng.randint(1, n_nodes)))
        begin = rng.randint(0, 20)
        end = begin + rng.randint(1, 40)
        text = f"r:{nodes}:begin={begin}:length={end - begin}"
        # a partition may have too few nodes inside
        point = supporting_point(rng, n_nodes, {"reservations": text, "partitions": ""})
        load = workload(rng, n_nodes)
        asks = {job.id for job in load.jobs if rng.random() < 0.5}
        names = {job.id: "r" if job.id in asks else "" for job in load.jobs}
        load = with_fields(load, {job_id: {"reservation": name} for job_id, name in names.items()})
        for record in plain_ledger(point, load, rng, seed).attempts:
            job = record.attempt.job_id.partition("!")[2]
            small = record.attempt.n_nodes <= nodes.size
            if (
                record.nodes is None
                or job not in asks
                or not small
                or record.start_us >= to_us(end)
            ):
                continue
            n_checked += 1
            assert to_us(begin) <= record.start_us, (seed, record.attempt.id)
            assert not {*record.nodes} - {*nodes}, (seed, record.attempt.id)
    assert n_checked


@pytest.mark.parametrize(
    ("text", "now", "job", "closed"),
    [
        # Job 0 of bo has a walltime of 30 s.
        ("m:0-1:begin=50:length=9", 20, BO, None),  # it ends when the window begins
        ("m:0-1:begin=50:length=9", 21, BO, "0-1"),
        ("m:0-1:begin=50:length=9", 58, BO, "0-1"),
        ("m:0-1:begin=50:length=9", 59, BO, None),
        ("m:0-1:begin=50:length=9:user=bo", 51, BO, None),
        ("m:0-1:begin=50:length=9:account=chem", 51, BO, None),
        ("m:0-1:begin=50:length=9:user=ann", 51, BO, "0-1"),
        ("m:0:begin=50:length=9+n:2:begin=52:length=9", 40, BO, "0 2"),
        ("m:0:begin=50:length=9+n:2:begin=79:length=9", 49, BO, "0"),
        # A job that requested the reservation r starts only in its time on its nodes.
        ("r:0-1:begin=50:length=9", 49, ASKS, "0-3"),
        ("r:0-1:begin=50:length=30", 50, ASKS, "2-3"),
        ("r:0-1:begin=50:length=30", 51, ASKS, "0-3"),
        ("r:0-1:begin=50:length=9", 50, ASKS, "0-3"),
        ("r:0-1:begin=50:length=9", 59, ASKS, None),
        ("r:0:begin=50:length=9", 50, ASKS, "0"),
        ("r:0-1:begin=10:length=30:every=60", 9, ASKS, "0-3"),
        ("r:0-1:begin=10:length=29:every=60", 9, ASKS, "0-1"),
        ("r:0-1:begin=50:length=30+m:1 3:begin=79:length=9", 50, ASKS, "1-3"),
    ],
)
def test_nodes_on_which_a_job_cannot_start_now(text, now, job, closed) -> None:
    machine, jobs = whole_machine(4), zeros(tables.Job, 1)
    windows = SiteWindows(text, machine)
    jobs["size"], jobs["wall"], jobs["who"] = 2, to_us(30), windows.who_of(traits_of(job))
    parameters = tables.Numbers(n_nodes=4, max_wakes=windows.max_wakes)
    room = rooms.room_for(
        jobs, zeros(tables.Profile, 1), parameters, 0, machine, tables.no_links(),
        tables.no_limits(), tables.no_tree(), arrays_of([], 1), compiled=False,
    )  # fmt: skip
    room.state.attempts[0].wall = to_us(30)
    cells, usable = windows.table(room), np.ones(4, dtype=np.bool_)
    note(room.state, cells, 0)
    cell_plan.find_windows(cells, to_us(now))
    cell_plan.close(cells, 0, 2, to_us(now), usable)
    assert np.flatnonzero(~usable).tolist() == ([*NodeSet.parse(closed)] if closed else [])
