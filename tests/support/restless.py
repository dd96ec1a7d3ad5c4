# SPDX-License-Identifier: Apache-2.0
"""Random runs over the design space, with latency, split messages and random proposals.

``python -m tests.support.restless 20000`` makes 20,000 runs. The test suite makes fewer.
"""

from __future__ import annotations

import random
import sys

import msgspec
import numpy as np

from rebat.check.cases import operations, outages
from rebat.check.playing import Noise, check_ends, check_nodes, check_sizes
from rebat.contract import (
    Drain,
    Move,
    News,
    Policy,
    Reject,
    Release,
    Requeue,
    Start,
    Stop,
    Undrain,
    View,
    Wait,
    Wake,
    When,
)
from rebat.core.attempts import Cause
from rebat.core.errors import RebatError
from rebat.core.jobs import Job, Workload
from rebat.core.nodes import NodeSet
from rebat.core.traits import Malleable
from rebat.core.units import FOREVER_US, to_us
from rebat.drive.ask import Session
from rebat.engine.engine import Engine, EngineOptions, Scheduler
from rebat.models.boxes import LISTS
from rebat.models.checkpoint import add_perfect, add_young_daly
from rebat.models.failures.laws import parse_law
from rebat.models.formula import NAMED
from rebat.models.tiers import add_tiers, parse_tiers
from rebat.policies.choosing import changed
from rebat.policies.choosing import point as any_point
from rebat.policies.malleable.managers import MANAGERS
from rebat.policies.malleable.rules import MALLEABILITY, MOLDINGS
from rebat.policies.placement.torus import PICKS
from rebat.policies.planning.list_scheduling import MAINTENANCE
from rebat.policies.point import PLACEMENTS, PLANNINGS, CommonOptions, Point
from rebat.policies.queue_order import QUEUE_ORDERS
from rebat.policies.reactions.restarts import SOLVERS
from rebat.policies.reactions.victims import CRITERIA, TIMINGS, VICTIMS
from rebat.policies.variants import fields
from rebat.results.files.batsim_csv import jobs_csv
from rebat.results.measures.summary import Measures, summarise
from rebat.runs.single import RunResult
from rebat.state.ledger import Ledger
from tests.oracles.node_time import NodeTime
from tests.support.findings import findings_in
from tests.support.flexible import check_work

FORMULAS = ["age+size", "10*fairshare-size", "multifactor:age=1,size=2,max_age=5", "-usage*class"]

