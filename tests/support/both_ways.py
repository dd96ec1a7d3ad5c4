# SPDX-License-Identifier: Apache-2.0
"""Random runs by the rules, and by policies that are asked, must have the same records.

For half of the seeds, the records include the plans.

``python -m tests.support.both_ways 20000`` makes 20,000 runs. With ``tiny`` at the end, all tables
begin with one row. With ``deep``, all queues count as long ones. With ``replacing``, all policies
that can replace failed nodes do so. With ``preempting``, they preempt jobs or exclude nodes. With
``operating``, an administrator drains nodes and moves jobs. With
``tiers``, all jobs have checkpoints in several tiers, and with ``stages``, recoveries have stages.
The test suite makes fewer runs, as plain Python, because compiling the loop takes longer.
"""

from __future__ import annotations

import random
import sys
from typing import Any, get_args, get_type_hints

import msgspec

from rebat.check.cases import outages, workload
from rebat.core.cores import processors_of
from rebat.core.errors import InputError, RebatError
from rebat.core.jobs import Job, Workload
from rebat.core.nodes import NodeSet
from rebat.core.options import MAX_ATTEMPTS, STAGES, Dialect
from rebat.core.units import to_us
from rebat.drive import growing
from rebat.drive.eligible import (
    CRITERIA,
    TIMINGS,
    VICTIM_RULES,
    why_not_policy,
)
from rebat.drive.plan_record import PlanRecord
from rebat.drive.simulate import Events
from rebat.kernels import deep_queue
from rebat.models.checkpoint import add_young_daly, without_checkpoints
from rebat.models.failures.events import GenericEvent, MachineEvent
from rebat.models.formula import NAMED
from rebat.models.tiers import add_tiers, parse_tiers
from rebat.policies.planning.list_scheduling import MAINTENANCE
from rebat.policies.presets import preset
from rebat.policies.reactions.replacement import STEPS
from rebat.policies.reactions.stealing import StealingOptions
from rebat.results.files.batsim_csv import jobs_csv
from rebat.results.files.run_csv import attempts_csv
from rebat.runs.single import RunResult
from rebat.state import codes, rooms
from tests.support.asked import simulate
from tests.support.dependent import check_dependent, dependent
from tests.support.seeds import play_all

PREDICTED = ("walltime", "recent", "recent", "actual", "0.5", "0.02")
USERS: tuple[dict[str, Any], ...] = ({"user": "ann"}, {"user": "ann"}, {"user": "bob"}, {})

FORMULAS = (
    "age*size-walltime", "expansion", "sqrt(age)/size+class", "-size*nodes+age**2",
    "multifactor:age=3:size=50:max_age=20", "partition*submitted-age/0",
)  # fmt: skip

SHARE = {"replacing": 0.2, "tiers": 0.15, "stages": 0.1, "preempting": 0.15, "operating": 0.1}
"""The shares of policies that replace failed nodes, of workloads with checkpoints in several tiers,
of policies with stages of recovery, of policies that preempt jobs or exclude nodes, and of runs
with operations, if the rules of a site are drawn too.
"""

LEDGER = (
    "interrupted", "given_up", "rejections", "node_events", "failures_that_hit", "steals",
    "steals_off", "refusals", "holds", "drain_events", "not_done",
)  # fmt: skip


def line_per_node(events: list[MachineEvent]) -> list[MachineEvent]:
    """Return the events with a line for each node, as an event file of racks can have."""
    return [
        msgspec.structs.replace(event, nodes=NodeSet.of([node]))
        for event in events
        for node in event.nodes
    ]


def with_users(made: Workload, rng: random.Random) -> Workload:
    """Return the workload with few users. Some jobs have none."""
    jobs = tuple(
        msgspec.structs.replace(job, extra={**job.extra, **rng.choice(USERS)}) for job in made.jobs
    )
    return msgspec.structs.replace(made, jobs=jobs)


def with_owners(made: Workload, rng: random.Random) -> Workload:
    """Return the workload with users, accounts and queues for most jobs."""

    def owners() -> dict[str, str]:
        names = (name for name in ("user", "account", "queue") if rng.random() < 0.8)
        return {name: rng.choice("abc") for name in names}

    jobs = (msgspec.structs.replace(job, extra={**job.extra, **owners()}) for job in made.jobs)
    return msgspec.structs.replace(made, jobs=tuple(jobs))


def limits(rng: random.Random, n_nodes: int) -> str:
    """Return limits that jobs with these owners reach."""
    parts = []
    for kind in ("user", "account", "queue", "user=a", "queue=b", "account=x:child=a"):
        if rng.random() < 0.4:
            most = {"jobs": rng.randint(1, 4), "nodes": rng.randint(1, 2 * n_nodes)}
            names = rng.choice([["jobs"], ["nodes"], ["jobs", "nodes"]])
            parts.append(":".join([kind, *(f"{name}={most[name]}" for name in names)]))
    return "+".join(parts) or "user:jobs=1"


