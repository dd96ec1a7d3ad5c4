# SPDX-License-Identifier: Apache-2.0
"""The report of node replacement: Figures 4 to 9 and the statements of the paper, the choices that
it leaves open, and replacement against stealing.

References
----------
.. [1] S. Prabhakaran, M. Neumann, F. Wolf, "Efficient Fault Tolerance through Dynamic Node
   Replacement", 2018, sections IV and V.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rebat.papers.common.parts import Picture, Report, ReportMaker, Table
from rebat.papers.replacement import choices, claims, pictures, stealing, tables
from rebat.papers.replacement.runs import index_of
from rebat.papers.replacement.small_run import replacement_pictures

LEAD = (
    "S. Prabhakaran, M. Neumann, F. Wolf: Efficient Fault Tolerance through Dynamic Node "
    "Replacement, 2018. Section V, simulated by rebat: workloads of rigid, moldable and malleable "
    "jobs on a machine whose nodes fail about once an hour, without checkpointing costs. The paper "
    "shows one run of each; here are medians over several workloads, each with failures of its own."
)
REMARKS = (
    "The workloads are drawn from the laws that the paper prints, not its own; what it leaves open "
    "(how jobs arrive, how exact estimates are, how failures and repairs scatter, how DBES "
    "decides) is chosen here, and some of it varied, one by one, in the tables of choices.",
    "Values are paired: a workload with failures is compared with itself without, policies on the "
    "same failures. A source is counted once for every attempt that a failure hits; the paper "
    "does not say whether it counts jobs, attempts or processors. Printed values are judged with "
    "five seeds or more.",
    "Beside a median stand the order statistics between which the true one lies with 95 % (the 2nd "
    "and the 9th of ten values), or the least and the greatest of fewer than six. Means would "
    "tell of single workloads: a job that needs nearly all processors waits until nearly every "
    "node is repaired, and repairs have a heavy tail.",
)


def report(
    path: Path, workloads: Sequence[Table], more_pictures: Sequence[Picture],
    provenance: Sequence[str],
) -> Report:  # fmt: skip
    """What a campaign's ``results.parquet`` shows, its workloads first."""
    runs = index_of(path)
    varied = list(choices.choices(runs))
    sentences = [*(text for _, text in varied), *stealing.answers(runs)]
    return Report(
        title="Dynamic node replacement: the evaluation again",
        lead=LEAD,
        remarks=(*REMARKS, *sentences),
        judgements=[*claims.judgements(runs), *stealing.judgements(runs)],
        tables=[
            *workloads,
            *tables.tables(runs),
            *(one for one, _ in varied),
            *stealing.tables(runs),
        ],
        pictures=[*pictures.pictures(runs), *more_pictures],
        provenance=provenance,
        figures_note="Bars are medians over seeds, whiskers their intervals.",
    )


REPORT = ReportMaker(report, False, lambda units: replacement_pictures())
