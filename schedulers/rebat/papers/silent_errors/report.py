# SPDX-License-Identifier: Apache-2.0
"""The report on silent errors: Figures 2 to 6, Table 1 and the claims of RR-9296.

References
----------
.. [1] A. Benoit, V. Le Fèvre, P. Raghavan, Y. Robert, H. Sun, "Design and comparison of resilient
   scheduling heuristics for parallel jobs", Inria RR-9296, 2020 (hal-02317464), Section 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rebat.papers.common.parts import Report
from rebat.papers.silent_errors.claims import judge_synthetic
from rebat.papers.silent_errors.day_claims import judge_days
from rebat.papers.silent_errors.day_pictures import day_pictures
from rebat.papers.silent_errors.pictures import synthetic_pictures
from rebat.papers.silent_errors.sets import JobSets
from rebat.papers.silent_errors.tables import synthetic_tables, table_1

STALE_REMARK = (
    "The report has results for two kinds of reservations. Whenever a job ends, Algorithm 1 "
    "deletes all reservations and computes them again. The authors' public program never deletes "
    "a reservation. A failed job therefore waits behind all earlier reservations, and some "
    "processors stay idle although Algorithm 1 would use them. With these stale reservations the "
    "makespan of R-LIST-Q is about 25 % longer than that of R-LIST-0 at q-bar = 0.5, as in "
    "Figure 4(a) of the paper. With Algorithm 1 the difference is smaller. The published figures "
    "therefore seem to come from the program. This is not proven, because the inputs of the "
    "figures are not published."
)


def report(
    table: Path, synthetic: Sequence[str], days: Sequence[str], provenance: Sequence[str]
) -> Report:
    """Return the report of the synthetic job sets and of the days in ``results.parquet``."""
    sets = JobSets(table)
    synthetic = [name for name in synthetic if name in sets.settings]
    days = [name for name in days if name in sets.settings]
    return Report(
        title="Resilient list and shelf scheduling: evaluation repeated",
        lead=(
            "A. Benoit, V. Le Fèvre, P. Raghavan, Y. Robert, H. Sun: Design and comparison of "
            "resilient scheduling heuristics for parallel jobs, Inria RR-9296, 2020. This report "
            "simulates section 5. Values are makespans divided by their lower bounds, averaged "
            "over failure scenarios and job sets. Job sets are synthetic, or come from other "
            "days than those of the paper. So compare trends, not exact values."
        ),
        remarks=[STALE_REMARK],
        judgements=[
            *(j for name in synthetic for j in judge_synthetic(sets, name)),
            *(j for name in days for j in judge_days(sets, name)),
        ],
        tables=[
            *(t for name in synthetic for t in synthetic_tables(sets, name)),
            *(table_1(sets, name) for name in days),
        ],
        pictures=[
            *(p for name in synthetic for p in synthetic_pictures(sets, name)),
            *(p for name in days for p in day_pictures(sets, name)),
        ],
        provenance=[*provenance, "means are over the completed job sets"],
        subject="job sets",
        figures_note="Points are means over failure scenarios. In Figures 2 to 4 they are also "
        "means over job sets.",
    )
