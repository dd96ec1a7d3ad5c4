# SPDX-License-Identifier: Apache-2.0
"""The report of silent-error units: Figures 2 to 6 and Table 1 of RR-9296, and its claims.

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
    "Why two kinds of reservations: Algorithm 1 deletes all reservations and makes them anew at "
    "every completion, but the authors' public program never cancels a reservation, so a job that "
    "failed queues up behind every reservation given before and processors idle that Algorithm 1 "
    "fills. With those stale reservations R-LIST-Q stands some 25 % above R-LIST-0 at q-bar = 0.5, "
    "as the paper's Figure 4(a) has it; with Algorithm 1 as printed it does not. So the published "
    "figures seem to rest on the program, which is no proof: their inputs are not published."
)


def report(
    table: Path, synthetic: Sequence[str], days: Sequence[str], provenance: Sequence[str]
) -> Report:
    """What a campaign's ``results.parquet`` shows of job sets that were drawn, and of days."""
    sets = JobSets(table)
    synthetic = [name for name in synthetic if name in sets.settings]
    days = [name for name in days if name in sets.settings]
    return Report(
        title="Resilient list and shelf scheduling: the evaluation again",
        lead=(
            "A. Benoit, V. Le Fèvre, P. Raghavan, Y. Robert, H. Sun: Design and comparison of "
            "resilient scheduling heuristics for parallel jobs, Inria RR-9296, 2020. Section 5, "
            "simulated by rebat: makespans over their lower bounds, averaged over failure "
            "scenarios and job sets. Job sets are drawn or come from other days than the paper's: "
            "compare shapes, not digits."
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
        provenance=[*provenance, "means are over the job sets that are done"],
        subject="job sets",
        figures_note="Points are means over failure scenarios and, in Figures 2 to 4, job sets.",
    )