CHOICES = {
    "order": [*QUEUE_ORDERS, *NAMED, *FORMULAS],
    "order_period": [0, "5s"],
    "fairshare_rule": ["tree", "classic"],
    "half_life": ["7d", "5s", "0"],
    "reservations": [
        "",
        "",
        "m:0:begin=10:length=9",
        "d:0:begin=5:length=3:every=40:user=a:account=x",
    ],
    "limits": [
        "",
        "",
        "user:jobs=1",
        "account=x:nodes=4+user:jobs=2:nodes=6",
        "account=y:child=x:jobs=2+user=a:account=x:nodes=5",
    ],
    "depth": ["greedy", "easy", "all", 2],
    "reserve": ["blocked", "first"],
    "maintenance": [*MAINTENANCE],
    "placement": [*PLACEMENTS],
    "boxes": [*LISTS],
    "pack": [*PICKS],
    "foresight": ["youngest", "oldest"],
    "margin": [0.0, 5.0],
    "predict": ["walltime", "recent", "actual", "0.5"],
    "partitions": ["", "high:0%-50%+low:50%-100%", "normal:all:2+eternal:all:1"],
    "react": [
        "requeue",
        "stealing",
        "replacement",
        "replacement+stealing",
        "compaction",
        "stealing+compaction",
        "priorities",
        "sleep+compaction",
        "compaction+sleep",
        "sleep",
        "defragment",
        "foresee",
        "foresee+stealing",
        "exclude+stealing",
        "preempt",
        "preempt+stealing",
        "replacement+exclude",
        "requeue",
    ],
    "ahead": [1.0, 5.0],
    "survival": [0.5, 0.9],
    "hits": [1, 2],
    "grace": [0.0, 5.0],
    "within": [5.0, 100.0],
    "most_excluded": [0.1, 0.3],
    "excluded_for": [1.0, 9.0],
    "sleep": [0.0, 2.0],
    "boot": [0.0, 3.0],
    "targets": ["single", "several"],
    "fit": ["best", "first"],
    "period": [1.0, 3.0],
    "migration_cost": ["0", "1", "0.5", "table"],
    "drain": ["migrate", "wait"],
    "malleable": [*MALLEABILITY],
    "moldable": [*MOLDINGS],
    "manager": [*MANAGERS],
    "resize_cost": ["0", "1", "table*50"],
    "steps": ["local+idle+remote+restart+wait", "idle+restart+wait", "local+remote", "remote+wait"],
    "spares": [0, 1, 2],
    "solver": [*SOLVERS],
    "victim": [*VICTIMS],
    "criterion": [*CRITERIA],
    "timing": [*TIMINGS],
    "semantics": ["paper", "authors"],
    "release": ["original", "resubmission"],
    "passes": ["one", "two"],
    "held": ["surviving", "lowest"],
    "silent_errors": ["accept", "retry"],
    "detect": ["0", "0", "3s", "gpu=5/uniform:0:4"],
    "diagnose": ["0", "0", "50%*1+50%*exponential:3"],
    "reschedule": ["0", "0", "1"],
    "init": ["0", "0", "2", "nic=5/1"],
    "wait": ["requeue", "hold"],
    "restarts": ["beginning", "checkpoint"],
}
"""The choices of each axis. One is drawn if the planning or reaction has the axis."""


NOT_ALWAYS = {"order", "order_period", "fairshare_rule", "half_life", "limits", "reservations"}
"""Common options that have no effect with some orders, or cannot be combined with some parts."""

TORI = {2: ["2", "1x2"], 4: ["4", "2x2"], 10: ["10", "5x2"]}
"""Tori by number of nodes."""


def random_point(rng: random.Random, n_nodes: int) -> Point:
    """Draw any point of the design space."""
    new = any_point(planning=rng.choice([*PLANNINGS]), react=rng.choice(["requeue", "stealing"]))
    for option, choices in {**CHOICES, "torus": TORI[n_nodes]}.items():
        flexible = option == "partitions" and new.planning.malleability is not None
        if flexible or (option == "wait" and new.partitions):
            # A random move takes a job into other partitions. There, flexible jobs would grow and
            # shrink without end, and a paused job could need more nodes than its partition has.
            continue
        try:
            new = changed(new, {option: rng.choice(choices)})
        except RebatError:
            # no effect here, or not on a torus
            assert option not in fields(CommonOptions) or option in NOT_ALWAYS
    # A partition may be too small to spare a node.
    spares = new.partitions and new.effective.get("spares")
    return changed(new, {"spares": 0}) if spares else new


SPEEDUPS = [
    {"model": "linear"}, {"model": "amdahl", "serial": 0.2},
    {"model": "downey", "parallelism": 3, "sigma": 0.5},
]  # fmt: skip


TIERS = ["peer=0.2s/1s+remote=1s/2s", "memory=0.5s/0@2+remote=1s/3s@6", "disk=0/1@1+remote=2/2",
         "remote=1s/2s",
         "memory=0.2s/1s@1+peer=0.5s/1s@2+remote=1s/2s@6", "disk=0/1@1+peer=0.5/1@3+remote=1/2",
         "memory=0.2s/0@1+peer=0.3s/1s@2+group=0.5s/2s@4+remote=1s/3s@8"]  # fmt: skip


