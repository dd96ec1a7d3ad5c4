# SPDX-License-Identifier: Apache-2.0
"""Read-only view of the simulation for policies."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.contract.proposals import Refusal
from rebat.core.attempts import Attempt, Running, When
from rebat.core.nodes import NodeSet
from rebat.core.traits import USUAL, Shape, Traits
from rebat.models.checkpoint import Checkpointing
from rebat.models.remaining import Remaining
from rebat.models.speedup import Speedup

if TYPE_CHECKING:
    from rebat.session.registry import Registry
    from rebat.session.state import State


class Machine:
    """Nodes of the machine. Arrays are copies of shape (n,)."""

    def __init__(self, state: State) -> None:
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


class View:
    """Current state of the simulation. Times are in microseconds."""

    def __init__(self, state: State, registry: Registry) -> None:
        self._state, self._jobs, self._registry = state, state.jobs, registry
        self._machine = Machine(state)
        self._queue = MappingProxyType(state.jobs.queue)
        self._running = MappingProxyType(state.jobs.running)
        self._stopping = MappingProxyType(state.jobs.stopping)
        self._scheduled = MappingProxyType(state.jobs.scheduled)
        self._waiting = MappingProxyType(state.jobs.waiting)

    @property
    def now_us(self) -> int:
        """The current time."""
        return self._state.now_us

    @property
    def n_nodes(self) -> int:
        """Number of nodes of the machine, up or down."""
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
    def queue(self) -> Mapping[str, Attempt]:
        """Queued attempts by id, in order of entry."""
        return self._queue

    @property
    def running(self) -> Mapping[str, Running]:
        """Running attempts by id, in order of start. They include attempts being stopped."""
        return self._running

    @property
    def stopping(self) -> Mapping[str, object]:
        """Running attempts whose kill is not yet acknowledged, by id."""
        return self._stopping

    @property
    def scheduled(self) -> Mapping[str, object]:
        """Running attempts that will be stopped at a checkpoint, by id."""
        return self._scheduled

    @property
    def waiting(self) -> Mapping[str, WaitingJob]:
        """Stopped jobs for which nodes are held, by the job's id."""
        return self._waiting

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
