# SPDX-License-Identifier: Apache-2.0
"""Published values of Vardas et al. 2022. A trace is identified by its mean scale (h) and shape."""

from __future__ import annotations

from typing import NamedTuple

Trace = tuple[float, float]


class PublishedRow(NamedTuple):
    """A row of Table 1: its number, and the published mean times to failure in hours."""

    number: int
    node_mttf_h: float
    system_mttf_h: float
    remark: str = ""


TABLE_1: dict[Trace, PublishedRow] = {
    (5800, 8): PublishedRow(1, 5462, 1.37),
    (5800, 32): PublishedRow(2, 5700, 1.42),
    (8500, 8): PublishedRow(3, 8004, 2.04),
    (8500, 32): PublishedRow(4, 8345, 2.13, "the paper swaps two digits: the mean is 8354"),
    (16000, 8): PublishedRow(5, 15068, 4.04),
    (16000, 32): PublishedRow(6, 15726, 4.27),
    (22000, 8): PublishedRow(7, 20718, 5.36, "the paper swaps two digits: 5.63"),
    (22000, 32): PublishedRow(8, 21623, 5.72),
}

FIGURES: dict[float, tuple[str, int]] = {
    22000: ("Figure 3", 256), 5800: ("Figure 4", 256), 16000: ("section 3, not drawn there", 512),
}  # fmt: skip
"""By scale of the law: the figure of the completion times, and the number of nodes of its jobs."""

TORUS, JOBS, REPAIR_S = "8x8x8x8", 1000, 540.0
"""Torus, number of jobs and repair time of every batch (section 3)."""

SIZE = 256
LINEAR, RPS = "slurm-linear", "rps"

GAINS: dict[tuple[Trace, float, str], tuple[float, ...]] = {
    ((22000, 32), 48, LINEAR): (0.014,),
    ((22000, 32), 48, RPS): (0.016,),
    ((22000, 32), 72, LINEAR): (0.063,),
    ((22000, 32), 72, RPS): (0.073, 0.051),
    ((22000, 8), 72, RPS): (0.056,),
    ((5800, 8), 48, LINEAR): (0.468,),
    ((5800, 8), 48, RPS): (0.484,),
    ((5800, 8), 72, RPS): (0.235,),
    ((5800, 32), 72, RPS): (0.79,),
}
"""The gains of FAPS published in section 3, by trace, duration (h) and compared policy.

For 5.6, 5.1, 23.5 and 79 %, the paper states no duration. rebat compares these with its runs of the
longest jobs.
"""

LARGEST_GAIN = 0.82
"""The largest published gain (abstract and section 5)."""
