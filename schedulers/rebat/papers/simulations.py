# SPDX-License-Identifier: Apache-2.0
"""The reports of simulations: what a campaign's file may name, with what each needs beside the
results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from rebat.papers.common import runs
from rebat.papers.common.parts import Picture, Report, Table
from rebat.papers.migration import report as migration
from rebat.papers.migration.compaction import migration_pictures
from rebat.papers.node_stealing import differences
from rebat.papers.node_stealing import report as node_stealing
from rebat.papers.node_stealing.pictures import an_hour
from rebat.papers.replacement import report as replacement
from rebat.papers.replacement.small_run import replacement_pictures
from rebat.papers.torus import many_jobs
from rebat.papers.torus.machine import torus_pictures
from rebat.runs.spec import RunSpec
from rebat.runs.unit import Unit

USUAL = "runs"
"""The report of a file that names none."""


class ReportMaker(NamedTuple):
    """A report: how it is made of results, tables, pictures and lines, and which of them it needs:
    tables of the workloads, and pictures of units."""

    report: Callable[[Path, Sequence[Table], Sequence[Picture], Sequence[str]], Report]
    tables: bool = False
    pictures: Callable[[Sequence[Unit]], Iterable[Picture]] = lambda units: ()


REPORTS: dict[str, ReportMaker] = {
    "node-stealing": ReportMaker(node_stealing.report, True, an_hour),
    "partitions": ReportMaker(many_jobs.report, False, torus_pictures),
    "replacement": ReportMaker(replacement.report, False, lambda units: replacement_pictures()),
    "migration": ReportMaker(migration.report, False, lambda units: migration_pictures()),
    "differences": ReportMaker(differences.report, True),
    USUAL: ReportMaker(runs.report, True),
}
"""By the name that a campaign's file has for it (``report = "runs"``)."""


def gather(units: Sequence[Unit]) -> tuple[str, list[Table], list[Picture], list[str]]:
    """The name of the report of these units, and the tables, pictures and lines that it needs."""
    which = units[0].spec.report or USUAL
    written = REPORTS[which]
    tables = [*runs.workload_tables(units)] if written.tables else []
    return which, tables, [*written.pictures(units)], _provenance(units)


def _provenance(units: Sequence[Unit]) -> list[str]:
    seeds = sorted({unit.labels["seed"] for unit in units} - {None})
    return [
        f"{len({unit.key for unit in units})} distinct runs, seeds {seeds}",
        *sorted({f"workload {u.spec.workload}: {_source(u.spec)}" for u in units}),
    ]


def _source(spec: RunSpec) -> str:
    source = spec.source
    if source.generator:
        return f"generated ({source.generator}, seed {source.seed}); not the real trace"
    return f"{Path(source.file or '').name} {source.options or ''}"
