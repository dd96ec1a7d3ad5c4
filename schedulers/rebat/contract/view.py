# SPDX-License-Identifier: Apache-2.0
"""Read-only view of the simulation for policies."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.contract.proposals import Refusal
from rebat.core.attempts import Attempt, Running, When
from rebat.core.nodes import NodeSet
from rebat.core.options import SessionOptions
from rebat.core.traits import USUAL, Shape, Traits
from rebat.models.checkpoint import Checkpointing
from rebat.models.remaining import Remaining
from rebat.models.speedup import Speedup


class ShownNodes(Protocol):
    """What `Machine` shows: the nodes of a driver (see `rebat.drive.machine`)."""

    options: SessionOptions
    nodes: Any

    @property
    def now_us(self) -> int: ...


class Shown(ShownNodes, Protocol):
    """What a view shows: the state of a driver that asks policies (`rebat.drive.ask`)."""

    statics_over: bool
    jobs: Any
    by_tag: dict[int, str]
    by_rules: Any


class Machine:
    """Nodes of the machine. Arrays are copies of shape (n,)."""

    def __init__(self, state: ShownNodes) -> None:
        self._state, self._nodes = state, state.nodes

    @property
    def n_nodes(self) -> int:
        """Number of nodes, up or down."""
        return self._nodes.n_nodes

    @property
    def free(self) -> npt.NDArray[np.bool_]:
        """A mask of the nodes that are usable and not held."""
        return self._nodes.free

    @property
    def cores_per_node(self) -> int:
        """Cores per node (c), or 1 if Batsim's hosts are nodes.

        Node k has the cores ``c k`` to ``c k+c-1``.
        """
        return self._state.options.cores_per_node

    @property
    def tags(self) -> npt.NDArray[np.int32]:
        """Serial number of the attempt that holds each node, or -1 if the node is not held."""
        return self._nodes.all_tags

    @property
    def down(self) -> npt.NDArray[np.bool_]:
        """A mask of the nodes that have failed and are not yet repaired."""
        return self._nodes.down.copy()

    @property
    def drained(self) -> npt.NDArray[np.bool_]:
        """A mask of the nodes that are drained for any reason."""
        return self._nodes.drained.copy()

    def drained_for(self, why: str, only: bool = False) -> npt.NDArray[np.bool_]:
        """Return a mask of the nodes that are drained for this reason.

        If ``only`` is set, omit nodes that are also drained for another reason.
        """
        if only:
            return self._nodes.drained_only_for(why)
        return self._nodes.drained_for(why).copy()

    @property
    def uptime_us(self) -> npt.NDArray[np.int64]:
        """Uptime of each node in microseconds, or 0 if the node is down."""
        up_us = self._state.now_us - self._nodes.up_since_us
        return np.where(self._nodes.down, 0, up_us)

    @property
    def age_us(self) -> npt.NDArray[np.int64]:
        """Time since the last failure of each node, in microseconds, including the downtime.

        If a node has not failed since the simulation began, this is its ``uptime_us``.
        """
        return self._state.now_us - self._nodes.failed_us


class Submission(msgspec.Struct, frozen=True, gc=False):
    """A job as the user submitted it."""

    id: str
    n_nodes: int
    walltime_us: int
    submit_us: int
    shape: Shape
    speedup: Speedup
    """Speedup in the profile of the job."""
    fields: Mapping[str, Any]
    """The complete JSON of the job."""
    traits: Traits = USUAL
    """Properties of the job other than size and times."""


class WaitingJob(Protocol):
    """A stopped job for which nodes are held."""

    @property
    def on(self) -> str:
        """Id of the attempt whose stop ends the wait. Empty if there is none."""

    @property
    def held(self) -> Running | None:
        """The nodes held for the job, as a running attempt, or None if no node is left."""

    @property
    def n_held(self) -> int:
        """Number of held nodes that are up."""

    @property
    def n_lost(self) -> int:
        """Number of nodes of the job that must be replaced.

        These are the nodes that were unusable when the job was stopped, and the held nodes that
        failed later.
        """


V_co = TypeVar("V_co", covariant=True)


class ById(Mapping[str, V_co]):
    """Read-only mapping by the id of an attempt. An attempt is a key too, instead of its id.

    Parameters
    ----------
    rows : mapping
        The values by id.
    """

    __slots__ = ("_rows",)

    def __init__(self, rows: Mapping[str, V_co]) -> None:
        self._rows = rows

    def __getitem__(self, key: str | Attempt | Running) -> V_co:
        return self._rows[key if isinstance(key, str) else key.id]

    def __contains__(self, key: object) -> bool:
        return getattr(key, "id", key) in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def keys(self) -> KeysView[str]:
        return self._rows.keys()

    def values(self) -> ValuesView[V_co]:
        return self._rows.values()

    def items(self) -> ItemsView[str, V_co]:
        return self._rows.items()

    def __repr__(self) -> str:
        return repr(self._rows)


class View:
    """Current state of the simulation. Times are in microseconds."""

    def __init__(self, state: Shown, registry: Any) -> None:
        self._state, self._jobs, self._registry = state, state.jobs, registry
        self._machine = Machine(state)
        self._blocked = ById(state.jobs.blocked)
        self._queue = ById(state.jobs.queue)
        self._running = ById(state.jobs.running)

    @property
    def now_us(self) -> int:
        """The current time."""
        return self._state.now_us

    @property
    def n_nodes(self) -> int:
        """Number of nodes of the machine, up or down."""
        return self._state.nodes.n_nodes

    @property
    def n_machine(self) -> int:
        """Number of nodes of the entire machine, if the view shows a part of it."""
        return self._state.nodes.n_nodes

    @property
    def n_up(self) -> int:
        """Number of nodes that are up."""
        return self._state.nodes.n_nodes - self._state.nodes.n_down

    @property
    def n_free(self) -> int:
        """Number of nodes that are usable and not held."""
        return self._state.nodes.n_free

    @property
    def blocked(self) -> ById[Attempt]:
        """Submitted jobs by id that wait for other jobs, or for a place in their array.

        They are not in the queue yet, and cannot start.
        """
        return self._blocked

    @property
    def queue(self) -> ById[Attempt]:
        """Queued attempts by id, in order of entry."""
        return self._queue

    @property
    def running(self) -> ById[Running]:
        """Running attempts by id, in order of start. They include attempts being stopped."""
        return self._running

    @property
    def stopping(self) -> ById[object]:
        """Running attempts whose kill is not yet acknowledged, by id."""
        return ById(self._jobs.stopping)

    @property
    def scheduled(self) -> ById[object]:
        """Running attempts that will be stopped at a checkpoint, by id."""
        return ById(self._jobs.scheduled)

    @property
    def waiting(self) -> Mapping[str, WaitingJob]:
        """Stopped jobs for which nodes are held, by the job's id."""
        return MappingProxyType(self._jobs.waiting)

    @property
    def all_submitted(self) -> bool:
        """Whether every job of the workload has been submitted."""
        return self._state.statics_over

    @property
    def machine(self) -> Machine:
        """The nodes of the machine."""
        return self._machine

    def job(self, job_id: str) -> Submission:
        """Return the submission of a job that has not ended, or that ended in this message.

        Raise KeyError for other jobs.
        """
        return self._registry.submissions[job_id]

    def checkpointing(self, attempt_id: str) -> Checkpointing | None:
        """Return the checkpointing of an attempt, or None if it writes no checkpoints."""
        return self._registry.work[attempt_id].checkpointing

    def after_stop(self, attempt_id: str, when: When = When.NOW) -> Remaining:
        """Return what would remain of a running attempt after a stop, and the delay of the stop."""
        ran_us = self._state.now_us - self._jobs.running[attempt_id].start_us
        return self._registry.after_stop(attempt_id, ran_us, when)

    def walltime_after_us(
        self, attempt_id: str, remaining: Remaining, n_nodes: int | None = None
    ) -> int:
        """Return the walltime (us) of the remaining work on ``n_nodes`` (default: unchanged)."""
        return self._registry.walltime_after_us(attempt_id, remaining, n_nodes)

    def walltime_on_us(self, attempt_id: str, n_nodes: int) -> int:
        """Return the walltime (us) of a queued attempt that starts on ``n_nodes`` nodes.

        For a running moldable job, this is its walltime if it restarts on ``n_nodes`` nodes.
        """
        return self._registry.walltime_on_us(attempt_id, n_nodes)

    def recent_runs_us(self, attempt: Attempt) -> list[int]:
        """Return the run times (us) of the last two jobs that ended before an attempt was queued.

        These are jobs of the same user that completed, failed by themselves, or reached their
        walltime. If several attempts of a job ran, only the last one counts. Return fewer than two
        if there are fewer, and none if the job has no user.
        """
        return self._registry.recent_runs_us(attempt)

    def true_run_us(self, attempt_id: str) -> int:
        """Return the run time (us) of an attempt without failures, which no batch system knows.

        Raise InputError if the profile is not a delay or a sequence of delays.
        """
        return self._registry.true_run_us(attempt_id)

    def image_us(self, attempt_id: str) -> int:
        """Return the cost (us) of a checkpoint by the batch system and the restart from it.

        See ``When.IMAGE``.
        """
        return self._registry.image_us(attempt_id)

    def why_not_image(self, attempt_id: str) -> Refusal | None:
        """Return why the batch system cannot checkpoint a running attempt, or None if it can."""
        return self._registry.why_not_image(self._jobs.running[attempt_id])

    def of_tag(self, tag: int) -> Running | None:
        """Return the running attempt with this tag (see ``machine.tags``), or None for a hold."""
        return self._jobs.running.get(self._state.by_tag.get(tag, ""))

    def obstacle(self, nodes: NodeSet) -> int:
        """Return the first of these nodes that is unusable or held, or -1 if there is none."""
        return self._state.nodes.obstacle(nodes)

    @property
    def _by_rules(self) -> Any:
        """The plan by the rules (see `rebat.drive.by_rules`)."""
        return self._state.by_rules

    def part(
        self,
        nodes: NodeSet,
        has: Callable[[str], bool],
        adapted: Callable[[Attempt], Attempt],
    ) -> PartView:
        """Return a view of some nodes and of some jobs, as if they were a machine."""
        return PartView(self._state, self._registry, nodes, has, adapted)


