# SPDX-License-Identifier: Apache-2.0
"""Shorter labels of failure laws with many parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec.structs import replace

from rebat.papers.common.parts import Report


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
