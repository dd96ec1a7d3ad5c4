# SPDX-License-Identifier: Apache-2.0
"""What the simulator tells the scheduler: past tense, frozen, one class per kind."""

from __future__ import annotations

from typing import Any

import msgspec

from rebat.core.nodes import NodeSet


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base: everything happens at a date, in microseconds."""

    at_us: int


class SimulationBegan(Event, frozen=True):
    """The first message, alone, at date 0.

    ``config`` holds Batsim's own keys (``dynamic-jobs-enabled`` ...); ``profiles`` maps a workload
    name to its profiles by name; ``resources`` are the compute resources as Batsim lists them.
    """

    n_nodes: int
    config: dict[str, Any]
    profiles: dict[str, dict[str, dict[str, Any]]]
    workloads: dict[str, str]
    resources: list[dict[str, Any]] = []


class JobSubmitted(Event, frozen=True):
    """A static job arrived, or the registration of a dynamic one is acknowledged.

    ``job`` is the workload's own JSON, ``id`` rewritten; ``profile`` comes only when profiles are
    forwarded on submission.
    """

    job_id: str
    job: dict[str, Any]
    profile: dict[str, Any] | None = None


class JobCompleted(Event, frozen=True):
    """An execution ended: ``state`` is Batsim's COMPLETED_SUCCESSFULLY, _FAILED,
    _WALLTIME_REACHED or _KILLED; trust it above ``return_code``."""

    job_id: str
    state: str
    return_code: int
    nodes: NodeSet


class JobsKilled(Event, frozen=True):
    """A kill request was carried out; ``progress`` holds only the jobs really killed."""

    job_ids: tuple[str, ...]
    progress: dict[str, Any] = {}


class CallRequested(Event, frozen=True):
    """A date asked for by CallMeLater has come. It carries no name: keep your own agenda."""


class NodesFailed(Event, frozen=True):
    """Nodes became unavailable. Whatever runs there goes on unless the scheduler kills it."""

    nodes: NodeSet


class NodesRejuvenated(Event, frozen=True):
    """Nodes became available again."""

    nodes: NodeSet


class NoMoreStaticJobs(Event, frozen=True):
    """Every job of the workload files has been submitted."""


class NoMoreExternalEvents(Event, frozen=True):
    """Every line of the external event files has occurred."""


class Notified(Event, frozen=True):
    """Any other notification or event, kept as it came, for whom it may concern."""

    kind: str
    data: dict[str, Any] = {}


class SimulationEnded(Event, frozen=True):
    """The last message."""


class Message(msgspec.Struct, frozen=True):
    """One message of the simulator: the date it was sent and what happened since the last."""

    now_us: int
    events: tuple[Event, ...]