class PartMachine(Machine):
    """Some nodes of a machine, numbered from 0 in their order."""

    def __init__(self, state: Shown, part: NodeSet) -> None:
        super().__init__(state)
        self._part = part

    @property
    def n_nodes(self) -> int:
        return self._part.size

    @property
    def free(self) -> npt.NDArray[np.bool_]:
        return self._part.of_each(super().free)

    @property
    def tags(self) -> npt.NDArray[np.int32]:
        return self._part.of_each(super().tags)

    @property
    def down(self) -> npt.NDArray[np.bool_]:
        return self._part.of_each(super().down)

    @property
    def drained(self) -> npt.NDArray[np.bool_]:
        return self._part.of_each(super().drained)

    def drained_for(self, why: str, only: bool = False) -> npt.NDArray[np.bool_]:
        return self._part.of_each(super().drained_for(why, only))

    @property
    def uptime_us(self) -> npt.NDArray[np.int64]:
        return self._part.of_each(super().uptime_us)

    @property
    def age_us(self) -> npt.NDArray[np.int64]:
        return self._part.of_each(super().age_us)


class HeldForJob(msgspec.Struct, frozen=True):
    """A `WaitingJob` in the node numbers of a part."""

    on: str
    held: Running | None
    n_held: int
    n_lost: int


