# SPDX-License-Identifier: Apache-2.0
"""Events of the simulator: a frozen class for each kind, named in the past tense."""

from __future__ import annotations

from typing import Any

import msgspec

from rebat.core.nodes import NodeSet


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base class of events; ``at_us`` is the time in microseconds."""

    at_us: int


class SimulationBegan(Event, frozen=True):
    """The simulation begins: the only event of the first message, at time 0."""

    n_nodes: int
    config: dict[str, Any]
    """Batsim's configuration (``dynamic-jobs-enabled``, ...)."""
    profiles: dict[str, dict[str, dict[str, Any]]]
    """Workload -> name -> profile."""
    workloads: dict[str, str]
    resources: list[dict[str, Any]] = []
    """Compute resources as Batsim lists them."""


class JobSubmitted(Event, frozen=True):
    """A static job was submitted, or the registration of a dynamic job was acknowledged."""

    job_id: str
    job: dict[str, Any]
    """JSON of the workload, with ``id`` rewritten."""
    profile: dict[str, Any] | None = None
    """Present only if profiles are forwarded on submission."""


class JobCompleted(Event, frozen=True):
    """An execution ended."""

    job_id: str
    state: str
    """COMPLETED_SUCCESSFULLY, COMPLETED_FAILED, COMPLETED_WALLTIME_REACHED or COMPLETED_KILLED. The
    state takes precedence over ``return_code``."""
    return_code: int
    nodes: NodeSet


class JobsKilled(Event, frozen=True):
    """A kill was carried out; ``progress`` only contains jobs that had not completed before."""

    job_ids: tuple[str, ...]
    progress: dict[str, Any] = {}


class CallRequested(Event, frozen=True):
    """The time of a CallMeLater is reached. Batsim 4 does not name the call."""

    name: str = ""
    last: bool = False
    """Whether a periodic call comes for the last time."""


class NodesFailed(Event, frozen=True):
    """Nodes became unavailable. Their jobs continue unless the scheduler kills them."""

    nodes: NodeSet
    cause: str | None = None
    """Cause of the failure, if the simulator states it; Batsim does not."""


class NodesRejuvenated(Event, frozen=True):
    """Nodes became available again."""

    nodes: NodeSet


class NoMoreStaticJobs(Event, frozen=True):
    """Every job of the workload files has been submitted."""


class NoMoreExternalEvents(Event, frozen=True):
    """Every event of the external event files has occurred."""


class Notified(Event, frozen=True):
    """Any other notification or event, unchanged."""

    kind: str
    data: dict[str, Any] = {}


class SimulationEnded(Event, frozen=True):
    """The simulation ended: the event of the last message."""


class Message(msgspec.Struct, frozen=True):
    """A message of the simulator: its send time, and the events since the previous message."""

    now_us: int
    events: tuple[Event, ...]
