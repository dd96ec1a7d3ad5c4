# SPDX-License-Identifier: Apache-2.0
"""The report of simulations: sections 5 to 7 of Du, Marchal, Pallez, Robert 2024."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rebat.papers.common.parts import Picture, Report, ReportMaker, Table
from rebat.papers.node_stealing.claims import judgements
from rebat.papers.node_stealing.pictures import an_hour, pictures
from rebat.papers.node_stealing.runs import index_of
from rebat.papers.node_stealing.tables import tables


def report(
    path: Path, workloads: Sequence[Table], more_pictures: Sequence[Picture],
    provenance: Sequence[str],
) -> Report:  # fmt: skip
    """What a campaign's ``results.parquet`` shows, its workloads first."""
    runs = index_of(path)
    return Report(
        title="Node stealing for failed jobs: the evaluation again",
        lead=(
            "Y. Du, L. Marchal, G. Pallez, Y. Robert: Improving Batch Schedulers with Node "
            "Stealing for Failed Jobs, CCPE 2024. Sections 5 to 7, simulated by rebat; printed "
            "values beside ours where the paper prints them. Generated months have the paper's "
            "statistics, not its jobs: compare shapes, not digits."
        ),
        judgements=list(judgements(runs)),
        tables=[*workloads, *tables(runs)],
        pictures=[*pictures(runs), *more_pictures],
        provenance=provenance,
    )


REPORT = ReportMaker(report, True, an_hour)