class PartView(View):
    """A view of some nodes, numbered from 0 in their order, and of some jobs.

    Parameters
    ----------
    nodes : NodeSet
        The nodes of the part.
    has : callable
        Whether the part has a job, by the id of the job.
    adapted : callable
        Function from an attempt to the attempt that the view shows.
    """

    def __init__(
        self,
        state: Shown,
        registry: Any,
        nodes: NodeSet,
        has: Callable[[str], bool],
        adapted: Callable[[Attempt], Attempt],
    ) -> None:
        super().__init__(state, registry)
        self._part, self._ids, self.has, self.adapted = nodes, nodes.ids, has, adapted
        self._machine = PartMachine(state, nodes)
        self._seen: dict[str, tuple[Running, Running]] = {}

    def numbered(self, nodes: NodeSet) -> NodeSet:
        """Return nodes of the machine in the numbers of the part. Other nodes are left out."""
        ids = nodes.ids
        at = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        return NodeSet.of_sorted(at[self._ids[at] == ids])

    def on_machine(self, nodes: NodeSet) -> NodeSet:
        """Return nodes of the part in the numbers of the machine."""
        return NodeSet.of_sorted(self._ids[nodes.ids])

    def seen(self, running: Running) -> Running:
        """Return a running attempt as the part shows it. The same attempt is the same object."""
        attempt_id = running.attempt.id
        pair = self._seen.get(attempt_id)
        if pair is None or pair[0] is not running:
            shown = Running(
                self.adapted(running.attempt), running.start_us, self.numbered(running.nodes)
            )
            pair = self._seen[attempt_id] = running, shown
        return pair[1]

    @property
    def n_nodes(self) -> int:
        return self._part.size

    @property
    def n_up(self) -> int:
        return self._part.size - int(self._machine.down.sum())

    @property
    def n_free(self) -> int:
        return int(self._machine.free.sum())

    @property
    def blocked(self) -> ById[Attempt]:
        return ById(
            {
                name: self.adapted(attempt)
                for name, attempt in super().blocked.items()
                if self.has(attempt.job_id)
            }
        )

    @property
    def queue(self) -> ById[Attempt]:
        return ById(
            {
                name: self.adapted(attempt)
                for name, attempt in super().queue.items()
                if self.has(attempt.job_id)
            }
        )

    @property
    def running(self) -> ById[Running]:
        everywhere = super().running
        shown = {
            name: self.seen(running)
            for name, running in everywhere.items()
            if self.has(running.attempt.job_id)
        }
        self._seen = {name: pair for name, pair in self._seen.items() if name in everywhere}
        return ById(shown)

    @property
    def stopping(self) -> ById[object]:
        return self._of_part(super().stopping)

    @property
    def scheduled(self) -> ById[object]:
        return self._of_part(super().scheduled)

    def _of_part(self, rows: Mapping[str, object]) -> ById[object]:
        running = super().running
        part = {
            name: row
            for name, row in rows.items()
            if name in running and self.has(running[name].attempt.job_id)
        }
        return ById(part)

    @property
    def waiting(self) -> Mapping[str, WaitingJob]:
        return {
            job_id: HeldForJob(job.on, job.held and self.seen(job.held), job.n_held, job.n_lost)
            for job_id, job in super().waiting.items()
            if self.has(job_id)
        }

    def of_tag(self, tag: int) -> Running | None:
        running = super().of_tag(tag)
        return self.seen(running) if running and self.has(running.attempt.job_id) else None

    def obstacle(self, nodes: NodeSet) -> int:
        node = super().obstacle(self.on_machine(nodes))
        return node if node < 0 else int(np.searchsorted(self._ids, node))