class Restless(Policy):
    """A wrapper of a policy that also stops, moves, resizes and drains at random.

    If ``careless`` is set, it also makes impossible proposals.
    """

    def __init__(self, inner: Policy, rng: random.Random, careless: bool, spares: int) -> None:
        self._inner, self._rng, self._careless = inner, rng, careless
        self._spares = spares  # no attempt may need these nodes to restart
        self._left, self._drained = 12, NodeSet.of([])
        self.done: set[str] = set()

    def react(self, view: View, news: News):
        for tag in news.woken:  # first, so that a job that waits for these nodes can continue
            if self._drained.size and tag == "undrain":
                still = [node for node in self._drained if view.machine.drained[node]]
                self._drained = NodeSet.of([])
                for node in still:  # one may be drained again for another reason
                    yield Undrain(NodeSet.of([node]))
        yield from self._inner.react(view, news)
        if self._left and self._rng.random() < 0.3:
            self._left -= 1
            yield from self._something(view)
        if self._careless and self._rng.random() < 0.1:
            yield self._nonsense(view)

    def plan(self, view: View, changes):
        proposals = list(self._inner.plan(view, changes))
        return proposals

    def _something(self, view: View):
        """Make one random kind of proposal, if it is possible now."""
        calm = [
            running
            for name, running in view.running.items()
            if name not in view.stopping and name not in view.scheduled
        ]
        self._rng.shuffle(calm)
        asks = [self._stop, self._stop, self._stop, self._vacate, self._wait_on, self._queued,
                self._release, self._drain]  # fmt: skip
        yield from self._rng.choice(asks)(view, calm)

    def _drain(self, view: View, calm):
        rng = self._rng
        calm_nodes = np.flatnonzero(~view.machine.drained).tolist()
        if not self._drained.size and calm_nodes:
            n = min(len(calm_nodes), rng.randint(1, 2))
            self._drained = NodeSet.of(rng.sample(calm_nodes, n))
            yield Wake(view.now_us + to_us(rng.randint(1, 9)), "undrain")
            yield Drain(self._drained)

    def _queued(self, view: View, calm):
        """Start a queued job and perhaps stop it immediately, or reject it."""
        rng = self._rng
        for attempt in rng.sample([*view.queue.values()], min(1, len(view.queue))):
            if rng.random() < 0.2:
                self.done.add("Reject")
                yield Reject(attempt.id, "for fun")
            elif sizes := self._sizes(view, attempt, view.n_free):
                free, size = np.flatnonzero(view.machine.free).tolist(), rng.choice(sizes)
                self.done.add("Start" if size == attempt.n_nodes else "Start in another size")
                if rng.random() < 0.5:
                    yield Start(attempt.id, NodeSet.of(rng.sample(free, size)))
                else:
                    yield Start(attempt.id, n_nodes=size)
                if rng.random() < 0.3:
                    self.done.add("Start and Stop")
                    jobs = {running.attempt.job_id: running for running in view.running.values()}
                    yield from self._stop(view, [jobs[attempt.job_id]])

    def _sizes(self, view: View, attempt, most: int) -> list[int]:
        """Return the sizes that an attempt can have. Composed profiles cannot be scaled."""
        job, asked = view.job(attempt.job_id), attempt.n_nodes
        scalable = job.fields["profile"][0] != "c"
        return [
            n
            for n in range(1, min(most, view.n_nodes - self._spares) + 1)
            if n == asked or (scalable and job.shape.allows(n, job.n_nodes))
        ]

    def _release(self, view: View, calm):
        for job_id in self._rng.sample([*view.waiting], min(1, len(view.waiting))):
            self.done.add("Release")
            yield Release(job_id)

    def _stop(self, view: View, calm):
        for running in calm[:1]:
            rng, when = self._rng, self._rng.choice([*When])
            then = rng.choice(
                [Requeue(rng.randint(1, 3)), self._wait(view), self._move(view, running)]
            )
            malleable = isinstance(view.job(running.attempt.job_id).shape, Malleable)
            if when == When.RESIZE and not (malleable and isinstance(then, Move)):
                when = When.NOW
            if when == When.RESIZE:
                self.done.add("Resize")
            if when == When.IMAGE and view.why_not_image(running.attempt.id):
                when = When.NOW
            if when == When.IMAGE:
                self.done.add("Image")
            cause = Cause.MOVED if isinstance(then, Move) else Cause.PREEMPTED
            if isinstance(then, Move) and when not in (When.NOW, When.IMAGE) and rng.random() < 0.5:
                when = When.NOW
            self.done.add(type(then).__name__ + ("" if when == When.NOW else " later"))
            yield Stop(running.attempt.id, cause, when, then)

    def _wait_on(self, view: View, calm):
        """Stop a job at its checkpoint, and stop another job that waits for this stop."""
        if len(calm) < 2:
            return
        (one, other), when = calm[:2], self._rng.choice([When.CHECKPOINT, When.NEXT_CHECKPOINT])
        yield Stop(other.attempt.id, Cause.STOLEN, when, Requeue(2))
        if other.attempt.id in view.scheduled:
            self.done.add("Wait on")
            until_us = self._rng.choice([FOREVER_US, self._wait(view).until_us])
            yield Stop(one.attempt.id, Cause.PREEMPTED, then=Wait(other.attempt.id, until_us))

    def _vacate(self, view: View, calm):
        """Stop or move one job, and move another job to the nodes that the first leaves."""
        if len(calm) < 2:
            return
        (one, other), rng = calm[:2], self._rng
        then = rng.choice([Requeue(2), self._move(view, other)])
        yield Stop(other.attempt.id, Cause.PREEMPTED, then=then)
        taken = set(then.nodes) if isinstance(then, Move) else set()
        move = self._move(view, one, [node for node in other.nodes if node not in taken])
        if isinstance(move, Move):
            self.done.add("Move to vacated")
            when = rng.choice([When.NOW, When.CHECKPOINT, When.NEXT_CHECKPOINT])
            yield Stop(one.attempt.id, Cause.MOVED, when, move)

    def _wait(self, view: View) -> Wait:
        return Wait(until_us=view.now_us + to_us(self._rng.randint(1, 5)))

    def _move(self, view: View, running, vacated=()):
        """Return a move to random nodes among the job's usable nodes, ``vacated`` and free
        nodes."""
        usable = ~(view.machine.down | view.machine.drained)
        for move in (*view.scheduled.values(), *view.stopping.values()):
            if isinstance(move.stop.then, Move):
                move.stop.then.nodes.put(usable, False)  # another job moves there
        nodes = [node for node in (*running.nodes, *vacated) if usable[node]]
        nodes += np.flatnonzero(view.machine.free).tolist()
        sizes = self._sizes(view, running.attempt, len(nodes))
        if not sizes:
            return Requeue()
        return Move(NodeSet.of(self._rng.sample(nodes, self._rng.choice(sizes))))

    def _nonsense(self, view: View):
        names = [*view.queue, *view.running, *view.waiting, "w0!no"]
        name, nodes = self._rng.choice(names), NodeSet.of([self._rng.randrange(view.n_nodes + 3)])
        return self._rng.choice(
            [
                Start(name, nodes), Start(name), Release(name), Undrain(nodes), Reject(name, "no"),
                Wake(view.now_us), Stop(name, Cause.PREEMPTED, then=Wait(on="w0!no")),
                Stop(name, Cause.MOVED, then=Move(nodes)),
            ]
        )  # fmt: skip


