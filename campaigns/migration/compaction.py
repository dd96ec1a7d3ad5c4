# SPDX-License-Identifier: Apache-2.0
"""A picture for the report on job migration: a machine before and after a compaction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rebat.core.units import format_duration, to_s
from rebat.figures.cores import cores_at_instants
from rebat.figures.torus import owners
from rebat.models.boxes import TorusBlocks
from rebat.models.topology import Torus
from rebat.policies.presets import preset
from rebat.report.parts import Picture
from rebat.runs.single import RunResult, simulate
from rebat.workloads.generate import generator

DAY, POLICY, CORES = "cluster-day:load=50", "compaction", 16
"""The drawn run: seed 0 of the load of Figure 3."""


class Instant(NamedTuple):
    """A compaction: its time, the jobs that move, and the job on each core before and after it."""

    at_us: int
    jobs: list[int]
    before: npt.NDArray[np.int64]
    after: npt.NDArray[np.int64]


def migration_pictures() -> Iterator[Picture]:
    """Yield a picture of the machine before and after the first compaction of a day."""
    result = simulate(generator(DAY)(0), preset(POLICY), cores_per_node=CORES)
    instant = first_compaction(result)
    if instant:
        panels = {"just before": instant.before, "just after": instant.after}
        svg = cores_at_instants(panels, CORES, instant.jobs)
        when = format_duration(to_s(instant.at_us))
        title = f"a compaction empties a node, {when} after the start of a simulated day"
        yield Picture("cf. Algorithm 1", title, svg)


def first_compaction(result: RunResult) -> Instant | None:
    """Return the first compaction that empties a node. Return None if there is none."""
    moved = [record for record in result.ledger.attempts if record.why == "compact"]
    if not moved:
        return None
    at_us = min(record.end_us for record in moved)
    jobs = [record.attempt.job_serial for record in moved if record.end_us == at_us]
    each = TorusBlocks(Torus((result.summary.n_nodes,)))  # here, a block is a core
    before, after = (owners(result.ledger, each, time_us) for time_us in (at_us - 1, at_us))
    return Instant(at_us, sorted(jobs), before, after)
