# SPDX-License-Identifier: Apache-2.0
"""What a policy may read: everything that is true now, and nothing that it could change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.contract.proposals import Refusal
from rebat.core.attempts import Attempt, Running, When
from rebat.core.nodes import NodeSet
from rebat.core.shapes import Shape
from rebat.core.traits import USUAL, Traits
from rebat.models.checkpoint import Checkpointing
from rebat.models.remaining import Remaining
from rebat.models.speedup import Speedup


class Machine(Protocol):
    """The nodes, for policies that choose among them; masks are copies, shape (n,)."""

    @property
    def n_nodes(self) -> int:
        """Nodes, up or down."""

    @property
    def free(self) -> npt.NDArray[np.bool_]:
        """Usable, and not held."""

    @property
    def cores_per_node(self) -> int:
        """So many of these nodes, which are cores then, make up a node: k of c is kc to kc+c-1."""

    @property
    def tags(self) -> npt.NDArray[np.int32]:
        """Who holds each node, shape (n,): the serial of an attempt that runs; -1: nobody."""

    @property
    def down(self) -> npt.NDArray[np.bool_]:
        """Failed."""

    @property
    def drained(self) -> npt.NDArray[np.bool_]:
        """Taken out of service by a Drain."""

    def drained_for(self, why: str, only: bool = False) -> npt.NDArray[np.bool_]:
        """Taken out of service by a Drain for this; with ``only`` for nothing else."""

    @property
    def uptime_us(self) -> npt.NDArray[np.int64]:
        """Since when each node is up, as a duration; 0 for a node that is down."""

    @property
    def age_us(self) -> npt.NDArray[np.int64]:
        """How long ago each node failed last, its repair included; as ``uptime_us`` for a node that
        has not failed since the simulation began."""


class Submission(msgspec.Struct, frozen=True, gc=False):
    """What the user said of a job; ``fields`` is all of its JSON, ``speedup`` its profile's,
    ``traits`` what the JSON says beside size and times."""

    id: str
    n_nodes: int
    walltime_us: int
    submit_us: int
    shape: Shape
    speedup: Speedup
    fields: Mapping[str, Any]
    traits: Traits = USUAL


class WaitingJob(Protocol):
    """A stopped job for which nodes are held."""

    @property
    def on(self) -> str:
        """The attempt whose stop it waits for; empty: none."""

    @property
    def held(self) -> Running | None:
        """The nodes held for it, as of something that runs; None: none is left."""

    @property
    def n_held(self) -> int:
        """How many of them are alive."""

    @property
    def n_lost(self) -> int:
        """How many of its nodes must be replaced: those that could not be used any more when it was
        stopped (failed, or drained), and those that have failed since."""


class View(Protocol):
    """What is true now. Times in microseconds."""

    @property
    def now_us(self) -> int:
        """The date."""

    @property
    def n_nodes(self) -> int:
        """Nodes of the machine, up or down."""

    @property
    def n_up(self) -> int:
        """Nodes that are up."""

    @property
    def n_free(self) -> int:
        """Nodes that are usable and hold no attempt."""

    @property
    def queue(self) -> Mapping[str, Attempt]:
        """Waiting attempts by id, in order of entry."""

    @property
    def running(self) -> Mapping[str, Running]:
        """Running attempts by id, in order of start; also those that are being stopped."""

    @property
    def stopping(self) -> Mapping[str, object]:
        """Running attempts whose kill is under way, by id."""

    @property
    def scheduled(self) -> Mapping[str, object]:
        """Running attempts that will be stopped at a checkpoint, by id."""

    @property
    def waiting(self) -> Mapping[str, WaitingJob]:
        """Stopped jobs for which nodes are held, by the job's id."""

    @property
    def all_submitted(self) -> bool:
        """Whether every job of the workload has been submitted."""

    @property
    def machine(self) -> Machine:
        """The nodes one by one."""

    def job(self, job_id: str) -> Submission:
        """What the user said of a job that is alive, or whose end is news; KeyError: of others."""

    def checkpointing(self, attempt_id: str) -> Checkpointing | None:
        """How an attempt checkpoints; None if it does not."""

    def after_stop(self, attempt_id: str, when: When = When.NOW) -> Remaining:
        """What a running attempt would keep, and how long the stop would wait."""

    def walltime_after_us(
        self, attempt_id: str, remaining: Remaining, n_nodes: int | None = None
    ) -> int:
        """The walltime of what remains of a running attempt, on as many or on so many nodes."""

    def walltime_on_us(self, attempt_id: str, n_nodes: int) -> int:
        """The walltime of a queued attempt that starts on so many nodes; or of a running moldable
        job that starts over on them."""

    def image_us(self, attempt_id: str) -> int:
        """What a checkpoint and restart of an attempt costs (``When.IMAGE``)."""

    def why_not_image(self, attempt_id: str) -> Refusal | None:
        """Why a running attempt cannot be checkpointed now; None if it can."""

    def of_tag(self, tag: int) -> Running | None:
        """What runs and holds nodes by a tag, see ``machine.tags``; None: nodes are held for it."""

    def obstacle(self, nodes: NodeSet) -> int:
        """The first of these nodes that is not usable and free; -1 if all are."""