def workload(rng: random.Random, n_nodes: int) -> Workload:
    """Draw rigid, moldable and malleable jobs. Some end with an error or consist of two delays."""
    composed, profiles, jobs = rng.random() < 0.3, {}, []
    for number in range(rng.randint(1, 10)):
        length, name = rng.randint(1, 20), f"p{number}"
        profiles[name] = {"type": "delay", "delay": length, "speedup": rng.choice(SPEEDUPS)}
        if composed and rng.random() < 0.5:
            profiles |= {f"c{number}": {"type": "composed", "seq": [name, name]}}
            length, name = 2 * length, f"c{number}"
        elif rng.random() < 0.1:
            profiles[name] |= {"ret": 1, "silent_errors": 1}
        size = rng.randint(1, n_nodes)
        malleable = {"shape": {"kind": "malleable", "min": 1, "max": n_nodes}}
        moldable = {"shape": {"kind": "moldable", "sizes": sorted({1, n_nodes // 2, n_nodes})}}
        jobs.append(
            Job(
                str(number), size, to_us(rng.randint(0, 20)),
                rng.choice([None, to_us(length + rng.randint(0, 9)), to_us(rng.randint(1, 20))]),
                name, rng.choice([malleable, malleable, moldable, {}]) | traits(rng),
            )
        )  # fmt: skip
    made = Workload("restless", n_nodes, tuple(jobs), profiles)
    if composed or rng.random() < 0.5:
        return made
    if rng.random() < 0.5:
        return add_perfect(made)
    if rng.random() < 0.4:
        tiers = parse_tiers(rng.choice(TIERS))
        return add_tiers(
            made,
            tiers,
            n_nodes=n_nodes,
            mtbf_s=8,
            light_share=(0.4, 0.7, 0.9)[: len(tiers.lights)] if tiers.lights[1:] else 0.7,
            software=rng.choice(["", "gpu"]),
            group=rng.choice([1, 2]),
        )
    return add_young_daly(
        made,
        n_nodes=n_nodes,
        mtbf_s=8,
        cost_s=1.0,
        recovery_s=2.0,
        rounding=rng.choice(["ceil", "floor"]),
    )


def traits(rng: random.Random) -> dict:
    """Draw the other fields of a job's JSON."""
    said = {"memory_mb": rng.choice([0, 100, 1000])} if rng.random() < 0.3 else {}
    if rng.random() < 0.2:
        said["priority_class"] = rng.randint(0, 3)
    if rng.random() < 0.6:
        said |= {"user": rng.choice("abc"), "account": rng.choice("xy")}
    for name, value in (("checkpointable", False), ("eternal", True)):
        if rng.random() < 0.15:
            said[name] = value
    return said


def supporting_point(rng: random.Random, n_nodes: int, options: dict[str, str]) -> Point:
    """Draw points until one supports these options."""
    while True:
        try:
            return changed(random_point(rng, n_nodes), options)
        except RebatError:
            continue


def with_fields(load: Workload, fields: dict[str, dict]) -> Workload:
    """Return a workload with more fields of its jobs, by the id of the job."""
    jobs = tuple(
        msgspec.structs.replace(job, extra=job.extra | fields[job.id]) for job in load.jobs
    )
    return msgspec.structs.replace(load, jobs=jobs)


def plain_ledger(
    point: Point, load: Workload, rng: random.Random, seed: int, operations=()
) -> Ledger:
    """Run a point without random proposals, under failures. All jobs must end."""
    law = parse_law("weibull:scale=40,scale_sigma=0,shape=3,shape_sigma=0")
    session = Session(point.policy(law.nodes(load.n_nodes, seed)), point.session)
    options = EngineOptions(split_instants=rng.random() < 0.5, forward_unknown_events=True)
    Engine(
        load, n_nodes=load.n_nodes, events=outages(rng, load.n_nodes), operations=operations,
        options=options,
    ).run(session.handle)  # fmt: skip
    ended = {record.attempt.job_id.partition("!")[2] for record in session.ledger.attempts}
    assert ended == {job.id for job in load.jobs}, seed
    return session.ledger


class Game:
    """A random point of the design space, with its jobs and events, all drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.n_nodes = n_nodes = rng.choice([2, 4, 10])
        point = random_point(rng, n_nodes)
        self.jobs, careless = workload(rng, n_nodes), rng.random() < 0.5
        spares = point.values.get("spares", 0)
        law = parse_law("weibull:scale=40,scale_sigma=0,shape=3,shape_sigma=0")
        self.policy = Restless(point.policy(law.nodes(n_nodes, seed)), rng, careless, spares)
        settings = point.session
        cores = 1 if n_nodes == 2 else rng.choice([1, 2])
        self.settings = msgspec.structs.replace(settings, strict=not careless, cores_per_node=cores)
        latency_us = rng.choice([0, 0, rng.randint(1, 20)])
        split = rng.random() < 0.3 and not latency_us
        # No scheduler can react within the latency: instants are split only without latency.
        self.options = EngineOptions(
            latency_us=latency_us, split_instants=split, forward_unknown_events=True
        )
        self.events = outages(rng, n_nodes)
        self.session = Session(self.policy, self.settings)
        self.operations = operations(rng, n_nodes // cores, self.jobs)
        self.node_time = NodeTime()

    def run(self, scheduler: Scheduler, options: EngineOptions) -> Engine:
        """Run the game to the end."""
        engine = Engine(
            self.jobs, n_nodes=self.n_nodes, events=self.events, operations=self.operations,
            options=options,
        )  # fmt: skip

        def handle(message):
            reply = scheduler(message)
            self.session.validate()
            self.node_time.look(self.session)
            return reply

        engine.run(handle)
        return engine


def play(seed: int) -> set[str]:
    """Make one random run; return what the restless policy did in it."""
    game = Game(seed)
    engine = game.run(game.session.handle, game.options)
    ledger, jobs, slack_us = game.session.ledger, game.jobs, 3 * game.options.latency_us
    summary, rows = summarise(ledger, game.n_nodes, Measures())
    check_nodes(ledger, slack_us=slack_us)
    check_ends(ledger)
    check_sizes(ledger, slack_us=slack_us)
    if game.settings.resize_cost == "0" and game.settings.silent_errors == "accept":
        check_work(ledger, jobs, slack_us=slack_us)
    assert {row.job_id for row in rows} == {job.id for job in jobs.jobs}
    assert all(row.flow >= 0 for row in rows if row.final_state != "REJECTED")
    assert all(row.flow is None for row in rows if row.final_state == "REJECTED")
    assert summary.jobs == len(jobs.jobs)
    digits = "authors-baseline" if game.settings.dialect.digits == "six" else "baseline"
    result = RunResult(digits, summary, rows, ledger, engine.ended)
    assert findings_in(result, jobs, game.events, slack_us) == []
    if not slack_us:  # with latency, a killed job keeps its failed node for a while
        window = to_us(summary.window_s[0]), to_us(summary.window_s[1])
        game.node_time.check(summary.platform, window)
        game.policy.done |= {"Held"} if summary.platform.held else set()
    return game.policy.done


def play_noisy(seed: int) -> None:
    """Make a random run with and without messages without news. The schedules must be equal.

    The restless policy draws random numbers only at messages with news, so both draw the same.
    """
    schedules = []
    for noisy in (False, True):
        game = Game(seed)
        noise = Noise(game.session.handle, random.Random(seed))
        handle = noise if noisy else game.session.handle
        engine = game.run(handle, EngineOptions(forward_unknown_events=True))
        schedules.append([*jobs_csv(engine.ended)])
    assert schedules[0] == schedules[1]


def main(count: int, first: int = 0) -> None:
    """Make this number of runs; stop at the first that fails."""
    done: set[str] = set()
    for seed in range(first, first + count):
        try:
            done |= play(seed)
            play_noisy(seed)
        except BaseException:
            print(f"run {seed}")
            raise
    print(f"{count} runs without a broken invariant, an abort or a lost job; did: {sorted(done)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
