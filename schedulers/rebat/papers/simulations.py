# SPDX-License-Identifier: Apache-2.0
"""Reports of simulations by name, and the inputs that they need besides the results table."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from rebat.core.formatting import counted
from rebat.papers.common.parts import Picture, ReportMaker, Table
from rebat.runs.unit import RunSpec, Unit

USUAL = "runs"
"""The default report."""

REPORTS = {
    "node-stealing": "node_stealing.report",
    "partitions": "torus.many_jobs",
    "replacement": "replacement.report",
    "migration": "migration.report",
    "differences": "node_stealing.differences",
    "training": "training.report",
    USUAL: "common.runs",
}
"""Module that defines the `REPORT`, for each name in a campaign file (``report = "runs"``)."""


def maker(name: str) -> ReportMaker:
    """Return a report by name. This is slow, because it imports the code of the figures."""
    report: ReportMaker = import_module(f"rebat.papers.{REPORTS[name]}").REPORT
    return report


def gather(units: Sequence[Unit]) -> tuple[str, list[Table], list[Picture], list[str]]:
    """Return report name, workload tables, pictures and provenance for the report of units."""
    from rebat.papers.common.runs import workload_tables

    name = units[0].spec.report or USUAL
    report = maker(name)
    tables = [*workload_tables(units)] if report.tables else []
    return name, tables, [*report.pictures(units)], _provenance(units)


def _provenance(units: Sequence[Unit]) -> list[str]:
    seeds = sorted({unit.labels["seed"] for unit in units} - {None})
    return [
        f"{counted(len({unit.key for unit in units}), 'distinct run')}, "
        + (f"seeds {seeds}" if seeds else "no seeds"),
        *sorted({f"workload {u.spec.workload}: {_source(u.spec)}" for u in units}),
    ]


def _source(spec: RunSpec) -> str:
    source = spec.source
    if source.generator:
        return f"generated ({source.generator}, seed {source.seed}); not the real trace"
    return f"{Path(source.file or '').name} {source.options or ''}"
