# SPDX-License-Identifier: Apache-2.0
"""The report on training clusters: the default report, with effective training time first.

References
----------
.. [1] A. Kokolis et al., "Revisiting Reliability in Large-Scale Machine Learning Research
   Clusters", HPCA 2025: effective training time ratio (ETTR), job mix, health checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from rebat.figures.lines import Panel
from rebat.papers.common import runs as usual
from rebat.papers.common.parts import Picture, Report, ReportMaker, Table
from rebat.papers.common.runs_index import RunIndex, simulations
from rebat.papers.common.sweeps import SweptRuns, lines_of, sweeps
from rebat.papers.training.flagship import flagship_pictures
from rebat.papers.training.laws import with_short_laws

ETTR, QUEUED = "training_ettr", "training_ettr_queued"
COMPARED = (ETTR, QUEUED, "flow_mean_s", "service_bounded_slowdown_mean")
"""Metrics of the summary."""

LARGEST = 2
"""Number of size classes with their own panel. These are the classes of the largest jobs."""


def report(
    path: Path, tables: Sequence[Table], pictures: Sequence[Picture], provenance: Sequence[str]
) -> Report:
    """Return the report of a campaign's ``results.parquet``."""
    runs = RunIndex(simulations(path, str))
    plain = usual.report(path, tables, (), provenance)
    full = msgspec.structs.replace(
        plain,
        title="Policies of training clusters",
        pictures=[*ettr_pictures(runs), *pictures, *plain.pictures],
        findings=[*usual.findings(runs, COMPARED)],
    )
    return with_short_laws(full, {item.scenario.law or "": None for item in runs.settings})


def ettr_pictures(runs: RunIndex[str]) -> Iterator[Picture]:
    """Yield a picture of ETTR per sweep, for example over spare nodes or checkpoint intervals.

    The first two panels show all jobs, without and with queue time. Each of the others shows one of
    the largest size classes, with queue time.
    """
    for sweep in islice(sweeps(runs), usual.MOST_SWEEPS):
        shown = [(ETTR, "all"), (QUEUED, "all"), *((QUEUED, of) for of in _largest(runs, sweep))]
        panels = [
            Panel(metric, lines, "" if of == "all" else f"jobs of {of} nodes")
            for metric, of in shown
            if (lines := lines_of(runs, sweep, metric, of))
        ]
        if panels:
            yield usual.sweep_picture(runs, sweep, panels, f"ETTR of {sweep.fixed.workload}")


def _largest(runs: RunIndex[str], sweep: SweptRuns) -> list[str]:
    """Return the largest size classes that have jobs in all runs of a sweep, in ascending order."""
    cases = [case for line in sweep.lines.values() for case in line.values()]
    names = [of for of in runs.size_classes(sweep.fixed, QUEUED) if of != "all"]
    return [of for of in names if all(runs.values(*case, QUEUED, of) for case in cases)][-LARGEST:]


REPORT = ReportMaker(report, True, flagship_pictures)