def with_requests(made: Workload, rng: random.Random) -> Workload:
    """Return the workload with owners. Some jobs request a reservation."""

    def requested() -> dict[str, str]:
        return {"reservation": rng.choice(["n", "m", "other"])} if rng.random() < 0.25 else {}

    owned = with_owners(made, rng)
    jobs = (msgspec.structs.replace(job, extra={**job.extra, **requested()}) for job in owned.jobs)
    return msgspec.structs.replace(owned, jobs=tuple(jobs))


def reservations(rng: random.Random, n_nodes: int) -> str:
    """Return reservations that bind."""
    parts = []
    for name in rng.sample("nmk", rng.randint(1, 3)):
        first = rng.randrange(n_nodes)
        nodes = f"{first}-{rng.randrange(first, n_nodes)}"
        length = rng.randint(1, 12)
        words = [f"{name}:{nodes}", f"begin={rng.randint(0, 30)}", f"length={length}"]
        if rng.random() < 0.6:
            words.append(f"every={length + rng.randint(1, 30)}")
        words += [f"{kind}={rng.choice('abc')}" for kind in ("user", "account") for _ in "12"
                  if rng.random() < 0.15]  # fmt: skip
        parts.append(":".join(words))
    return "+".join(parts)


def partitions(
    rng: random.Random, n_nodes: int, names: str, times: bool, tiers: bool = True
) -> str:
    """Return partitions that often share nodes.

    They have maximum times if ``times`` is set, and tiers if ``tiers`` is set.
    """
    parts = []
    orders = [name for name in codes.ORDERS if times or name not in ("la", "sa")]
    for name in names:
        first = rng.randrange(n_nodes)
        nodes = rng.choice(["all", f"{first}-{rng.randrange(first, n_nodes)}", "0-0"])
        words = [name, nodes]
        if rng.random() < 0.4 and tiers:
            words.append(str(rng.randint(1, 3)))
        if rng.random() < 0.3:
            words.append(f"order={rng.choice(orders)}")
        if rng.random() < 0.3:
            words.append(f"max_nodes={rng.randint(1, n_nodes)}")
        if times and rng.random() < 0.3:
            words.append(f"max_time={rng.randint(5, 40)}")
        if rng.random() < 0.3:
            words.append(f"weight={rng.randint(1, 5)}")
        parts.append(":".join(words))
    return "+".join(parts)


def by_usage(policy: str, rng: random.Random) -> str:
    """Return a policy whose queue order depends on the usage of users."""
    left_out = ("baseline:order=", "order_period=")
    rest = [option for option in policy.split(",") if not option.startswith(left_out)]
    order = rng.choice(["-usage/10+class", "100*fairshare+age/10", "multifactor:fairshare=9"])
    options = [f"order={order}", f"order_period={rng.choice(['0', '0', '3'])}", "half_life=20"]
    if "fairshare" in order:
        shares = rng.choice(["a=3(a=1+b=2)+b=1", "a=parent(a=1+b=parent)+c=0(c=1)"])
        options += [f"fairshare_rule={rng.choice(['tree', 'classic'])}", f"shares={shares}"]
    return f"baseline:{','.join([*options, *rest])}"


def longer(made: Workload, factor: int) -> Workload:
    """Return the workload with all times multiplied by a factor."""
    jobs = tuple(
        msgspec.structs.replace(
            job,
            submit_us=job.submit_us * factor,
            walltime_us=job.walltime_us and job.walltime_us * factor,
        )
        for job in made.jobs
    )
    profiles = {
        name: {
            key: value * factor if isinstance(value, int | float) and key != "ret" else value
            for key, value in fields.items()
        }
        for name, fields in made.profiles.items()
    }
    return msgspec.structs.replace(made, jobs=jobs, profiles=profiles)


