# SPDX-License-Identifier: Apache-2.0
"""Failures that hit only the nodes on which a training job runs.

The engine receives failures before it simulates them, so they must not depend on its state. The
history of a single job is simple enough to compute it in advance: after a failure, the job starts
again when the stages of the recovery are over and enough nodes are up, on the lowest of these
nodes.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np

from rebat.core.durations import stream
from rebat.core.nodes import NodeSet
from rebat.core.options import HUNG, Recovery
from rebat.core.units import US_PER_S
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.fleet import Fleet

JOB = "w0!1"
"""Id of the job, which the durations of its recoveries depend on."""


def failures_of_job(
    law: Fleet, n_nodes: int, n_spares: int, recovery: Recovery, seed: int
) -> Iterator[MachineEvent]:
    """Yield the failures and repairs of nodes, while a job runs on ``n_nodes`` of them.

    The law must have a constant failure rate and no failures of switches.
    """
    machine = n_nodes + n_spares
    rng, rates = stream(seed, "failures", "fleet", "of the job"), law.node_rates(machine, seed)
    up_us = np.zeros(machine, dtype=np.int64)
    repairs: list[tuple[int, int]] = []
    stages, now_us = recovery.stages, 0
    while True:
        ready_us = np.partition(up_us, n_nodes - 1)[n_nodes - 1]
        now_us = max(now_us, int(ready_us))
        job = np.flatnonzero(up_us <= now_us)[:n_nodes]
        bounds = np.cumsum(rates[job])
        now_us += 1 + round(rng.exponential(US_PER_S / bounds[-1]))
        hit = int(job[np.searchsorted(bounds, rng.random() * bounds[-1], side="right")])
        cause, size, repair_us = law.draw_failure(rng)
        failed = job[job // size == hit // size]
        while repairs and repairs[0][0] <= now_us:
            at_us, node = heapq.heappop(repairs)
            yield MachineEvent(at_us, True, NodeSet.of((node,)))
        yield MachineEvent(now_us, False, NodeSet.of(failed.tolist()), cause)
        up_us[failed] = now_us + repair_us
        for node in failed.tolist():
            heapq.heappush(repairs, (now_us + repair_us, node))
        drawn_us = recovery.drawn_us(stages, cause, JOB, now_us)
        now_us += sum(drawn_us.get(name, 0) for name in HUNG)
