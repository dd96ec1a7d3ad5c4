# SPDX-License-Identifier: Apache-2.0
"""The report of simulations on a torus: many jobs at once, of many sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rebat.papers.common.parts import Picture, Report
from rebat.papers.node_stealing.evidence import Evidence
from rebat.papers.torus.load_claims import judge
from rebat.papers.torus.load_tables import tables

LEAD = (
    "A. Vardas, M. Ploumidis, M. Marazakis: Exploring the Impact of Node Failures on the Resource "
    "Allocation for Parallel Jobs, 2022, place one job at a time on a torus. Here a whole machine "
    "is scheduled, with jobs of many sizes at once that wait for boxes to be free. So what the "
    "paper says is held against another question than it asks."
)
REMARKS = (
    "Intervals are of 95 % (Student's t) over the seeds of the failures; workloads are the same "
    "for every seed. Differences are taken on the same failures. A claim holds by the sign of the "
    "mean difference; where its interval holds 0, the seeds do not decide.",
    "The head of the queue is blocked while it asks for no more nodes than are up and free. Box "
    "waste are nodes of boxes that were not asked for; they are idle.",
)


def report(table: Path, pictures: Iterable[Picture], provenance: Sequence[str]) -> Report:
    """What a campaign's ``results.parquet`` shows.

    Raises
    ------
    InputError
        When there are no results to report.
    """
    evidence = Evidence(table)
    return Report(
        title="Boxes on a torus for many jobs at once: what they cost, and what foresight gains",
        lead=LEAD,
        judgements=list(judge(evidence)),
        tables=list(tables(evidence)),
        pictures=list(pictures),
        provenance=provenance,
        remarks=REMARKS,
        subject="workload and failures",
        figures_note="A machine at one date: a cell is an allocation unit, whichever it is.",
    )
