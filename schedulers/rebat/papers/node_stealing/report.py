# SPDX-License-Identifier: Apache-2.0
"""The report of simulations: sections 5 to 7 of Du, Marchal, Pallez, Robert 2024."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rebat.papers.common.parts import Picture, Report, ReportMaker, Table, bracketed
from rebat.papers.node_stealing.claims import judgements
from rebat.papers.node_stealing.pictures import an_hour, pictures
from rebat.papers.node_stealing.runs import index_of
from rebat.papers.node_stealing.tables import tables


def report(
    path: Path,
    workloads: Sequence[Table],
    more_pictures: Sequence[Picture],
    provenance: Sequence[str],
) -> Report:
    """Return the report of a campaign's ``results.parquet``. The tables of workloads come first."""
    runs = index_of(path)
    own = list(tables(runs))
    drawn = bracketed(row for table in own for row in table.rows)
    return Report(
        title="Node stealing for failed jobs: evaluation repeated",
        lead=(
            "Y. Du, L. Marchal, G. Pallez, Y. Robert: Improving Batch Schedulers with Node "
            "Stealing for Failed Jobs, CCPE 2024. This report simulates sections 5 to 7 and "
            "shows the published values next to those of rebat. Generated months have the "
            "statistics of the paper's workloads, but other jobs. So compare trends, not exact "
            "values. Policies follow either the text of the paper (as in the paper) or the "
            "authors' program (as in the program). If a month was generated several times, means "
            f"{'and intervals ' if drawn else ''}are over the generated months."
        ),
        judgements=list(judgements(runs)),
        tables=[*workloads, *own],
        pictures=[*pictures(runs), *more_pictures],
        provenance=provenance,
    )


REPORT = ReportMaker(report, True, an_hour)
