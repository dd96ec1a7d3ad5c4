# SPDX-License-Identifier: Apache-2.0
"""Tables that show which published gains of FAPS are reproduced under each convention.

A *convention* is a pair of assumptions: the age of the machine, and the end of the failure trace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rebat.report.claims import INSIDE, NEAR, OUTSIDE, place_of
from rebat.report.parts import Table
from rebat.results.intervals import interval, spread

from .batches import LISTS, Batches
from .published import GAINS, LINEAR, RPS, SIZE

_OVER = {LINEAR: "Slurm-linear", RPS: "RPS"}


def tables(batches: Batches) -> Iterator[Table]:
    """Yield two tables: how many published gains each convention reproduces, and all gains."""
    if len(batches.conventions) > 1:
        yield _counts(batches)
        yield _gains(batches)


def _rows(batches: Batches) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Yield rows: convention, list of boxes, and cells for the published gains.

    A cell contains rebat's gain and the verdict on the published gain.
    """
    for convention in batches.conventions:
        runs = batches.under(convention)
        label = next(s for s in batches.settings if (s.begin_s, s.trace_end_s) == convention)
        for which in LISTS:
            cells = []
            for (trace, hours, over), shares in GAINS.items():
                gain = interval(runs.faps_gains(trace, SIZE, hours, which, over))
                for share in shares:
                    place = place_of(gain, share) if gain else ""
                    cells.append((spread(gain, "{:.1%}".format), place))
            if any(place for _, place in cells):
                yield label.convention, which, cells


def _counts(batches: Batches) -> Table:
    rows = []
    for convention, which, cells in _rows(batches):
        counts = Counter(place for _, place in cells)
        rows.append([convention, which, *(str(counts[p]) for p in (INSIDE, NEAR, OUTSIDE))])
    rows.sort(key=lambda row: (-int(row[2]), -int(row[3]), row[0], row[1]))
    columns = ["convention", "list", "inside", "near", "outside"]
    title = "published gains that each pair of assumptions explains, best first"
    return Table("not in the paper", title, columns, rows)


def _gains(batches: Batches) -> Table:
    heads = [
        f"scale {scale:g} h, shape {shape:g}, {hours:g} h, over {_OVER[over]} ({share:.1%})"
        for ((scale, shape), hours, over), shares in GAINS.items()
        for share in shares
    ]
    rows = [
        [convention, which, *(f"{gain} {place}".strip() for gain, place in cells)]
        for convention, which, cells in _rows(batches)
    ]
    title = "gains of FAPS for each pair of assumptions; published values in the headings"
    return Table("section 3", title, ["convention", "list", *heads], rows)
