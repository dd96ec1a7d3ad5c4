# SPDX-License-Identifier: Apache-2.0
"""A picture for the report on node replacement: a small example run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rebat.core.jobs import Job, Workload
from rebat.core.nodes import NodeSet
from rebat.core.traits import Malleable, fields_of
from rebat.core.units import to_us
from rebat.figures.gantt import gantt_svg
from rebat.models.checkpoint import add_perfect
from rebat.models.failures.events import MachineEvent
from rebat.policies.presets import preset
from rebat.report.parts import Picture
from rebat.runs.single import RunResult, simulate

POLICY = "dbes:react=replacement"
HOUR_S = 3600


WORDS = {
    "grow": "grows",
    "shrink": "shrinks",
    "lend": "shrinks for the other",
    "local": "hit: shrinks",
    "idle": "hit: idle node",
    "remote": "hit: nodes of the other",
    "restart": "hit: starts over",
}
"""Words in the picture, for the reasons that the policy states."""


def replacement_pictures() -> Iterator[Picture]:
    """Yield a picture of the small run."""
    result = small_run()
    svg = gantt_svg({POLICY: result.ledger}, result.summary.n_nodes, WORDS)
    yield Picture("", "a small example: a replacement, shrinks and growths", svg)


def small_run() -> RunResult:
    """Simulate two jobs on four nodes of two processors each. Two nodes fail.

    Job 1 is rigid and uses four processors for four hours. Job 2 is malleable, uses two to six
    processors, and has twelve processor-hours of work. Under DBES it takes the processors that job
    1 leaves free. After an hour a node of job 1 fails, and job 2 gives two processors to job 1.
    Later a node of job 2 fails.
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
