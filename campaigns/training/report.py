# SPDX-License-Identifier: Apache-2.0
"""The report on training clusters: the default report, with effective training time first.

Labels of failure laws with many parameters are shortened. A picture shows the time line of the
largest job.

References
----------
.. [1] A. Kokolis et al., "Revisiting Reliability in Large-Scale Machine Learning Research
   Clusters", HPCA 2025: effective training time ratio (ETTR), job mix, health checks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import msgspec
from msgspec.structs import replace

from rebat.figures.charts import Panel
from rebat.figures.flagship import flagship_svg
from rebat.report import usual
from rebat.report.parts import Picture, Report, ReportMaker
from rebat.report.runs_index import RunIndex, SweptRuns, lines_of, simulations, sweeps
from rebat.report.table import Table
from rebat.results.measures.recoveries import largest_job
from rebat.runs.labels import scenario_of
from rebat.runs.simulating import simulate_run
from rebat.runs.unit import Unit

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


MOST_DRAWN = 4
"""Maximum number of policies in the picture."""


def flagship_pictures(units: Sequence[Unit]) -> Iterator[Picture]:
    """Yield the time line of the job that used the most node time, under several policies.

    The first time line is from the first run with failures of the campaign. The others are from the
    same scenario under the next policies of the grid. All runs are simulated again.
    """
    first = next((unit for unit in units if unit.spec.scenario.failures), None)
    if first is None:
        return
    alike = {
        unit.spec.policy: unit
        for unit in units
        if unit.grid == first.grid
        and unit.spec.source == first.spec.source
        and unit.spec.scenario == first.spec.scenario
    }
    chosen = islice(alike.items(), MOST_DRAWN)
    ledgers = {policy: simulate_run(unit).ledger for policy, unit in chosen}
    job = largest_job(ledgers[first.spec.policy])
    about = f"{scenario_of(first.spec).label}, seed {first.labels['seed']}"
    title = f"job {job} of {first.spec.workload}: attempts, recoveries and ETTR"
    yield Picture("", title, flagship_svg(ledgers, job), about)


def with_short_laws(report: Report, laws: Iterable[str]) -> Report:
    """Return the report with labels that leave out the parameters that all failure laws share.

    A remark in the report lists these parameters.

    Parameters
    ----------
    laws : iterable of str
        The parameters of each law, as in labels: ``rate=6.5,lemons=0.013``.
    """
    first, *others = [law.split(",") for law in laws]
    shared = [part for part in first if all(part in law for law in others)]
    if not shared:
        return report

    def short(text: str) -> str:
        for part in shared:
            text = re.sub(rf",{re.escape(part)}(?=[,;: )]|$)", "", text)
            text = re.sub(rf":{re.escape(part)}(?=[,;: )]|$)", ":", text).replace(":,", ":")
        return text

    return replace(
        report,
        findings=[short(text) for text in report.findings],
        tables=[
            replace(
                table,
                title=short(table.title),
                note=short(table.note),
                rows=[[short(cell) for cell in row] for row in table.rows],
            )
            for table in report.tables
        ],
        pictures=[
            replace(picture, title=short(picture.title), note=short(picture.note))
            for picture in report.pictures
        ],
        remarks=[*report.remarks, f"All failure laws have these parameters: {', '.join(shared)}."],
    )


REPORT = ReportMaker(report, True, flagship_pictures)
