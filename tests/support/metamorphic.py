# SPDX-License-Identifier: Apache-2.0
"""Relations between runs that differ in a way that must not change any decision.

``python -m tests.support.metamorphic 2000`` compares 2,000 pairs of random runs.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from rebat.core.errors import PolicyError
from rebat.core.jobs import Job, Workload
from rebat.core.nodes import NodeSet
from rebat.core.units import US_PER_S
from rebat.models.failures.events import MachineEvent
from rebat.policies.presets import preset
from rebat.runs.scenario import Scenario
from rebat.runs.single import simulate
from rebat.runs.staging import prepared

POLICIES = (
    "baseline", "sfsj", "easy", "easy-sfsj", "greedy", "baseline:placement=named",
    "sfsj:placement=named", "easy:planning=fifo", "easy:depth=3", "baseline:maintenance=rebuild",
    "easy:order=smallest", "easy:order=multifactor:age=9:size=5:max_age=50", "easy:order=wfp3",
    "baseline:order=10*fairshare-size", "easy:predict=0.5", "cluster",
)  # fmt: skip

USERS = ("ann", "bo")
FAR = 4_000_000_000


class Case(NamedTuple):
    """A run. All times are whole seconds, in microseconds."""

    policy: str
    n_nodes: int
    jobs: tuple[Job, ...]
    profiles: dict[str, dict[str, Any]]
    events: tuple[MachineEvent, ...]


Outcome = dict[str, list[tuple[int, int, NodeSet, str]]]
"""The attempts of each job: start, end, nodes and cause."""


def random_case(rng: random.Random) -> Case:
    """Return a run with failures on half of the cases."""
    n_nodes = rng.choice([4, 9, 16])
    jobs, profiles = [], {}
    for at in range(rng.randint(3, 14)):
        length = rng.randint(1, 60)
        wall = length if rng.random() < 0.4 else length + rng.randint(-3, 40)
        profiles[f"d{length}"] = {"type": "delay", "delay": length}
        jobs.append(
            Job(
                f"j{at:02}", rng.randint(1, n_nodes), rng.randint(0, 90) * US_PER_S,
                max(1, wall) * US_PER_S, f"d{length}", {"user": rng.choice(USERS)},
            )
        )  # fmt: skip
    events, at_s = [], 0
    for _ in range(rng.choice([0, 0, 1, 3, 6])):
        at_s += rng.randint(1, 40)
        nodes = NodeSet.of(rng.sample(range(n_nodes), rng.randint(1, 3)))
        back_s = at_s + rng.randint(1, 20)
        events += [
            MachineEvent(at_s * US_PER_S, False, nodes),
            MachineEvent(back_s * US_PER_S, True, nodes),
        ]
        at_s = back_s
    return Case(rng.choice(POLICIES), n_nodes, tuple(jobs), profiles, tuple(events))


def outcome(case: Case, rename: Callable[[str], str] = str, how: str = "auto") -> Outcome | str:
    """Return the attempts of a run by job, or its error. ``rename`` returns the names of jobs."""
    load = Workload("w", case.n_nodes, case.jobs, case.profiles)
    try:
        result = simulate(load, preset(case.policy), machine_events=[*case.events], how=how)
    except PolicyError as error:
        return str(error).partition(":")[0]
    attempts: Outcome = {}
    for record in result.ledger.attempts:
        name = rename(record.attempt.job_id.partition("!")[2])
        row = record.start_us, record.end_us, record.nodes, str(record.cause)
        attempts.setdefault(name, []).append(row)
    return attempts


def with_options(case: Case, *options: str) -> Case:
    """Return a case whose policy has more options."""
    joined = ",".join(options)
    return case._replace(policy=case.policy + ("," if ":" in case.policy else ":") + joined)


def with_jobs(case: Case, change: Callable[[Job], Job]) -> Case:
    """Return a case in which each job is changed."""
    return case._replace(jobs=tuple(map(change, case.jobs)))


def _everywhere(case: Case) -> str:
    return f"0-{case.n_nodes - 1}"


def late_window(case: Case, rng: random.Random) -> Case:
    """A reservation of random nodes begins after the end of the run."""
    nodes = NodeSet.of(rng.sample(range(case.n_nodes), rng.randint(1, case.n_nodes)))
    begin = rng.choice([5000, FAR])
    return with_options(case, f"reservations=late:{nodes}:begin={begin}:length=9")


def late_windows(case: Case, rng: random.Random) -> Case:
    """A repeated and a second reservation begin after the end of the run."""
    return with_options(
        case, f"reservations=a:0:begin={FAR}:length=9:every=9999+b:0-1:begin=9e9:length=1"
    )


def own_window(case: Case, rng: random.Random) -> Case:
    """A reservation is open to all users."""
    users = "".join(f":user={user}" for user in USERS)
    return with_options(case, f"reservations=ours:{_everywhere(case)}:begin=5:length=99{users}")


def past_window(case: Case, rng: random.Random) -> Case:
    """A reservation ends before the first job is submitted."""
    moved = shifted(case, 100)
    return with_options(moved, f"reservations=past:{_everywhere(case)}:begin=2:length=9")


def loose_limit(case: Case, rng: random.Random) -> Case:
    """Limits exceed what all jobs can use."""
    return with_options(case, "limits=user:jobs=99:nodes=999+account:jobs=99")


def one_partition(case: Case, rng: random.Random) -> Case:
    """One partition has all nodes."""
    return with_options(case, f"partitions=p:{rng.choice(['all', _everywhere(case)])}")


def by_weight(case: Case) -> Case:
    """Return the case with an order that uses the weights of partitions."""
    return case._replace(policy="easy:order=multifactor:age=9:partition=1000:max_age=50")


def equal_weights(case: Case, rng: random.Random) -> Case:
    """Jobs are in two partitions, which have all nodes and the same weight."""

    def placed(job: Job) -> Job:
        return msgspec.structs.replace(job, extra={**job.extra, "partition": rng.choice("ab")})

    return with_jobs(with_options(case, "partitions=a:all:weight=5+b:all:weight=5"), placed)


def by_share(case: Case) -> Case:
    """Return the case with an order that uses the shares of users, which are equal."""
    return case._replace(policy="baseline:order=10*fairshare-size,shares=ann=1+bo=1")


def equal_shares(case: Case, rng: random.Random) -> Case:
    """All users have more shares."""
    return case._replace(policy=case.policy.replace("ann=1+bo=1", "ann=7+bo=7"))


def shifted(case: Case, seconds: int) -> Case:
    """Return the case with later times."""
    us = seconds * US_PER_S
    jobs = with_jobs(case, lambda job: msgspec.structs.replace(job, submit_us=job.submit_us + us))
    events = tuple(
        MachineEvent(event.at_us + us, event.available, event.nodes) for event in case.events
    )
    return jobs._replace(events=events)


def scaled(case: Case, factor: int) -> Case:
    """Return the case with all times multiplied."""

    def longer(job: Job) -> Job:
        return msgspec.structs.replace(
            job, submit_us=job.submit_us * factor, walltime_us=job.walltime_us * factor
        )

    profiles = {
        name: {**profile, "delay": profile["delay"] * factor}
        for name, profile in case.profiles.items()
    }
    events = tuple(
        MachineEvent(event.at_us * factor, event.available, event.nodes) for event in case.events
    )
    return with_jobs(case, longer)._replace(profiles=profiles, events=events)


def renamed(case: Case, rng: random.Random) -> Case:
    """Jobs, users and profiles have other names, in the same order as text."""

    def named(job: Job) -> Job:
        extra = {"user": f"x{job.extra['user']}"}
        return msgspec.structs.replace(job, id=f"x{job.id}", profile=f"x{job.profile}", extra=extra)

    profiles = {f"x{name}": profile for name, profile in case.profiles.items()}
    return with_jobs(case, named)._replace(profiles=profiles)


def other_file_order(case: Case, rng: random.Random) -> Case:
    """The file lists the jobs in another order. Jobs of one time keep their order."""
    jobs = [*case.jobs]
    rng.shuffle(jobs)
    place = {job.id: at for at, job in enumerate(case.jobs)}
    of_time: dict[int, list[Job]] = {}
    for job in sorted(jobs, key=lambda job: place[job.id]):
        of_time.setdefault(job.submit_us, []).append(job)
    return case._replace(jobs=tuple(of_time[job.submit_us].pop(0) for job in jobs))


def dead_node(case: Case, rng: random.Random) -> Case:
    """The machine has one more node, which is down from the beginning."""
    down = MachineEvent(0, False, NodeSet.of([case.n_nodes]))
    return case._replace(n_nodes=case.n_nodes + 1, events=(down, *case.events))


def split_failure(case: Case, rng: random.Random) -> Case:
    """Each event of several nodes is one event per node."""
    events = tuple(
        MachineEvent(event.at_us, event.available, NodeSet.of([node]))
        for event in case.events
        for node in event.nodes
    )
    return case._replace(events=events)


def hits_of_one_job(outcome: Outcome) -> bool:
    """Return whether no failures hit two jobs at one time, whose order is that of the events."""
    hits = [end for rows in outcome.values() for _, end, _, cause in rows if "failure" in cause]
    return len(hits) == len(set(hits))


def load_of_1(case: Case, rng: random.Random) -> Case:
    """The load of the workload is multiplied by 1."""
    load = Workload("w", case.n_nodes, case.jobs, case.profiles)
    same = prepared(load, Scenario(load=1.0))
    return case._replace(jobs=tuple(same.jobs))


def exact(case: Case) -> Case:
    """Return the case with walltimes that equal the run times."""

    def known(job: Job) -> Job:
        delay = case.profiles[job.profile]["delay"]
        return msgspec.structs.replace(job, walltime_us=delay * US_PER_S)

    return with_jobs(case, known)


def exact_predictions(case: Case, rng: random.Random) -> Case:
    """Predicted run times equal the walltimes, which equal the run times."""
    return with_options(case, "predict=actual")


class Relation(NamedTuple):
    """A change that keeps the outcome.

    Attributes
    ----------
    change : callable
        Returns the changed case.
    before : callable, optional
        Returns the case with which it is compared.
    times : callable, optional
        Returns the time (us) in the changed case of a time in the other case.
    rename : callable, optional
        Returns the name of a job from its name in the changed case.
    without : str
        Words of policies to which the relation does not apply.
    applies : callable
        Returns whether the relation applies to a run.
    """

    change: Callable[[Case, random.Random], Case]
    before: Callable[[Case], Case] = lambda case: case
    times: Callable[[int], int] = lambda us: us
    rename: Callable[[str], str] = str
    without: str = ""
    applies: Callable[[Outcome], bool] = bool


RELATIONS = {
    "late window": Relation(late_window),
    "late windows": Relation(late_windows),
    "window of all users": Relation(own_window),
    "past window": Relation(past_window, times=lambda us: us + 100 * US_PER_S),
    "loose limit": Relation(loose_limit),
    "one partition": Relation(one_partition),
    "equal weights": Relation(equal_weights, before=by_weight),
    "equal shares": Relation(equal_shares, before=by_share),
    "shift": Relation(lambda case, rng: shifted(case, 77), times=lambda us: us + 77 * US_PER_S),
    "scale": Relation(
        lambda case, rng: scaled(case, 3), times=lambda us: us * 3, without="max_age predict"
    ),
    "renaming": Relation(renamed, rename=lambda name: name.replace("x", "", 1)),
    "order of the file": Relation(other_file_order),
    "dead node": Relation(dead_node, without="multifactor"),
    "split failure": Relation(split_failure, applies=hits_of_one_job),
    "load 1": Relation(load_of_1),
    "exact predictions": Relation(exact_predictions, before=exact, without="predict fifo cluster"),
}


def compare(name: str, seed: int) -> str:
    """Compare a random pair of runs. Return a description of the pair, or an empty text.

    Raises
    ------
    AssertionError
        If the two outcomes differ.
    """
    rng, relation = random.Random(f"{name} {seed}"), RELATIONS[name]
    case = relation.before(random_case(rng))
    if any(word in case.policy for word in relation.without.split()):
        return ""
    changed = relation.change(case, rng)
    expected, found = outcome(case), outcome(changed, relation.rename)
    if not isinstance(expected, str):
        if not relation.applies(expected):
            return ""
        times = relation.times
        expected = {
            job: [(_later(times, start), _later(times, end), *other) for start, end, *other in rows]
            for job, rows in expected.items()
        }
    assert found == expected, f"{name} {seed}: {case}\n{changed}\n{expected}\n{found}"
    return case.policy


def _later(times: Callable[[int], int], us: int) -> int:
    return times(us) if us >= 0 else us


def main(count: int, first: int = 0) -> None:
    """Compare ``count`` pairs of runs, and print the number of pairs for each relation."""
    counts: Counter[str] = Counter()
    different: Counter[str] = Counter()
    for seed in range(first, first + count):
        name = [*RELATIONS][seed % len(RELATIONS)]
        try:
            counts[name] += bool(compare(name, seed))
        except AssertionError as error:
            different[name] += 1
            if different[name] < 2:
                print(error)
    print(dict(counts), "different:", dict(different))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
