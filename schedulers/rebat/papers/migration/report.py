# SPDX-License-Identifier: Apache-2.0
"""The report of job migration: Figures 3 and 4, Tables 1 and 2 and the statements of the paper,
what it says of drains and eternal jobs, and energy, defragmentation and proactive migration beyond.

References
----------
.. [1] M. Rodríguez-Pascual, J. Cao, J. A. Moríñigo, G. Cooperman, R. Mayo-García, "Job migration
   in HPC clusters by means of checkpoint/restart", The Journal of Supercomputing, 2019, section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rebat.papers.common.parts import Picture, Report, ReportMaker, Table
from rebat.papers.migration import answers, beyond, claims, pictures, printed, tables
from rebat.papers.migration.compaction import migration_pictures
from rebat.papers.migration.published import CORES, TABLE_1_S
from rebat.papers.migration.runs import index_of

LEAD = (
    "M. Rodríguez-Pascual, J. Cao, J. A. Moríñigo, G. Cooperman, R. Mayo-García: Job migration in "
    "HPC clusters by means of checkpoint/restart, 2019. Section 4, simulated by rebat: random days "
    "of a cluster of eight nodes of 16 cores, whose jobs may be checkpointed and go on elsewhere, "
    "at the cost that Table 1 prints. The paper shows one day of each load; here are means over "
    "several. Then what it names and does not measure, and what it does not name."
)


def _seconds(memory_mb: int) -> str:
    of = TABLE_1_S[memory_mb]
    return f"{of[1]:g} to {of[CORES]:g} s for 1 to {CORES} tasks of {memory_mb} MB"


REMARKS = (
    "The days are drawn from the laws that the paper names; the means of the run times and of the "
    "numbers of cores stand in its figures only and are chosen here, so that without migration the "
    "share of mixed nodes is about the paper's. The listings of its two algorithms are lost too: "
    "compaction empties one node each minute while nothing waits, all of whose jobs go to one "
    "other; with several targets they go wherever there is room. Node time is of 24 hours, "
    "integrated exactly; the paper looks every 5 s.",
    "Intervals are of 95 % (Student's t) over the seeds of the workloads, or of the failures where "
    "there are any. Differences are paired by seed. An interval is left out where all seeds agree. "
    "With five seeds or more a printed value is called inside where our interval holds it. The "
    "paper's are of a single day: near is one that is not inside, but where 95 % of single days of "
    "ours would lie if they were normal. Of the changes in Table 2 at 90 % no sign is judged: the "
    "paper calls the percentages roughly the same.",
    "The cost of migrations is in core-seconds: the seconds of Table 1 that a job pays as it goes "
    "on, times its cores. Divided by the number of migrations it is core-seconds each, not seconds "
    f"of a job: these are {_seconds(100)}, {_seconds(1000)}. "
    "Energy goes by three numbers, the watts of a node asleep, empty and full, that nobody "
    "measured (axis power).",
)


def report(
    path: Path, workloads: Sequence[Table], more_pictures: Sequence[Picture],
    provenance: Sequence[str],
) -> Report:  # fmt: skip
    """What a campaign's ``results.parquet`` shows, its workloads first."""
    index = index_of(path)
    return Report(
        title="Job migration by checkpoint and restart: the evaluation again",
        lead=LEAD,
        remarks=(*REMARKS, *answers.answers(index)),
        judgements=[*claims.judgements(index), *printed.judgements(index)],
        tables=[*workloads, *tables.tables(index), *beyond.tables(index)],
        pictures=[*pictures.pictures(index), *more_pictures],
        provenance=provenance,
        subject="about",
        figures_note="Bars are means over seeds, whiskers their 95 % intervals. Of the cores of a "
        "cluster, what moves is in strong colours, with its number.",
    )


REPORT = ReportMaker(report, False, lambda units: migration_pictures())
