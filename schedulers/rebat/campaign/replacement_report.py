# SPDX-License-Identifier: Apache-2.0
"""What the report of node replacement needs beside the results: a small run to look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rebat.campaign.keys import scheduler_of
from rebat.campaign.single import RunResult, simulate
from rebat.campaign.unit import Unit
from rebat.core.jobs import Job, Workload
from rebat.core.nodes import NodeSet
from rebat.core.shapes import Malleable, fields_of
from rebat.core.units import to_us
from rebat.figures.gantt import gantt_svg
from rebat.models.checkpoint import add_perfect
from rebat.models.failures.events import MachineEvent
from rebat.policies.presets import Preset, preset
from rebat.reports.parts import Picture

POLICY = "dbes:react=replacement"
HOUR_S = 3600


WORDS = {
    "grow": "grows", "shrink": "shrinks", "lend": "shrinks for the other", "local": "hit: shrinks",
    "idle": "hit: idle node", "remote": "hit: nodes of the other", "restart": "hit: starts over",
}  # fmt: skip
"""What the picture writes for the words of the policy."""


def about_replacement(units: Sequence[Unit]) -> bool:
    """Whether the first grid has a policy that replaces nodes."""
    return any("replacement" in reactions(unit) for unit in units if unit.grid == units[0].grid)


def reactions(unit: Unit) -> frozenset[str]:
    """The reactions of a run's policy."""
    chosen = scheduler_of(unit.spec)
    return (
        frozenset(part.name for part in chosen.point.reactions)
        if isinstance(chosen, Preset)
        else frozenset()
    )


def replacement_pictures() -> Iterator[Picture]:
    """The small run, drawn."""
    result = small_run()
    svg = gantt_svg({POLICY: result.ledger}, result.summary.n_nodes, WORDS)
    yield Picture("", "a small run of our own: a replacement, shrinks and growths", svg)


def small_run() -> RunResult:
    """Two jobs on four nodes of two processors, two of which fail.

    Job 1 is rigid, on four processors for four hours. Job 2 is malleable, from two processors to
    six, and has twelve processor-hours of work; under DBES it takes what job 1 leaves. After an
    hour a node fails under job 1, to which job 2 gives two processors; later one under job 2.
    """
    jobs = [
        Job("1", 4, 0, to_us(4 * HOUR_S + 60), "1"),
        Job("2", 2, 0, to_us(8 * HOUR_S + 60), "2", fields_of(Malleable(2, 6))),
    ]
    profiles: dict[str, dict[str, Any]] = {
        "1": {"type": "delay", "delay": 4 * HOUR_S},
        "2": {"type": "delay", "delay": 8 * HOUR_S, "speedup": {"model": "linear"}},
    }
    workload = add_perfect(Workload("small", 8, tuple(jobs), profiles))
    events = [*_outage("2-3", 1.0, 2.0), *_outage("4-5", 3.0, 3.5)]
    return simulate(workload, preset(POLICY), machine_events=events)


def _outage(processors: str, first_h: float, last_h: float) -> list[MachineEvent]:
    nodes = NodeSet.parse(processors)
    return [
        MachineEvent(to_us(first_h * HOUR_S), False, nodes),
        MachineEvent(to_us(last_h * HOUR_S), True, nodes),
    ]
