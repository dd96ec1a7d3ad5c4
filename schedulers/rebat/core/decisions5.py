# SPDX-License-Identifier: Apache-2.0
"""Decisions that only Batsim 5 accepts. rebat's schedulers do not use them."""

from __future__ import annotations

from rebat.core.decisions import Decision
from rebat.core.nodes import NodeSet


class PeriodicCall(Decision, frozen=True):
    """Request a message at every multiple of a period since time 0."""

    name: str
    period_us: int
    offset_us: int = 0
    n_periods: int | None = None
    """Number of calls. If None, calls continue until `StopCall`."""


class StopCall(Decision, frozen=True):
    """End a periodic call."""

    name: str


class StopSimulation(Decision, frozen=True):
    """End the simulation immediately."""


class ChangePowerState(Decision, frozen=True):
    """Change the power state of nodes."""

    nodes: NodeSet
    state: int


class SwitchNodes(Decision, frozen=True):
    """Turn nodes on or off."""

    nodes: NodeSet
    state: str
