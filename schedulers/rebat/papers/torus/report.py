# SPDX-License-Identifier: Apache-2.0
"""The report of batches on a torus: Table 1, Figures 2 to 4 and the statements of the paper.

References
----------
.. [1] I. Vardas, M. Ploumidis, M. Marazakis, "Exploring the impact of node failures on the resource
   allocation for parallel jobs", 2022, section 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rebat.papers.common.parts import Report
from rebat.papers.torus.batches import Batches, batches
from rebat.papers.torus.claims import judgements
from rebat.papers.torus.pictures import Lines, pictures
from rebat.papers.torus.published import Trace
from rebat.papers.torus.tables import tables

REMARKS = (
    "Which partitions FAPS and RPS choose from, the paper does not say (a limited set, from a "
    "heuristic that is no exhaustive search). So there are three lists: the 16 most cubic aligned "
    "boxes, all aligned ones, and all boxes that wrap around. The ceiling takes the least "
    "hazardous nodes wherever they are: no list of partitions can do better.",
    "Where the paper contradicts itself. Equation (1) as printed is negative, and its least value "
    "belongs to the partition most likely to fail; its sign is put right here. Benefits are said "
    "to be larger for the smaller shape, but 23.5 % is printed for shape 8 and 79 % for shape 32; "
    "79 % over RPS needs an RPS of at least 343,000 h for 72,000 h of work, which only shape 8 "
    "comes to. At scale 22000 h and shape 32 the benefit over RPS is 7.3 % in one sentence and "
    "5.1 % in another. Small gains (48 h, scale 22000 h) fit a short list, 48 % (48 h, scale "
    "5800 h) only the list of all boxes: no one list gives both. The 79 and 82 % come from no list "
    "of boxes. Printed shares are judged with five seeds or more.",
    "What the paper says is judged on its torus, 8x8x8x8, with its 1000 jobs and its repair of 540 "
    "s, for every list by itself. Beside our value stands half its 95 % confidence interval over "
    "seeds, of differences paired by seed; where the value is the largest or smallest of several, "
    "the interval is widened so that all have theirs at once (Bonferroni).",
)


def report(
    table: Path, laws: Mapping[str, Trace | None], densities: Lines, provenance: Sequence[str]
) -> Report:
    """What a campaign's ``results.parquet`` shows of batches.

    Parameters
    ----------
    table : Path
    laws : mapping
        Of every trace its mean scale (h) and mean shape, if it could be one of the paper's.
    densities : mapping
        The curves of Figure 2: points (h, 1/h) by name.
    provenance : sequence of str

    Raises
    ------
    InputError
        When there are no results to report.
    """
    runs = Batches(batches(table), laws)
    return Report(
        title="Partitions that foresee failures: the evaluation again",
        lead=(
            "I. Vardas, M. Ploumidis, M. Marazakis: Exploring the impact of node failures on the "
            "resource allocation for parallel jobs, 2022. Section 3, simulated by rebat: equal "
            f"jobs one after another on a torus ({', '.join(runs.tori)}) whose nodes fail. "
            "Means over seeds, with "
            "95 % confidence intervals; gains are paired by seed."
        ),
        remarks=REMARKS,
        judgements=list(judgements(runs)),
        tables=list(tables(runs)),
        pictures=list(pictures(runs, densities)),
        provenance=[*provenance, "means are over the seeds that are done"],
        subject="trace",
        figures_note="Bars are means over seeds, whiskers 95 % confidence intervals.",
    )
