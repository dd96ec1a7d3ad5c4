# SPDX-License-Identifier: Apache-2.0
"""What a comparison says of cores of nodes, partitions and migrations, where there are any."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from rebat.metrics.summary import RunSummary

Of = Callable[[RunSummary], float | None]
Row = tuple[str, str, Of]
"""Title, kind of the value, and the value of a run."""

_STATES = ("empty", "mixed", "full")
_FLOWS = {"max turnaround": "max_s", "mean turnaround": "mean_s"}
_MOVES: dict[str, tuple[str, Of]] = {
    "checkpoints and restarts": ("count", lambda s: s.migrations.count),
    "  their cost, share of core time": ("share", lambda s: _of_all(s, s.migrations.cost)),
    "nodes drained": ("count", lambda s: s.drains.nodes),
    "  got empty": ("count", lambda s: s.drains.emptied),
    "  time to get empty, mean": ("time", lambda s: s.drains.mean_s if s.drains.emptied else None),
    "  time to get empty, max": ("time", lambda s: s.drains.max_s if s.drains.emptied else None),
    "operations refused": ("count", lambda s: s.drains.refused),
    "energy, kWh": ("count", lambda s: s.energy.kwh if s.energy else None),
    "  nodes asleep, share of node time": ("share", lambda s: s.energy.asleep if s.energy else 0),
}


def cluster_rows(summaries: Mapping[str, RunSummary]) -> Iterator[Row]:
    """The rows, in the order in which people ask."""
    for state in _STATES:
        yield f"nodes {state}, share of node time", "share", _state(state)
    names = dict.fromkeys(name for s in summaries.values() for name in s.partition_states)
    for name in names:
        for state in _STATES:
            yield f"  {state} in partition {name}", "share", _state(state, name)
    for title, (kind, of) in _MOVES.items():
        yield title, kind, of
    for title, field in _FLOWS.items():
        for name in names:
            yield f"{title}, partition {name}", "time", _turnaround(name, field)


def _of_all(summary: RunSummary, part: float) -> float:
    total = summary.platform.total
    return part / total if total else 0.0


def _state(state: str, partition: str = "") -> Of:
    def of(summary: RunSummary) -> float | None:
        states = summary.partition_states.get(partition) if partition else summary.node_states
        return None if states is None else float(getattr(states, state))

    return of


def _turnaround(partition: str, field: str) -> Of:
    def of(summary: RunSummary) -> float | None:
        flow = summary.turnaround.get(partition)
        return None if flow is None else float(getattr(flow, field))

    return of
