# SPDX-License-Identifier: Apache-2.0
"""The report on node replacement: Figures 4 to 9 and the claims of the paper.

Other tables vary the parameters that the paper leaves open, and compare replacement with stealing.

References
----------
.. [1] S. Prabhakaran, M. Neumann, F. Wolf, "Efficient Fault Tolerance through Dynamic Node
   Replacement", 2018, sections IV and V.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rebat.report.parts import Picture, Report, ReportMaker, Table

from . import choices, claims, pictures, spares, stealing, tables
from .runs import index_of
from .small_run import replacement_pictures

LEAD = (
    "S. Prabhakaran, M. Neumann, F. Wolf: Efficient Fault Tolerance through Dynamic Node "
    "Replacement, 2018. This report simulates section V: workloads of rigid, moldable and "
    "malleable jobs on a machine with about one node failure per hour and no checkpoint cost. The "
    "paper shows one run per case. Values here are medians over several workloads, each with its "
    "own failures."
)
REMARKS = (
    "The workloads are drawn from the distributions published in the paper. The workloads of the "
    "paper itself are not available. The paper leaves several parameters open: the arrival of "
    "jobs, the accuracy of estimates, the distributions of failures and repairs, and the "
    "decisions of DBES. rebat chooses these parameters. The tables of open parameters show the "
    "effect of changing some of these parameters, one at a time.",
    "Values are paired: a workload with failures is compared with the same workload without "
    "failures, and policies are compared under the same failures. Each source of replacements "
    "(for example idle nodes) is a share of all attempts that a failure hits. The paper does not "
    "state whether it counts jobs, attempts or processors.",
    "The 95 % interval of a median is between two of the sorted values: for ten values, between "
    "the 2nd and the 9th. For fewer than six values there is no interval. This report does not "
    "use means, because a mean can depend mostly on a single workload: a job that needs nearly "
    "all processors waits until nearly every node is repaired, and repair times have a heavy "
    "tail.",
)


def report(
    path: Path,
    workloads: Sequence[Table],
    more_pictures: Sequence[Picture],
    provenance: Sequence[str],
) -> Report:
    """Return the report of a campaign's ``results.parquet``. The tables of workloads come first."""
    runs = index_of(path)
    varied = list(choices.choices(runs))
    sentences = [*(text for _, text in varied), *stealing.answers(runs)]
    return Report(
        title="Dynamic node replacement: evaluation repeated",
        lead=LEAD,
        remarks=(*REMARKS, *sentences),
        judgements=[
            *claims.judgements(runs),
            *spares.judgements(runs),
            *stealing.judgements(runs),
        ],
        tables=[
            *workloads,
            *tables.tables(runs),
            *spares.tables(runs),
            *(table for table, _ in varied),
            *stealing.tables(runs),
        ],
        pictures=[*pictures.pictures(runs), *more_pictures],
        provenance=provenance,
        figures_note="Bars are medians over seeds.",
        intervals_note="Whiskers are 95 % intervals.",
    )


REPORT = ReportMaker(report, False, lambda units: replacement_pictures())
