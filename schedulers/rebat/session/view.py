# SPDX-License-Identifier: Apache-2.0
"""Read-only view of a session for policies."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from rebat.contract import Refusal, Submission, When
from rebat.core.attempts import Attempt, Running
from rebat.core.nodes import NodeSet
from rebat.models.checkpoint import Checkpointing
from rebat.models.remaining import Remaining
from rebat.session import checks
from rebat.session.board import Board
from rebat.session.claims import Claims
from rebat.session.lifecycle import Lifecycle, Scheduled, Stopping, Waiting
from rebat.session.resubmission import Registry


class MachineView:
    """Nodes of the machine. For the attributes, see `contract.Machine`."""

    def __init__(self, board: Board, claims: Claims) -> None:
        self._board, self._claims = board, claims

    @property
    def n_nodes(self) -> int:
        return self._claims.n_nodes

    @property
    def free(self) -> npt.NDArray[np.bool_]:
        return self._claims.free

    @property
    def cores_per_node(self) -> int:
        return self._board.options.cores_per_node

    @property
    def tags(self) -> npt.NDArray[np.int32]:
        return self._claims.all_tags

    @property
    def down(self) -> npt.NDArray[np.bool_]:
        return self._claims.down.copy()

    @property
    def drained(self) -> npt.NDArray[np.bool_]:
        return self._claims.drained.copy()

    def drained_for(self, why: str, only: bool = False) -> npt.NDArray[np.bool_]:
        return self._claims.drained_only_for(why) if only else self._claims.drained_for(why).copy()

    @property
    def uptime_us(self) -> npt.NDArray[np.int64]:
        up_us = self._board.now_us - self._claims.up_since_us
        return np.where(self._claims.down, 0, up_us)

    @property
    def age_us(self) -> npt.NDArray[np.int64]:
        return self._board.now_us - self._claims.failed_us


class SessionView:
    """View of the session. For the attributes, see `contract.View`."""

    def __init__(self, board: Board, jobs: Lifecycle, claims: Claims, registry: Registry) -> None:
        self._board, self._jobs, self._claims, self._registry = board, jobs, claims, registry
        self.machine = MachineView(board, claims)
        self.queue: Mapping[str, Attempt] = MappingProxyType(jobs.queue)
        self.running: Mapping[str, Running] = MappingProxyType(jobs.running)
        self.stopping: Mapping[str, Stopping] = MappingProxyType(jobs.stopping)
        self.scheduled: Mapping[str, Scheduled] = MappingProxyType(jobs.scheduled)
        self.waiting: Mapping[str, Waiting] = MappingProxyType(jobs.waiting)

    @property
    def now_us(self) -> int:
        return self._board.now_us

    @property
    def n_nodes(self) -> int:
        return self._claims.n_nodes

    @property
    def n_up(self) -> int:
        return self._claims.n_nodes - self._claims.n_down

    @property
    def n_free(self) -> int:
        return self._claims.n_free

    @property
    def all_submitted(self) -> bool:
        return self._board.statics_over

    def job(self, job_id: str) -> Submission:
        return self._registry.submissions[job_id]

    def checkpointing(self, attempt_id: str) -> Checkpointing | None:
        return self._registry.work[attempt_id].checkpointing

    def after_stop(self, attempt_id: str, when: When = When.NOW) -> Remaining:
        ran_us = self._board.now_us - self._jobs.running[attempt_id].start_us
        return self._registry.after_stop(attempt_id, ran_us, when)

    def image_us(self, attempt_id: str) -> int:
        return self._registry.image_us(attempt_id)

    def why_not_image(self, attempt_id: str) -> Refusal | None:
        return self._registry.why_not_image(attempt_id) or checks.why_not_alive(
            self._jobs.running[attempt_id], self._claims
        )

    def of_tag(self, tag: int) -> Running | None:
        return self._jobs.running.get(self._board.by_tag.get(tag, ""))

    def walltime_after_us(
        self, attempt_id: str, remaining: Remaining, n_nodes: int | None = None
    ) -> int:
        return self._registry.walltime_after_us(attempt_id, remaining, n_nodes)

    def walltime_on_us(self, attempt_id: str, n_nodes: int) -> int:
        return self._registry.walltime_on_us(attempt_id, n_nodes)

    def obstacle(self, nodes: NodeSet) -> int:
        return self._claims.obstacle(nodes)
