# SPDX-License-Identifier: Apache-2.0
"""Simulations as a kind of unit: a workload, a policy and a scenario."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from rebat.campaign.grid import runs
from rebat.core.errors import RebatError, one_line
from rebat.core.numbers import counted
from rebat.report.kind import Document, Expansion, Kind
from rebat.report.parts import Picture, ReportMaker
from rebat.report.table import Table
from rebat.results.measures.summary import as_json
from rebat.results.metric import flat_metrics
from rebat.runs.labels import COLUMNS, DETAILS
from rebat.runs.simulating import NAME, check_inputs, in_threads, simulate_run, units
from rebat.runs.single import RUN_FILES, write_run
from rebat.runs.unit import RunSpec, Unit


def _expand(document: Document) -> Expansion:
    return Expansion(units(runs(document)))


def _takes_trace(document: Document) -> bool:
    return any("file" in table for table in document.tables["workloads"].values())


def _perform(unit: Unit, folder: Path | None) -> dict[str, Any]:
    try:
        result = simulate_run(unit)
        if folder is not None:
            write_run(folder, result, {"run": unit.identity})
    except Exception as error:
        raise RebatError(_without_paths(one_line(error), unit.spec)) from error
    return as_json(result.summary)


def _without_paths(text: str, spec: RunSpec) -> str:
    """Remove paths from an error text, so that it does not depend on the campaign's folder."""
    if spec.source.file:
        text = text.replace(spec.source.file, Path(spec.source.file).name)
    return text.replace(f"{spec.folder}/", "") if spec.folder else text


def _rows(unit: Unit, metrics: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for metric, size_class, value in flat_metrics(metrics):
        yield {"metric": metric, "size_class": size_class, "value": value}


class SimulationExtras(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Data of the report besides the results: tables, figures and provenance."""

    tables: list[Table]
    pictures: list[Picture]
    provenance: list[str]


def _gather(maker: ReportMaker, selected: Sequence[Unit]) -> SimulationExtras:
    from rebat.report.usual import workload_tables

    tables = [*workload_tables(selected)] if maker.tables else []
    return SimulationExtras(tables, [*maker.pictures(selected)], _provenance(selected))


def _provenance(selected: Sequence[Unit]) -> list[str]:
    seeds = sorted({unit.labels["seed"] for unit in selected} - {None})
    return [
        f"{counted(len({unit.key for unit in selected}), 'distinct run')}, "
        + (f"seeds {seeds}" if seeds else "no seeds"),
        *sorted({f"workload {u.spec.workload}: {_source(u.spec)}" for u in selected}),
    ]


def _source(spec: RunSpec) -> str:
    source = spec.source
    if source.generator:
        return f"generated ({source.generator}, seed {source.seed}); not the real trace"
    return f"{Path(source.file or '').name} {source.options or ''}"


def _report(
    maker: ReportMaker, table: Path, extras: SimulationExtras, provenance: Sequence[str]
) -> Any:
    from rebat.report.usual import for_readers

    lines, tables = [*provenance, *extras.provenance], [*map(for_readers, extras.tables)]
    return maker.report(table, tables, extras.pictures, lines)


def reported(maker: ReportMaker, code: str) -> Kind:
    """Return simulations with a report. ``code`` is the file of the report (see `Kind.code`)."""
    own = partial(_gather, maker), partial(_report, maker)
    return replace(KIND, gather=own[0], report=own[1], code=code)


def _usual() -> ReportMaker:
    """Return the default report. Importing it takes time."""
    from rebat.report.usual import REPORT

    return REPORT


KIND = Kind(
    name=NAME,
    mark="workloads",
    tables=("workloads",),
    columns=COLUMNS,
    details=DETAILS,
    files=RUN_FILES,
    expand=_expand,
    takes_trace=_takes_trace,
    perform=_perform,
    rows=_rows,
    check=check_inputs,
    in_threads=in_threads,
    extras=SimulationExtras,
    gather=lambda selected: _gather(_usual(), selected),
    report=lambda *parts: _report(_usual(), *parts),
)
