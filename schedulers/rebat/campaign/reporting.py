# SPDX-License-Identifier: Apache-2.0
"""A campaign's report: one page per kind of unit that it ran."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

import rebat
from rebat.campaign.keeping import Kept, decoded, keep, read_kept
from rebat.campaign.kinds import KINDS
from rebat.campaign.opening import Campaign
from rebat.campaign.store import TABLE, Store
from rebat.core.errors import InputError, unknown_name
from rebat.core.files import write_text
from rebat.core.manifest import check_no_result
from rebat.papers.common.page import html, markdown


def write_report(campaign: Campaign, results: Path, folder: Path) -> list[Path]:
    """Write ``report.html`` and ``report.md`` into a folder; gives both paths.

    A campaign with units of several kinds has a ``report-KIND`` for each. Beside them is a
    ``results.parquet`` of which `write_pages` makes the same again.

    Raises
    ------
    InputError
        When there are no results to report, or the folder holds another command's result.
    """
    check_no_result(folder)
    store = Store(results)
    done = [unit for unit in campaign.units if store.has_metrics(unit.key)]
    kinds = list(dict.fromkeys(unit.kind for unit in done))
    if not kinds:
        raise InputError("no results of this file", str(results), "rebat campaign run first")
    beside = {kind: _beside(campaign, kind) for kind in kinds}
    unfinished = store.status(campaign.units).unfinished
    kept = Kept(provenance(campaign, store), unfinished, beside, campaign.title)
    keep(store.folder / TABLE, kept, folder / TABLE)
    return write_pages(folder / TABLE, folder)


def write_pages(table: Path, folder: Path) -> list[Path]:
    """Write the reports of a table that was kept by `write_report`; nothing else is read.

    Raises
    ------
    InputError
        For another file, or a folder that holds another command's result.
    """
    check_no_result(folder)
    kept = read_kept(table)
    paths = []
    for kind, beside in kept.kinds.items():
        if kind not in KINDS:
            raise unknown_name("kind", kind, KINDS).at(str(table))
        facts: Any = decoded(beside, KINDS[kind].extras, table)
        found = KINDS[kind].report(table, facts, kept.provenance)
        title = found.title if found.claims else kept.title or found.title
        report = msgspec.structs.replace(found, title=title, unfinished=kept.unfinished)
        name = "report" if len(kept.kinds) == 1 else f"report-{kind}"
        for ending, text in (("html", html(report)), ("md", markdown(report))):
            paths.append(folder / f"{name}.{ending}")
            write_text(paths[-1], text)
    return paths


def provenance(campaign: Campaign, store: Store) -> list[str]:
    """Which program, which campaign, and how far it is."""
    status = store.status(campaign.units)
    return [
        f"rebat {rebat.__version__}, campaign {campaign.owner.name} ({campaign.owner.file})",
        f"{status.sentence}",
        *campaign.notes,
    ]


def _beside(campaign: Campaign, kind: str) -> msgspec.Raw:
    units = [unit for unit in campaign.units if unit.kind == kind]
    return msgspec.Raw(msgspec.json.encode(KINDS[kind].gather(units)))
