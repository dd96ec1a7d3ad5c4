# SPDX-License-Identifier: Apache-2.0
"""The report on batches on a torus: Table 1, Figures 2 to 4 and the claims of the paper.

References
----------
.. [1] I. Vardas, M. Ploumidis, M. Marazakis, "Exploring the impact of node failures on the resource
   allocation for parallel jobs", 2022, section 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rebat.papers.common.parts import Report, bracketed
from rebat.papers.torus import conventions
from rebat.papers.torus.batches import Batches, batches
from rebat.papers.torus.claims import judgements
from rebat.papers.torus.pictures import Lines, pictures
from rebat.papers.torus.published import Trace
from rebat.papers.torus.tables import tables

REMARKS = (
    "The paper does not list the boxes (partitions) from which FAPS and RPS choose. It only "
    "states that a heuristic finds a limited set of boxes without an exhaustive search. This "
    "report uses three lists: the 16 most cubic aligned boxes, all aligned boxes, and all boxes, "
    "including boxes that wrap around the edges. The policy called ceiling places a job on the "
    "nodes with the lowest failure probability, even if they form no box. No list of boxes can "
    "be better.",
    "The paper contains contradictions. Equation (1) as published is negative, and is smallest "
    "for the box with the highest failure probability. rebat uses the opposite sign. The paper "
    "states that benefits are larger for the smaller shape, but reports 23.5 % for shape 8 and "
    "79 % for shape 32. For a gain of 79 %, RPS must need at least 343,000 h for 72,000 h of "
    "work. On a new machine RPS needs this time only with shape 8. At scale 22000 h and shape 32 "
    "the benefit over RPS is 7.3 % in one sentence and 5.1 % in another.",
    "With the list of 16 boxes, rebat's gains are close to the small published gains (48 h, "
    "scale 22000 h). rebat's gain is close to the published 48 % (48 h, scale 5800 h) only with "
    "the list of all boxes. No single list reproduces both. On a new machine no list of boxes "
    "reaches 79 or 82 %. On a machine aged 438,000 h the list of all boxes reaches 79.8 % "
    "(docs/findings/torus.md).",
    "Claims are judged separately for each list, on the paper's torus (8x8x8x8) with its 1000 "
    "jobs and its repair time of 540 s. If a number is the largest or smallest of several "
    "values, its interval is wider, so that it is valid for all these values together "
    "(Bonferroni).",
)


def report(
    table: Path, laws: Mapping[str, Trace | None], densities: Lines, provenance: Sequence[str]
) -> Report:
    """Return the report of the batches in a campaign's ``results.parquet``.

    Parameters
    ----------
    laws : mapping
        For each trace, its mean scale (h) and mean shape, or None if its law is not the paper's.
    densities : mapping
        For each curve of Figure 2, its points: time (h) and density (1/h).
    """
    runs = Batches(batches(table), laws)
    shown = [*conventions.tables(runs), *tables(runs)]
    intervals = bracketed(row for table in shown for row in table.rows)
    return Report(
        title="Failure-aware placement on a torus: evaluation repeated",
        lead=(
            "I. Vardas, M. Ploumidis, M. Marazakis: Exploring the impact of node failures on the "
            "resource allocation for parallel jobs, 2022. This report simulates section 3: equal "
            f"jobs run one after another on a torus ({', '.join(runs.tori)}) whose nodes fail. "
            f"Values are means over seeds{' with 95 % confidence intervals' if intervals else ''}. "
            "Gains are paired by seed."
        ),
        remarks=REMARKS,
        judgements=list(judgements(runs)),
        tables=shown,
        pictures=list(pictures(runs, densities)),
        provenance=[*provenance, "means are over the completed seeds"],
        subject="trace",
        figures_note="Bars are means over seeds.",
        intervals_note="Whiskers are 95 % confidence intervals.",
    )
