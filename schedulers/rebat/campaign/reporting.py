"""A campaign's report: one page per kind of unit that it ran."""

from __future__ import annotations

from pathlib import Path

import msgspec

import rebat
from rebat.campaign.kinds import KINDS
from rebat.campaign.opening import Campaign
from rebat.campaign.store import TABLE, Store
from rebat.core.errors import InputError
from rebat.core.files import write_text
from rebat.reports.page import html, markdown


def write_report(campaign: Campaign, results: Path, folder: Path) -> list[Path]:
    """Write ``report.html`` and ``report.md`` into a folder; gives both paths.

    A campaign with units of several kinds has a ``report-KIND`` for each.

    Raises
    ------
    InputError
        When there are no results to report.
    """
    store = Store(results)
    done = [unit for unit in campaign.units if store.has_metrics(unit.key)]
    kinds = list(dict.fromkeys(unit.kind for unit in done))
    if not kinds:
        raise InputError("no results of this file", str(results), "rebat campaign run first")
    paths = []
    for kind in kinds:
        units = [unit for unit in campaign.units if unit.kind == kind]
        found = KINDS[kind].report(units, store.folder / TABLE, provenance(campaign, store))
        report = msgspec.structs.replace(found, unfinished=store.status(campaign.units).unfinished)
        name = "report" if len(kinds) == 1 else f"report-{kind}"
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
