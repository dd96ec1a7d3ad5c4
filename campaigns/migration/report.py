# SPDX-License-Identifier: Apache-2.0
"""The report on job migration: Figures 3 and 4, Tables 1 and 2, and the claims of the paper.

The paper describes drains and eternal jobs, but does not measure them. Energy, defragmentation and
proactive migration are not in the paper.

References
----------
.. [1] M. Rodríguez-Pascual, J. Cao, J. A. Moríñigo, G. Cooperman, R. Mayo-García, "Job migration
   in HPC clusters by means of checkpoint/restart", The Journal of Supercomputing, 2019, section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rebat.report.parts import Picture, Report, ReportMaker, Table

from . import answers, beyond, claims, pictures, printed, tables
from .compaction import migration_pictures
from .published import CORES, TABLE_1_S
from .runs import index_of

LEAD = (
    "M. Rodríguez-Pascual, J. Cao, J. A. Moríñigo, G. Cooperman, R. Mayo-García: Job migration in "
    "HPC clusters by means of checkpoint/restart, 2019. This report simulates section 4: random "
    "days of a cluster of eight nodes with 16 cores each. Jobs can be checkpointed and restarted "
    "on other nodes, at the cost in Table 1. The paper shows one day per load. Values here are "
    "means over several days. The report also contains experiments that the paper names but does "
    "not measure, and experiments that are not in the paper."
)


def _seconds(memory_mb: int) -> str:
    of = TABLE_1_S[memory_mb]
    return f"{of[1]:g} to {of[CORES]:g} s for 1 to {CORES} tasks of {memory_mb} MB"


REMARKS = (
    "The days are drawn from the distributions that the paper names. The mean run time and the "
    "mean number of cores are only in figures of the paper, which are not available. rebat uses "
    "values with which the share of mixed nodes without migration is close to the paper's. The "
    "listings of the paper's two algorithms are not available either. In rebat, compaction "
    "empties one node per minute while no job waits. All jobs of this node move to one other "
    "node or, with several targets, to several nodes with enough free cores. Node time is "
    "measured over 24 hours. rebat computes it exactly, while the paper samples it every 5 s.",
    "Intervals are over the seeds of the workloads, or over the seeds of the failures if there are "
    "failures. Differences are paired by seed. No interval is shown if all seeds have the same "
    "value. The paper's values are from a single day. The direction of the changes in Table 2 at "
    "90 % is not judged, because the paper calls the percentages roughly the same.",
    "The cost of a migration is in core-seconds: the seconds of Table 1 that the job pays when "
    f"it continues, times its cores. The seconds in Table 1 are {_seconds(100)}, "
    f"{_seconds(1000)}. Energy depends on three assumed values, which are not measured: the power "
    "of a sleeping node, of an empty node and of a full node (axis power).",
)


def report(
    path: Path,
    workloads: Sequence[Table],
    more_pictures: Sequence[Picture],
    provenance: Sequence[str],
) -> Report:
    """Return the report of a campaign's ``results.parquet``. The tables of workloads come first."""
    index = index_of(path)
    return Report(
        title="Job migration by checkpoint and restart: evaluation repeated",
        lead=LEAD,
        remarks=(*REMARKS, *answers.answers(index)),
        judgements=[*claims.judgements(index), *printed.judgements(index)],
        tables=[*workloads, *tables.tables(index), *beyond.tables(index)],
        pictures=[*pictures.pictures(index), *more_pictures],
        provenance=provenance,
        subject="about",
        figures_note="Bars are means over seeds. In pictures of cores, jobs that move have strong "
        "colours and are numbered.",
        intervals_note="Whiskers are 95 % intervals.",
    )


REPORT = ReportMaker(report, False, lambda units: migration_pictures())
