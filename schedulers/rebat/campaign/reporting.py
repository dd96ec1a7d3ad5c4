# SPDX-License-Identifier: Apache-2.0
"""The report of a campaign. It has a page for each kind of unit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from rebat.campaign.kinds import code_of, kinds_of
from rebat.campaign.opening import Campaign, read_tables
from rebat.campaign.store import TABLE, Store
from rebat.campaign.tables import ReportData, decoded, failures, read_data, write_with_data
from rebat.core.errors import InputError, unknown_name
from rebat.core.files import write_bytes, write_text
from rebat.core.folders import check_no_result
from rebat.core.formatting import ENDINGS, TableForm
from rebat.core.numbers import counted
from rebat.core.version import rebat_version
from rebat.figures.canvas import Drawn, FileForms, drawing
from rebat.report.kind import Kind
from rebat.report.parts import Report, html, markdown
from rebat.runs.labels import rejections
from rebat.runs.simulating import NAME


class ReportFiles(NamedTuple):
    """The files to write from each figure, and the format of the tables. None: no files."""

    figures: FileForms | None = None
    tables: TableForm | None = None


PAGES_ONLY = ReportFiles()


def write_report(
    campaign: Campaign, results: Path, folder: Path, files: ReportFiles = PAGES_ONLY
) -> list[Path]:
    """Write ``report.html`` and ``report.md`` to a folder and return their paths.

    If there are several kinds of units, each kind has its own page, ``report-KIND``. The folder
    also contains a ``results.parquet``. From this file, `write_pages` can write the report again.
    With ``files.figures``, the folder ``figures`` contains each figure in these formats. With
    ``files.tables``, the folder ``tables`` contains each table in this format.
    """
    check_no_result(folder)
    store = Store(results)
    states = store.states(campaign.units)
    done = [unit for unit in campaign.units if states[unit.key] == "ok"]
    kinds = list(dict.fromkeys(unit.kind for unit in done))
    if not kinds:
        raise _without_results(campaign, store, results)
    with drawing(files.figures) if files.figures else nullcontext() as drawn:
        extras = {kind: _extras(campaign, kind) for kind in kinds}
        unfinished = store.status(campaign.units).unfinished
        code = code_of({kind: campaign.kinds[kind] for kind in kinds})
        data = ReportData(provenance(campaign, store), unfinished, extras, campaign.title, code)
        write_with_data(store.folder / TABLE, data, folder / TABLE)
        return _pages(folder / TABLE, data, campaign.kinds, folder, drawn, files.tables)


def _without_results(campaign: Campaign, store: Store, results: Path) -> InputError:
    """Return the error for a folder without results. If runs failed, it names the first one."""
    failed = failures(campaign, store)
    if not failed:
        return InputError(
            "contains no results of this campaign", str(results), "'rebat campaign run' first"
        )
    label, error = failed[0]
    return InputError(
        f"contains no results, because {counted(len(failed), 'run')} failed (correct the cause, "
        f"then use 'rebat campaign run --retry-failed'); the first is {label}: {error}",
        str(results),
    )


def write_pages(
    table: Path, folder: Path, file: Path | None = None, files: ReportFiles = PAGES_ONLY
) -> list[Path]:
    """Write the reports again from the table that `write_report` wrote.

    If the report's code is not included in rebat, it needs the campaign's ``file`` as well. A
    figure whose data the table does not contain is written as SVG only.
    """
    check_no_result(folder)
    data = read_data(table)
    own = [code for code in data.code.values() if code.startswith("./")]
    if file is None:
        if own:
            expected = "the file of this campaign as well"
            raise InputError(f"the report needs {', '.join(own)}", str(table), expected)
        kinds = kinds_of(data.code, None)
    elif own:
        kinds = kinds_of(read_tables(file), file.parent)
    else:
        raise InputError("has no effect with --from", "FILE")
    with drawing(files.figures) if files.figures else nullcontext() as drawn:
        return _pages(table, data, kinds, folder, drawn, files.tables)


def _pages(
    table: Path,
    data: ReportData,
    kinds: Mapping[str, Kind],
    folder: Path,
    drawn: Drawn | None,
    tables: TableForm | None,
) -> list[Path]:
    """Write a page per kind, and the figures if ``drawn`` collects them."""
    paths = []
    for kind, extras in data.kinds.items():
        if kind not in kinds:
            raise unknown_name("kind", kind, kinds).at(str(table))
        facts: Any = decoded(extras, kinds[kind].extras, table)
        report = kinds[kind].report(table, facts, data.provenance)
        report = msgspec.structs.replace(
            report,
            title=_title(report, data.title),
            unfinished=data.unfinished,
            remarks=[*report.remarks, *_rejections(table, kind)],
        )
        name = "report" if len(data.kinds) == 1 else f"report-{kind}"
        for ending, text in (("html", html(report)), ("md", markdown(report))):
            paths.append(folder / f"{name}.{ending}")
            write_text(paths[-1], text)
        if drawn is not None:
            names = "figure" if len(data.kinds) == 1 else f"{kind}-figure"
            paths += _figures(report, drawn.files, folder / "figures" / names)
        if tables:
            names = "table" if len(data.kinds) == 1 else f"{kind}-table"
            paths += _tables(report, tables, folder / "tables" / names)
    return paths


def _tables(report: Report, form: TableForm, name: Path) -> Iterator[Path]:
    """Write each table of a report to ``NAME-1.tex``, ``NAME-2.tex`` ..., and yield the paths."""
    for number, table in enumerate(report.tables, 1):
        text = table.written(form)
        path = name.with_name(f"{name.name}-{number}.{ENDINGS[form]}")
        write_text(path, f"% {table.title}\n{text}" if form == "latex" else text)
        yield path


def _figures(
    report: Report, files: Mapping[str, Mapping[str, bytes]], name: Path
) -> Iterator[Path]:
    """Write each figure of a report to ``NAME-1.svg``, ``NAME-2.svg`` ..., and yield the paths."""
    for number, svg in enumerate(_svgs(report), 1):
        for form, data in files.get(svg, {"svg": svg.encode()}).items():
            path = name.with_name(f"{name.name}-{number}.{form}")
            write_bytes(path, [data])
            yield path


def _svgs(report: Report) -> Iterator[str]:
    """Yield the panels of all figures of a report."""
    for picture in report.pictures:
        yield from re.findall(r"<svg.*?</svg>\n?", picture.svg, re.DOTALL)


def _rejections(table: Path, kind: str) -> list[str]:
    """Return a note on rejected jobs for the report of simulations, if there are any."""
    text = rejections(table) if kind == NAME else ""
    return [f"Warning: {text}."] if text else []


def _title(report: Report, campaign: str) -> str:
    """Return the campaign's title. Reports on a paper's claims add it to theirs in parentheses."""
    if report.claims and campaign:
        return f"{report.title} ({campaign})"
    return campaign or report.title


def provenance(campaign: Campaign, store: Store) -> list[str]:
    """Return lines that state the program version, the campaign and its progress."""
    status = store.status(campaign.units)
    return [
        f"rebat {rebat_version()}, campaign {campaign.owner.name} ({campaign.owner.file})",
        f"{status.sentence}",
        *campaign.notes,
    ]


def _extras(campaign: Campaign, kind: str) -> msgspec.Raw:
    units = [unit for unit in campaign.units if unit.kind == kind]
    return msgspec.Raw(msgspec.json.encode(campaign.kinds[kind].gather(units)))
