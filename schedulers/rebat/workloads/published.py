# SPDX-License-Identifier: Apache-2.0
"""Published numbers of workloads, each with its source.

Source of the months: Du, Marchal, Pallez, Robert, "Improving batch schedulers with node stealing
for failed jobs", 2024. The traces belong to ALCF and are not included.
"""

from __future__ import annotations

import msgspec

SIZE_BOUNDS = (1, 2, 8, 32, 128, 512, 2048, 8192, 32768)
"""Lower bounds of the half-open size intervals of Table 2.

The last interval contains jobs of at least 2^15 nodes. Jobs of the entire machine are not included;
they have a separate column.
"""


class PublishedMonth(msgspec.Struct, frozen=True, kw_only=True):
    """The published numbers of a month of a machine.

    Attributes
    ----------
    machine : str
    year, month : int
        Calendar month (section 5.2).
    n_days : int
        Length of the month in days.
    n_nodes : int
        Number of nodes of the machine (section 5.2).
    cap : int
        Number of nodes to which jobs that request the entire machine are reduced (section 5.2).
    class_counts : tuple of int
        Jobs per interval of ``SIZE_BOUNDS``, then jobs of the entire machine (Table 2).
    stress : float
        Node time requested by all jobs, divided by the node time of the month (section 5.2).
    min_s, max_s, mean_s, median_s : int
        Run times in seconds (Table 3). The paper publishes maximum, mean and median in hours with
        two decimals, so their precision is 18 s.
    """

    machine: str
    year: int
    month: int
    n_days: int
    n_nodes: int
    cap: int
    class_counts: tuple[int, ...]
    stress: float
    min_s: int
    max_s: int
    mean_s: int
    median_s: int

    @property
    def n_jobs(self) -> int:
        """Number of jobs (Table 2, total; also Table 3)."""
        return sum(self.class_counts)

    @property
    def length_s(self) -> int:
        """Length of the month in seconds."""
        return self.n_days * 86_400


PUBLISHED_MONTHS = {
    "june-2017": PublishedMonth(
        machine="Mira", year=2017, month=6, n_days=30, n_nodes=49_152, cap=49_000,
        class_counts=(8, 2, 6, 10, 74, 2103, 809, 269, 22, 8), stress=0.8963,
        min_s=55, max_s=179_568, mean_s=9_504, median_s=3_168,  # 49.88 h, 2.64 h, 0.88 h
    ),
    "march-2018": PublishedMonth(
        machine="Mira", year=2018, month=3, n_days=31, n_nodes=49_152, cap=49_000,
        class_counts=(31, 3, 6, 69, 117, 2481, 923, 350, 31, 13), stress=0.9778,
        min_s=26, max_s=86_472, mean_s=10_044, median_s=3_852,  # 24.02 h, 2.79 h, 1.07 h
    ),
    "intrepid-june-2013": PublishedMonth(
        machine="Intrepid", year=2013, month=6, n_days=30, n_nodes=40_960, cap=40_900,
        class_counts=(0, 0, 0, 0, 0, 2001, 574, 362, 31, 2), stress=0.8955,
        min_s=26, max_s=169_488, mean_s=9_180, median_s=1_512,  # 47.08 h, 2.55 h, 0.42 h
    ),
}  # fmt: skip

SYNTHETIC_NODES = 128
"""Platform of the synthetic workload (section 6.3)."""

SYNTHETIC_COUNTS = {1: 504, 2: 198, 4: 108, 8: 65, 16: 55, 32: 42, 64: 28}
"""Jobs by size (Table 6)."""

SYNTHETIC_RUN_S = (60.0, 7_140.0)
"""Range of the uniform run times: 1 to 119 minutes (section 6.3)."""

SYNTHETIC_ALPHA = (1.0, 5.0)
"""Range of the uniform ratio walltime / run time (section 6.3)."""

SYNTHETIC_INTERARRIVAL_S = 174.0
"""Mean of the exponential times between arrivals (section 6.3)."""

PARTITION_WEIGHTS = {
    1: {1: 1.0},
    2: {2: 0.5, 4: 0.5},
    8: {8: 0.5, 16: 0.5},
    32: {32: 0.3, 64: 0.7},
    128: {128: 0.4, 256: 0.6},
    512: {512: 0.57, 1024: 0.43},
    2048: {2048: 0.9, 4096: 0.1},
    8192: {8192: 0.76, 12288: 0.02, 16384: 0.20, 24576: 0.02},
    32768: {32768: 1.0},
}
"""Assumption: shares of Blue Gene partition sizes within an interval of Table 2. The weights from
512 up are rounded from Mira's jobs of November 2018."""
