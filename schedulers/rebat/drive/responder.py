# SPDX-License-Identifier: Apache-2.0
"""The scheduler that answers Batsim's messages: the rules, or the session with a policy.

The first message decides: the rules cover most of the policies, but not every machine and workload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rebat.contract import Policy
from rebat.core import events as e
from rebat.core.decisions import Reply
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.options import SessionOptions
from rebat.drive.eligible import why_not_policy
from rebat.drive.parts import Uncovered, machine_of
from rebat.drive.wire import Wire
from rebat.models.checkpoint import checkpointing_of
from rebat.policies.point import Point
from rebat.policies.presets import Preset
from rebat.session.ledger import Ledger
from rebat.session.plan_record import PlanRecorder
from rebat.session.session import Session


class Responder:
    """A scheduler. ``handle`` answers a message.

    Parameters
    ----------
    preset : Preset or another scheduler with ``make``
    options : SessionOptions
    uptime_us : int64 array, shape (n,), optional
        Uptime of each node when the simulation begins, in microseconds (default: 0).
    recorder : PlanRecorder, optional
        Recorder of the plans (default: the plans are not recorded).
    make : callable, optional
        Function that returns the policy of the session (default: that of the preset).
    only_session : bool
        Whether the session answers in any case, for example because a job is eternal.
    """

    def __init__(
        self,
        preset: Any,
        options: SessionOptions,
        uptime_us: npt.NDArray[np.int64] | None = None,
        recorder: PlanRecorder | None = None,
        *,
        make: Callable[[], Policy] | None = None,
        only_session: bool = False,
    ) -> None:
        self.options = options
        self._uptime_us, self._recorder, self._make = uptime_us, recorder, make or preset.make
        self._point: Point | None = None
        if isinstance(preset, Preset) and not only_session:
            point = preset.point
            operates = point.common.drain != "auto"
            self._point = None if operates or why_not_policy(point) else point
        self._made: Wire | Session | None = None
        self._session: Session | None = None
        if self._point is None:
            self._made = self._session = self._new_session()

    def _new_session(self) -> Session:
        return Session(self._make(), self.options, self._uptime_us, self._recorder)

    def handle(self, message: e.Message) -> Reply:
        """Process a message, decide, and return the reply."""
        if self._made is None:
            self._choose(message)
        assert self._made is not None
        return self._made.handle(message)

    def _choose(self, message: e.Message) -> None:
        first = message.events[0] if message.events else None
        is_begin = isinstance(first, e.SimulationBegan)
        if is_begin and _covers(self._point, self.options, first, self._uptime_us):
            assert self._point is not None
            self._made = Wire(self._point, self.options, self._recorder)
        else:
            self._made = self._session = self._new_session()

    # ---- state

    @property
    def began(self) -> e.SimulationBegan | None:
        """The first event of the simulation, or None if it has not arrived yet."""
        return self._made.began if self._made else None

    @property
    def ended(self) -> bool:
        """Whether the simulation ended."""
        return self._made is not None and self._made.ended

    @property
    def now_us(self) -> int:
        """Time of the last message."""
        return self._made.now_us if self._made else 0

    @property
    def statics_over(self) -> bool:
        """Whether every job of the workload has been submitted."""
        return self._made is not None and self._made.statics_over

    @property
    def ledger(self) -> Ledger:
        """Records of the simulation. Reading it takes time."""
        return self._made.ledger if self._made else Ledger()

    @property
    def refusals(self) -> list[tuple[int, str, str]]:
        """See `Ledger`."""
        if isinstance(self._made, Wire):
            return self._made.refusals
        return self._made.ledger.refusals if self._made else []

    @property
    def interrupted(self) -> Mapping[str, int]:
        """See `Ledger`."""
        if isinstance(self._made, Wire):
            return self._made.interrupted
        return self._made.ledger.interrupted if self._made else {}

    @property
    def queue(self) -> Iterable[str]:
        """Ids of queued attempts."""
        return [*self._made.queue] if self._made else []

    @property
    def n_waiting(self) -> int:
        """Number of queued and blocked attempts."""
        if isinstance(self._made, Wire):
            return len(self._made.queue) + int(self._made.state.n.n_blocked)
        return len(self._made.queue) + len(self._made.view.blocked) if self._made else 0

    @property
    def n_running(self) -> int:
        """Number of running attempts."""
        if isinstance(self._made, Wire):
            n_running: int = self._made.state.n.n_running
            return n_running
        return len(self._made.running) if self._made else 0

    def nodes_of(self, attempt_id: str) -> NodeSet | None:
        """Return the nodes of a running attempt, or None if it does not run."""
        if isinstance(self._made, Wire):
            return self._made.nodes_of(attempt_id)
        running = self._made.running.get(attempt_id) if self._made else None
        return running.nodes if running else None

    @property
    def down(self) -> npt.NDArray[np.bool_]:
        """A mask of the failed nodes."""
        if isinstance(self._made, Wire):
            nodes = self._made.machine.numbered(np.arange(self._made.n_nodes))
            mask: npt.NDArray[np.bool_] = self._made.state.down[nodes]
            return mask
        return self._made.view.machine.down if self._made else np.zeros(0, dtype=np.bool_)

    def validate(self) -> None:
        """Check the invariants that hold after every message."""
        if self._made:
            self._made.validate()


def _covers(
    point: Point | None,
    options: SessionOptions,
    event: Any,
    uptime_us: npt.NDArray[np.int64] | None,
) -> bool:
    """Return whether the rules cover a machine and its profiles."""
    if point is None or (uptime_us is not None and len(uptime_us) != event.n_nodes):
        return False
    profiles = [each for of in event.profiles.values() for each in of.values()]
    try:
        kinds = [checkpointing_of(profile) for profile in profiles]
        if any(kind and (kind.light or kind.never) for kind in kinds):
            return False
        partitions = machine_of(point, event.n_nodes, options.cores_per_node).partitions
    except (InputError, Uncovered):  # the session reports errors later
        return False
    return not any(row.max_time_us or row.default_time_us for row in partitions)
