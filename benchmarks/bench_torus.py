# SPDX-License-Identifier: Apache-2.0
"""Placement on a torus, on one core: decisions, months and growth.

python -m benchmarks.bench_torus [decisions] [months] [growth]
"""

from __future__ import annotations

import sys
from functools import partial

import numpy as np

from benchmarks.__main__ import best_of, november
from rebat.core.jobs import Workload
from rebat.models.boxes import LISTS, Boxes
from rebat.models.failures.laws import parse_law
from rebat.models.failures.per_node import Floats, NodeLaws
from rebat.models.topology import parse_torus
from rebat.policies.presets import preset
from rebat.runs.single import simulate
from rebat.workloads.generate import mira_like

POLICIES = ("baseline", "named", "slurm-linear", "torus-first", "rps", "faps")
DECISIONS = 100
LAW = "weibull:scale=22000h,shape=8"


def decisions() -> None:
    """Time one FAPS decision: hazards, sums and the smallest sum."""
    rng = np.random.default_rng(0)
    for name, volume in (("8x8x8x8", 256), ("8x8x8x8", 512), ("16x8x8x8", 256), ("intrepid", 512)):
        torus = parse_torus(name)
        laws = parse_law(LAW).nodes(torus.n_nodes, 0)
        assert laws is not None
        uptime_s = rng.uniform(0, 7e7, torus.n_nodes)
        for which in LISTS:
            boxes = Boxes(torus, volume, which)
            seconds = best_of(5, partial(decide, boxes, laws, uptime_s))
            about = f"{torus}, {volume} nodes, {which}: {len(boxes):,} boxes"
            print(f"{about:<48} {seconds * 1000 / DECISIONS:8.3f} ms a decision", flush=True)


def decide(boxes: Boxes, laws: NodeLaws, uptime_s: Floats) -> None:
    """Make several decisions for jobs of 48 h."""
    for _ in range(DECISIONS):
        boxes.least(laws.hazard(uptime_s, 48 * 3600.0))


def months() -> None:
    """Time a month of Mira in midplanes with conservative backfilling, without failures."""
    month = november() or mira_like("june-2017", 0)
    laws = parse_law(LAW).nodes(49_152, 0)
    for policy in POLICIES:
        timed(month, policy if policy != "named" else "baseline:placement=named", laws)


def timed(month: Workload, policy: str, laws: NodeLaws | None) -> None:
    """Time one simulation."""
    scheduler = preset(policy).knowing(laws)
    seconds = best_of(2, lambda: simulate(month, scheduler))
    print(f"{month.name}, {len(month.jobs):,} jobs, {policy:<26} {seconds:8.2f} s", flush=True)


def growth() -> None:
    """Time the first 1,000, 2,000 and 4,000 jobs of the month."""
    month = november() or mira_like("june-2017", 0)
    for count in (1_000, 2_000, 4_000):
        part = Workload(month.name, month.n_nodes, month.jobs[:count], month.profiles)
        for policy in ("baseline", "torus-first", "easy:placement=torus-first"):
            timed(part, policy, None)


BENCHMARKS = {"decisions": decisions, "months": months, "growth": growth}


if __name__ == "__main__":
    for name in sys.argv[1:] or BENCHMARKS:
        BENCHMARKS[name]()
