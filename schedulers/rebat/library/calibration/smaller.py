# SPDX-License-Identifier: Apache-2.0
"""Recorded failures on fewer nodes than the recorded machine has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from rebat.core.nodes import NodeSet
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.recorded import Trace
from rebat.runs.scenario import Scenario


class PartOfTrace(Trace, frozen=True, kw_only=True):
    """The events of a file on the first nodes of a machine with ``of_nodes`` nodes."""

    of_nodes: int

    def events(
        self,
        n_nodes: int,
        seed: int = 0,
        horizon_s: float | None = None,
        cores_per_node: int = 1,
    ) -> Iterable[MachineEvent]:
        """Return the events of the first ``n_nodes`` nodes as a list."""
        events = super().events(self.of_nodes, seed, horizon_s, cores_per_node)
        return list(_of_first(events, n_nodes))


def _of_first(events: Iterable[MachineEvent], n_nodes: int) -> Iterator[MachineEvent]:
    for event in events:
        pairs = event.nodes.intervals.tolist()
        nodes = NodeSet.from_intervals((a, min(b, n_nodes - 1)) for a, b in pairs if a < n_nodes)
        if len(nodes):
            yield msgspec.structs.replace(event, nodes=nodes)


def on_nodes(scenario: Scenario, nodes: int, of_nodes: int) -> Scenario:
    """Return a scenario on fewer nodes. Recorded failures of the other nodes are left out."""
    failures = scenario.failures
    if failures is not None and isinstance(failures.law, Trace) and nodes < of_nodes:
        part = PartOfTrace(failures.law.file, failures.law.numbers, of_nodes=of_nodes)
        failures = msgspec.structs.replace(failures, law=part)
    return msgspec.structs.replace(scenario, nodes=nodes, failures=failures)
