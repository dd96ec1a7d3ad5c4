# SPDX-License-Identifier: Apache-2.0
"""Events of the simulator: a frozen class for each kind. Names are in the past tense."""

from __future__ import annotations

from typing import Any

import msgspec

from rebat.core.nodes import NodeSet


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base class of events. ``at_us`` is the time of the event in microseconds."""

    at_us: int


class SimulationBegan(Event, frozen=True):
    """The simulation begins. This is the only event of the first message, at time 0."""

    n_nodes: int
    config: dict[str, Any]
    """Batsim's configuration (``dynamic-jobs-enabled``, ...)."""
    profiles: dict[str, dict[str, dict[str, Any]]]
    """Profiles by name of the workload and name of the profile."""
    workloads: dict[str, str]
    resources: list[dict[str, Any]] = []
    """Compute resources, as listed by Batsim."""


class JobSubmitted(Event, frozen=True):
    """A static job was submitted, or Batsim acknowledged the registration of a dynamic job."""

    job_id: str
    job: dict[str, Any]
    """JSON of the job in the workload. Only ``id`` differs: it is the complete id."""
    profile: dict[str, Any] | None = None
    """JSON of the profile, or None if the simulator does not forward profiles with jobs."""


class JobCompleted(Event, frozen=True):
    """An execution of a job ended."""

    job_id: str
    state: str
    """COMPLETED_SUCCESSFULLY, COMPLETED_FAILED, COMPLETED_WALLTIME_REACHED or COMPLETED_KILLED.

    If the state and ``return_code`` contradict each other, the state is correct.
    """
    return_code: int
    nodes: NodeSet


class JobsKilled(Event, frozen=True):
    """The simulator killed jobs. ``progress`` contains only jobs that ran until the kill."""

    job_ids: tuple[str, ...]
    progress: dict[str, Any] = {}


class CallRequested(Event, frozen=True):
    """The requested time of a call is reached. Batsim 4 does not report the name of the call."""

    name: str = ""
    last: bool = False
    """Whether this is the last message of a periodic call."""


class FileEvent(Event, frozen=True, kw_only=True, gc=False):
    """An event that can be a line of an event file."""

    line: str = ""
    """Batsim 5's id of the line, like ``ee0!3``, or empty if the simulator does not state it."""


class NodesFailed(FileEvent, frozen=True):
    """Nodes became unavailable. Their jobs continue unless the scheduler kills them."""

    nodes: NodeSet
    cause: str | None = None
    """Cause of the failure, if the simulator states it. Batsim does not state it."""


class NodesRejuvenated(FileEvent, frozen=True):
    """Nodes became available again."""

    nodes: NodeSet


class NoMoreStaticJobs(Event, frozen=True):
    """All jobs of the workload files have been submitted."""


class NoMoreExternalEvents(Event, frozen=True):
    """All events of the external event files have occurred."""


class Notified(FileEvent, frozen=True):
    """Any other notification or event, in its original form."""

    kind: str
    data: dict[str, Any] = {}


class SimulationEnded(Event, frozen=True):
    """The simulation ended. This is the event of the last message."""


class Message(msgspec.Struct, frozen=True):
    """A message of the simulator: its time, and the events since the previous message."""

    now_us: int
    events: tuple[Event, ...]