def by_replacement(policy: str, rng: random.Random, n_nodes: int) -> str:
    """Return a policy that replaces failed nodes instead of stealing nodes."""
    name, _, options = policy.partition(":")
    of_stealing = {*get_type_hints(StealingOptions), "react"}
    rest = [each for each in options.split(",") if each.partition("=")[0] not in of_stealing]
    steps = rng.choice(["+".join(STEPS), "idle+wait", "idle", "local+idle", "wait"])
    spares = rng.choice([0, 1, 1, 2, n_nodes // 2, n_nodes + 1 if rng.random() < 0.1 else 1])
    own = [f"steps={steps}", *([f"spares={spares}"] if "idle" in steps else [])]
    return f"{name}:{','.join(['react=replacement', *own, *rest])}"


def by_preemption(policy: str, rng: random.Random) -> str:
    """Return a policy that preempts jobs or excludes nodes, instead of stealing nodes."""
    name, _, options = policy.partition(":")
    left_out = {*get_type_hints(StealingOptions), "react", "limits", "release", "held", "tie",
                "ended", "hit", "chosen", "k3", "hold_margin", "partitions", "half_life",
                "order_period", "shares", "fairshare_rule"}  # fmt: skip
    react = rng.choice(["exclude", "preempt", "exclude+preempt", "exclude+preempt"])
    rest = [each for each in options.split(",") if each.partition("=")[0] not in left_out]
    order = next(each.partition("=")[2] for each in options.split(",") if "order=" in each)
    varies = order in NAMED or any(word in order for word in ("age", "expansion", "usage", "fair"))
    if "preempt" in react and (varies or order == "random"):
        order = rng.choice(["-size", "class-walltime/10", "largest", "submitted/size"])
        rest = [each for each in rest if "order=" not in each] + [f"order={order}"]
    if "exclude" in react:
        rest += [f"hits={rng.choice([1, 1, 2, 3])}", f"within={rng.choice([3, 20, 1000])}"]
        rest += [f"most_excluded={rng.choice([0.3, 0.5, 1])}"]
        rest += [f"excluded_for={rng.choice([0.5, 4, 25])}"]
    if "preempt" in react:
        rest += [f"period={rng.choice([0.001, 0.5, 1, 3, 7, 60])}"]
        rest += [f"grace={rng.choice([0, 0, 1, 4, 30])}"]
    return f"{name}:{','.join([f'react={react}', *rest])}"


LIST_ONLY = "depth", "reserve", "maintenance", "predict", "placement", "planning"
"""Options that shelves do not have."""


def by_shelves(policy: str, rng: random.Random) -> str:
    """Return a policy that starts shelves of jobs."""
    name, _, options = policy.partition(":")
    rest = [each for each in options.split(",") if each.partition("=")[0] not in LIST_ONLY]
    return f"{name}:{','.join([*rest, rng.choice(['planning=shelf', 'planning=shelf-nb'])])}"


TIERS = (
    "memory=0.5/1@1+remote=1/3@4", "peer=1/1@2+remote=1/2@4", "group=0/0@1+remote=2/3@9",
    "memory=0/1@1+peer=1/1@2+remote=1/2@4", "peer=0.5/1@1+group=1/2@3+remote=2/3@9",
    "memory=0/0.5@1+peer=0.5/1@2+group=1/2@6+remote=2/3@12",
    "memory=0.2/0@0.5+group=0.5/2@2+remote=1/4@20",
)  # fmt: skip


NOT_WITH_STAGES = "digits=", "timing="
"""Options with which the rules cover neither tiers of checkpoints nor stages of recovery."""


def with_tiers(made: Workload, rng: random.Random, n_nodes: int, causes: bool = True) -> Workload:
    """Return the workload with checkpoints in several tiers. Some profiles may have none.

    ``causes`` is whether a tier can survive because of the cause of a failure.
    """
    tiers, made = parse_tiers(rng.choice(TIERS)), without_checkpoints(made)
    shares = (0.2, 0.5, 0.8)[: len(tiers.lights)]
    tiered = add_tiers(
        made, tiers, n_nodes=n_nodes, mtbf_s=8, light_share=shares, group=rng.choice([1, 2, 3]),
        software=rng.choice(["", "gpu", "nic", "gpu+nic", "other+gpu"]) if causes else "",
    )  # fmt: skip
    if rng.random() < 0.7:
        return tiered
    mixed = [*zip(made.jobs, tiered.jobs, strict=True)]
    return msgspec.structs.replace(
        tiered,
        jobs=tuple(rng.choice(pair) for pair in mixed),
        profiles=made.profiles | tiered.profiles,
    )


def rack_failures(rng: random.Random, n_nodes: int) -> list[MachineEvent]:
    """Return failures of one or several nodes, with their repairs. Some have a cause."""
    events, longest, scale = [], rng.choice([2, 5, 9]), rng.choice([1, 1, 0.731])
    until = [0] * n_nodes
    for _ in range(rng.randint(2, 30)):
        first = rng.randrange(n_nodes)
        last = min(n_nodes - 1, first + rng.choice([0, 0, 0, 1, 1, 3]))
        nodes, cause = NodeSet.of(range(first, last + 1)), rng.choice([None, "gpu", "nic"])
        at = max(until[first : last + 1]) + rng.randint(1, longest)
        end = at + rng.randint(1, 3)
        events.append(MachineEvent(to_us(at * scale), False, nodes, cause))
        events.append(MachineEvent(to_us(end * scale), True, nodes))
        until[first : last + 1] = [end] * len(nodes)
    return events


def operations(rng: random.Random, made: Workload, n_nodes: int) -> list[GenericEvent]:
    """Return operations of an administrator and of users. Many are refused."""
    last = max(job.submit_us for job in made.jobs) // 1_000_000 + rng.choice([5, 20, 60])
    scale = rng.choice([1, 1, 0.731])
    events = []
    for _ in range(rng.randint(1, 12)):
        at_us = to_us(rng.randint(0, int(last)) * scale)
        kind = rng.choice(["drain", "drain", "undrain", "migrate", "migrate", "other", "announce"])
        data: dict[str, Any] = {"type": kind}
        first = rng.randrange(n_nodes)
        nodes = rng.choice(
            [f"{first}", f"{first}-{rng.randrange(first, n_nodes)}", f"0 {n_nodes - 1}"]
        )
        if kind == "migrate":
            job = rng.choice(made.jobs).id
            data["job"] = rng.choice([job, f"w0!{job}", "nobody"] if rng.random() < 0.3 else [job])
        if kind != "migrate" or rng.random() < 0.6:
            data["nodes"] = nodes
        if rng.random() < 0.3:
            data["user"] = rng.choice(["ann", "bob", "a", "eve"])
        if rng.random() < 0.2:
            data["spanning"] = rng.random() < 0.3
        if kind == "announce":
            data["begin"] = at_us // 1_000_000 + rng.randint(0, 15)
            if rng.random() < 0.9:
                data["end"] = data["begin"] + rng.randint(1, 12)
        events.append(GenericEvent(at_us, data))
        if kind == "drain" and rng.random() < 0.7:
            back_us = at_us + to_us(rng.randint(0, 15))
            events.append(GenericEvent(back_us, {"type": "undrain", "nodes": nodes}))
    if rng.random() < 0.85:  # otherwise, jobs may wait for ever
        data = {"type": "undrain", "nodes": f"0-{n_nodes - 1}"}
        events.append(GenericEvent(to_us(last + 20), data))
    return sorted(events, key=lambda event: event.at_us)


def by_operations(policy: str, rng: random.Random) -> str:
    """Return a policy that carries out operations."""
    left_out = "digits=", "drain=", "operators="
    rest = [each for each in policy.split(",") if not each.startswith(left_out)]
    rest += ["digits=all", f"drain={rng.choice(['migrate', 'migrate', 'migrate', 'wait'])}"]
    rest += [f"migration_cost={rng.choice(['0', '1', '2.5', '0.3', 'bandwidth*400', 'table'])}"]
    rest += ["purge=2"] if rng.random() < 0.7 else []
    rest += [f"operators={rng.choice(['ann', 'ann+a'])}"] if rng.random() < 0.4 else []
    return ",".join(rest)


def with_traits(made: Workload, rng: random.Random) -> Workload:
    """Return the workload in which some jobs cannot be checkpointed, or state their memory."""
    extras: list[dict[str, Any]] = [{"checkpointable": False}, {"memory_mb": 50}, {"user": "eve"}]
    jobs = tuple(
        msgspec.structs.replace(job, extra={**job.extra, **rng.choice(extras)})
        if rng.random() < 0.2
        else job
        for job in made.jobs
    )
    return msgspec.structs.replace(made, jobs=jobs)


class Case:
    """A workload, its failures and a policy that the loop covers, drawn from a seed.

    Jobs depend on each other if ``depends`` is set (default: for a third of the seeds). If
    ``limited`` is set, some policies have limits, reservations, partitions, or an order by usage or
    at random.
    """

    def __init__(
        self,
        seed: int,
        depends: bool | None = None,
        limited: bool = True,
        replaces: bool | None = None,
    ) -> None:
        self._rng = rng = random.Random(seed)
        self.n_nodes = rng.choice([2, 4, 10])
        self._is_busy = rng.random() < 0.6
        self.explain = seed % 2 == 1
        self.workload = self._busy_workload() if self._is_busy else self._workload()
        self.depends = seed % 3 == 0 if depends is None else depends
        if self.depends:
            self.workload = dependent(random.Random(seed), self.workload)
        causes = rng.random() < 0.3
        self.events = [
            event if causes else msgspec.structs.replace(event, cause=None)
            for event in (self._failures() if self._is_busy else outages(rng, self.n_nodes))
        ]
        if rng.random() < 0.3:
            self.events = line_per_node(self.events)
        self.lazily = rng.random() < 0.3
        self.max_attempts = rng.choice([1, 2, MAX_ATTEMPTS, MAX_ATTEMPTS])
        options = self._options()
        self.policy = f"baseline:{','.join(options)}"
        if any(option.startswith("predict=") for option in options):
            self.workload = with_users(self.workload, rng)
            scale = rng.choice([1, 40])  # so that steps of corrections matter
            self.workload = longer(self.workload, scale)
            self.events = [
                msgspec.structs.replace(event, at_us=event.at_us * scale) for event in self.events
            ]
        rules = random.Random(seed + 1)
        if limited and rules.random() < 0.3:
            self.workload = with_owners(self.workload, rules)
            draw = rules.random()
            if draw < 0.2:
                rest = self.policy.partition(",")[2]  # without the first option, the order
                rest = ",".join(o for o in rest.split(",") if "order_period=" not in o)
                self.policy = f"baseline:order=random,seed={seed},{rest}"
            elif draw < 0.6:
                self.policy += f",limits={limits(rules, self.n_nodes)}"
            else:
                self.policy = by_usage(self.policy, rules)
        operating = random.Random(seed + 7)
        self.operations: list[GenericEvent] = []
        self.cores_per_node = 1
        self.tiered = self.staged = False
        if limited and replaces is None and operating.random() < SHARE["operating"]:
            self.operate(operating)
            return
        tiers = random.Random(seed + 4)
        self.tiered = limited and tiers.random() < SHARE["tiers"]
        if self.tiered:
            self.add_tiers(tiers)
        stages = random.Random(seed + 5)
        self.staged = limited and stages.random() < SHARE["stages"]
        if self.staged:
            self.add_stages(stages)
        shelves = random.Random(seed + 3)
        is_shelf = limited and shelves.random() < 0.07
        if is_shelf:
            self.policy = by_shelves(self.policy, shelves)
        replacing = random.Random(seed + 2)
        if replaces is None:
            replaces = limited and not self.staged and replacing.random() < SHARE["replacing"]
        if replaces and "planning=" not in self.policy:
            self.policy = by_replacement(self.policy, replacing, self.n_nodes)
            return  # neither reservations nor partitions
        preempting = random.Random(seed + 6)
        preempts = limited and not is_shelf and preempting.random() < SHARE["preempting"]
        if preempts and "planning=" not in self.policy:
            self.policy = by_preemption(self.policy, preempting)
            if preempting.random() < 0.1:
                self.reserve(preempting)
            return  # no partitions
        if limited and rules.random() < 0.15 and not is_shelf:
            self.reserve(rules)
        if limited and rules.random() < 0.15:
            self.part(rules)

    def operate(self, rng: random.Random) -> None:
        """Add operations. The scheduler may preempt jobs or exclude nodes too."""
        self.workload = with_traits(self.workload, rng)
        if rng.random() < 0.25 and "planning=" not in self.policy:
            self.policy = by_preemption(self.policy, rng)
        elif rng.random() < 0.1:
            self.policy = by_shelves(self.policy, rng)
        self.tiered, self.staged = (rng.random() < SHARE[word] for word in ("tiers", "stages"))
        if self.tiered:
            self.add_tiers(rng)
        if self.staged:
            self.add_stages(rng)
        self.policy = by_operations(self.policy, rng)
        self.cores_per_node = 2 if rng.random() < 0.2 else 1
        n_nodes = self.n_nodes // self.cores_per_node
        if rng.random() < 0.2:
            self.workload = with_requests(self.workload, rng)
            if "planning=shelf" not in self.policy:
                self.policy += f",reservations={reservations(rng, n_nodes)}"
        elif rng.random() < 0.3 and "planning=shelf" not in self.policy:
            self.policy += ",reservations=announced"
        self.operations = operations(rng, self.workload, n_nodes)
        if self.cores_per_node > 1:
            self.events = [
                msgspec.structs.replace(event, nodes=processors_of(event.nodes, 2))
                for event in self.events
                if int(event.nodes.intervals[-1, 1]) < n_nodes
            ]

    def add_tiers(self, rng: random.Random) -> None:
        """Add checkpoints in several tiers to the jobs, and failures that they survive or not."""
        options = self.policy.split(",")  # without those that are not covered
        rest = [each for each in options if not each.startswith(NOT_WITH_STAGES)]
        self.policy = ",".join([*rest, "digits=all"])
        self.workload = with_tiers(self.workload, rng, self.n_nodes)
        if rng.random() < 0.7:
            scale = 40 if max(job.submit_us for job in self.workload.jobs) > to_us(60) else 1
            self.events = [
                msgspec.structs.replace(event, at_us=event.at_us * scale)
                for event in rack_failures(rng, self.n_nodes)
            ]

    def add_stages(self, rng: random.Random) -> None:
        """Let failed jobs hang before they are queued again, or initialise afterwards."""
        options = [each for each in self.policy.split(",") if not each.startswith(NOT_WITH_STAGES)]
        drawn = {
            name: rng.choice(["1", "2", "0.5", "6", "gpu=3/1", "gpu=0/2", "nic=1/gpu=0.25/0"])
            for name in rng.sample(STAGES, rng.randint(1, 4))
        }
        options += [f"{name}={text}" for name, text in drawn.items()]
        self.policy = ",".join([*options, "digits=all"])
        if rng.random() < 0.5:
            self.events = [
                msgspec.structs.replace(event, at_us=event.at_us + rng.choice([0, 0, 1]))
                for event in rack_failures(rng, self.n_nodes)
            ]

    def reserve(self, rng: random.Random) -> None:
        """Add reservations to the policy."""
        self.workload = with_requests(self.workload, rng)
        self.policy += f",reservations={reservations(rng, self.n_nodes)}"

    def part(self, rng: random.Random) -> None:
        """Divide the machine into partitions, of which some share nodes.

        Under fifo, tiers preempt jobs, and no rule steals nodes in partitions.
        """
        is_fifo = "planning=fifo" in self.policy
        if is_fifo and "react=stealing" in self.policy:
            return
        names = "pqr"[: rng.randint(2, 3)]
        parts = partitions(rng, self.n_nodes, names, self._times, tiers=not is_fifo)
        policy = self.policy.replace("placement=named", "placement=any")
        self.policy = f"{policy},partitions={parts}"
        jobs = tuple(
            msgspec.structs.replace(
                job, extra={**job.extra, rng.choice(["partition", "queue", "x"]): rng.choice(names)}
            )
            for job in self.workload.jobs
        )
        self.workload = msgspec.structs.replace(self.workload, jobs=jobs)

    @property
    def _times(self) -> bool:
        return all(job.walltime_us is not None for job in self.workload.jobs)

    def _workload(self) -> Workload:
        """Return a workload of rigid delays, without checkpoints in tiers."""
        rng = self._rng
        while True:
            made = workload(rng, self.n_nodes)
            used = [made.profiles[job.profile] for job in made.jobs]
            if all(p["type"] == "delay" and "light_period" not in p for p in used):
                break
        walltimes, fails = rng.random() < 0.5, rng.random() < 0.3
        jobs = tuple(
            msgspec.structs.replace(
                job,
                id=str(rng.randint(0, 999) * 100 + number),  # text and number sort differently
                extra={"priority_class": rng.randint(0, 2)} if rng.random() < 0.5 else {},
                n_nodes=job.n_nodes + (self.n_nodes if rng.random() < 0.05 else 0),
                walltime_us=job.walltime_us or (to_us(15) if walltimes else None),
            )
            for number, job in enumerate(made.jobs)
        )
        errors = {"ret": 1}, {"ret": 1, "silent_errors": 2}, {"silent_errors": 1}, {"ret": 2}
        profiles = {
            name: {**fields, **errors[number % 4]} if fails and number % 3 == 0 else fields
            for number, (name, fields) in enumerate(made.profiles.items())
            if fields["type"] == "delay"
        }
        return msgspec.structs.replace(made, jobs=jobs, profiles=profiles)

    def _busy_workload(self) -> Workload:
        """Return a workload of which jobs always wait, so that failed jobs find no free node."""
        rng, lengths = self._rng, range(2, 60)
        profiles = {f"d{s}": {"type": "delay", "delay": s / 2} for s in lengths}
        jobs = []
        for number in range(rng.randint(6, 24)):
            size, length = rng.randint(1, self.n_nodes), rng.choice(lengths)
            if rng.random() < 0.6:
                size = rng.randint(1, 2)
            wall = to_us(length / 2 * rng.choice([1, 1, 1.5, 2]) + rng.choice([0, 1]))
            name = str(rng.randint(0, 99) * 100 + number)
            jobs.append(Job(name, size, to_us(rng.randint(0, 12)), wall, f"d{length}"))
        made = Workload("busy", self.n_nodes, tuple(jobs), profiles)
        if rng.random() < 0.1:
            return made
        pattern = {"mtbf_s": rng.choice([3, 8, 20.0]), "cost_s": rng.choice([0.5, 1.0, 2.0])}
        rounding = rng.choice(["floor", "ceil"])
        return add_young_daly(
            made, n_nodes=self.n_nodes, recovery_s=rng.choice([1.0, 2.0]), rounding=rounding,
            **pattern,
        )  # fmt: skip

    def _failures(self) -> list[MachineEvent]:
        """Return failures and repairs of single nodes, of which some occur at equal times."""
        rng, events = self._rng, []
        for node in range(self.n_nodes):
            at = rng.randint(1, 30)
            for _ in range(rng.randint(0, 4)):
                end = at + rng.choice([1, 3, 10, 40]) * (1 if rng.random() < 0.5 else 0.731)
                cause = rng.choice([None, "gpu", "nic"])
                events.append(MachineEvent(to_us(at), False, NodeSet.of([node]), cause))
                events.append(MachineEvent(to_us(end), True, NodeSet.of([node])))
                at = end + rng.choice([0, 1, 4, 12])
        rng.shuffle(events)
        return events

    def _options(self) -> list[str]:
        rng = self._rng
        limited = any(job.walltime_us is None for job in self.workload.jobs)
        orders = [name for name in codes.ORDERS if not (limited and name in ("la", "sa"))]
        options = {"order": rng.choice(orders), "placement": rng.choice(["any", "named"])}
        formula = rng.random() < 0.25
        if formula:
            options["order"] = rng.choice([*NAMED, *FORMULAS])
            if "age" in options["order"]:
                options["order_period"] = rng.choice(["0", "0", "3", "20"])
        if rng.random() < 0.15:
            options["planning"] = "fifo"
        else:
            options |= self._list_options()
        if rng.random() < (0.9 if self._is_busy else 0.6):
            criteria = [name for name in CRITERIA if not (limited and name == "smaller-flow")]
            options |= {
                "react": "stealing",
                "timing": rng.choice([*TIMINGS]),
                "victim": rng.choice([*VICTIM_RULES]),
                "criterion": rng.choice(criteria),
            }
        options |= self._dialect("react" in options)
        return [f"{name}={value}" for name, value in options.items()]

    def _list_options(self) -> dict[str, str]:
        rng, depth = self._rng, self._rng.choice(["greedy", "easy", "2", "all", "all"])
        options = {"depth": depth}
        if depth == "all":
            options["maintenance"] = rng.choice([*MAINTENANCE])
        elif depth != "greedy":
            options["reserve"] = rng.choice(["blocked", "first"])
        if rng.random() < 0.3:
            options["margin"] = rng.choice(["-3", "5"])
        if rng.random() < 0.2:
            options["walltimes"] = "required"
        if rng.random() < 0.1:
            options["silent_errors"] = "retry"
        if rng.random() < 0.5:
            options["predict"] = rng.choice(PREDICTED)
        return options

    def _dialect(self, steals: bool) -> dict[str, str]:
        """Return the text of the paper, its program, or a mixture of both."""
        rng, kind = self._rng, self._rng.choice(["paper", "authors", "mixture", "mixture"])
        options = {"semantics": kind if kind != "mixture" else rng.choice(["paper", "authors"])}
        if kind == "mixture":
            names = ["passes", "digits"]
            if steals:
                names += ["release", "held", "tie", "ended", "hit", "chosen", "k3"]
                options["hold_margin"] = rng.choice(["0", "1", "900"])
            for name in names:
                options[name] = rng.choice(get_args(get_type_hints(Dialect)[name]))
        return options

    def run(self, how: str) -> RunResult | str:
        """Return the result, or the error if the run cannot continue."""
        given = Events(self.events).all if not self.lazily else _Lazily(self.events)
        try:
            return simulate(
                self.workload, preset(self.policy), n_nodes=self.n_nodes, machine_events=given,
                max_attempts=self.max_attempts, how=how, explain=self.explain,
                operations=self.operations, cores_per_node=self.cores_per_node,
            )  # fmt: skip
        except RebatError as error:
            return str(error)


class _Lazily:
    """Events that do not prolong a simulation, like those of a failure law."""

    def __init__(self, events: list[MachineEvent]) -> None:
        self._events = events

    def __iter__(self):
        return iter(Events(self._events).all)


def play(seed: int) -> str:
    """Run a case both ways; return what was compared."""
    case = Case(seed)
    expected, ours = case.run("asked"), case.run("interpreted")
    if isinstance(ours, str):
        assert isinstance(expected, str), ours
        return "stuck"
    assert not isinstance(expected, str), expected
    check_same(ours, expected)
    if case.depends:
        check_dependent(ours.ledger, case.workload)
    if case.operations:
        kinds = {each.why for each in ours.ledger.attempts} & {"drain", "migrate"}
        kinds |= {"refused" for _ in ours.ledger.not_done}
        return " and ".join(sorted(kinds)) or "operations"
    if "exclude" in case.policy or "preempt" in case.policy:
        kinds = {each.cause.value for each in ours.ledger.attempts} & {"preempted"}
        kinds |= {"excluded" for _ in ours.ledger.drain_events}
        return " and ".join(sorted(kinds)) or "neither preempted nor excluded"
    if case.staged:
        hung = any(each.hung_us for each in ours.ledger.attempts)
        held = " held" if ours.ledger.holds else ""
        return f"{'tiers and ' if case.tiered else ''}stages{' that hang' if hung else ''}{held}"
    if case.tiered:
        lost = any(each.lost_us for each in ours.ledger.attempts)
        return "tiers, lost work" if lost else "tiers"
    if case.depends:
        if any("dependency" in why for _, why in ours.ledger.rejections):
            return "dependencies that never hold"
        return "dependencies"
    if "react=replacement" in case.policy:
        return "replacement" if "idle" in {each.why for each in ours.ledger.attempts} else "spares"
    if ours.ledger.holds:
        return "holds"
    return "steals" if ours.ledger.steals else "requeues" if ours.ledger.interrupted else "plain"


def both(workload: Workload, policy: str, **circumstances: Any) -> RunResult:
    """Return the result of a policy that is asked. If rules cover the run, theirs is equal.

    The loop is not compiled for this, because compiling it takes longer than the tests.
    """
    chosen = preset(policy)
    expected = simulate(workload, chosen, **circumstances, how="asked")
    if not why_not_policy(chosen.point):
        try:
            ours = simulate(workload, chosen, **circumstances, how="interpreted")
        except InputError as error:
            assert "does not cover this run" in str(error)
        else:
            check_same(ours, expected)
    return expected


def check_same(ours: RunResult, expected: RunResult) -> None:
    """Check that two results have the same records, in the same order."""
    assert [*ours.ledger.attempts] == [*expected.ledger.attempts]
    assert [*ours.jobs] == [*expected.jobs]
    assert [*jobs_csv(ours.jobs)] == [*jobs_csv(expected.jobs)]
    assert [*attempts_csv(ours.ledger)] == [*attempts_csv(expected.ledger)]
    for name in LEDGER:
        assert getattr(ours.ledger, name) == getattr(expected.ledger, name), name
    assert [*ours.ledger.interrupted] == [*expected.ledger.interrupted]
    assert ours.summary == expected.summary
    assert ours.dead_us == expected.dead_us
    if ours.plans or expected.plans:
        check_same_plans(ours.plans, expected.plans)


def check_same_plans(ours: PlanRecord | None, expected: PlanRecord | None) -> None:
    """Check that two records of plans are equal."""
    assert ours and expected
    for name in ("plans", "rows", "serials"):
        one, other = getattr(ours, name), getattr(expected, name)
        assert one.dtype == other.dtype and one.tolist() == other.tolist(), name
    assert (ours.ids, ours.texts) == (expected.ids, expected.texts)


def with_tiny_tables() -> None:
    """Let all tables begin with one row, or none, and grow only by what is needed."""
    rooms.SPARE, rooms.POINTS, rooms.SLICES = 0, 1, 1
    rooms.SMALL = rooms.SMALL_PLAIN = 1
    growing.GROWTH = 1


def with_deep_queues() -> None:
    """Let the rules plan each queue as a long one, with groups of few positions.

    Policies that are asked, and recorded plans, scan the entire queue.
    """
    deep_queue.SCANNED, deep_queue.NARROW, deep_queue.WIDE = 0, 2, 4


def with_tiered_checkpoints() -> None:
    """Let all workloads have checkpoints in several tiers, if the rules cover this."""
    SHARE["tiers"] = 1.0


def with_stages() -> None:
    """Let the recovery of failed jobs have stages."""
    SHARE["stages"] = 1.0


def with_preemption() -> None:
    """Let all policies preempt jobs or exclude nodes, unless they have no rule for it."""
    SHARE["preempting"], SHARE["replacing"] = 1.0, 0.0


def with_replacement() -> None:
    """Let all policies replace failed nodes, unless they have no rule for it."""
    SHARE["replacing"] = 1.0


def with_operations() -> None:
    """Let an administrator drain nodes and move jobs in all runs."""
    SHARE["operating"] = 1.0


WORDS = {
    "operating": with_operations,
    "tiny": with_tiny_tables,
    "deep": with_deep_queues,
    "replacing": with_replacement,
    "preempting": with_preemption,
    "tiers": with_tiered_checkpoints,
    "stages": with_stages,
}
"""What words at the end of the command line do before the runs."""


if __name__ == "__main__":
    for word, prepare in WORDS.items():
        if word in sys.argv:
            sys.argv.remove(word)
            prepare()
    play_all(lambda seed: [play(seed)], lambda seed: Case(seed).policy, *map(int, sys.argv[1:]))
