# SPDX-License-Identifier: Apache-2.0
"""Published values from section 4 of Rodríguez-Pascual et al. 2019. Shares are from 0 to 1."""

from __future__ import annotations

LOADS: dict[str, int] = {"load-25": 25, "load-50": 50, "load-75": 75, "load-90": 90}
"""Workloads of Figures 1 to 4 by load, in percent of the core time.

The names are those in campaigns.
"""

WIDE: dict[str, int] = {"wide-75": 75, "wide-90": 90}
"""Workloads of Table 2 by load in percent. In rebat, their jobs use more cores."""

MEMORY_MB: dict[str, int] = {"memory-50": 1000}
"""Memory per task in MB, for workloads in which it differs from `USUAL_MB`."""

USUAL_MB = 100
"""Memory per task in MB. The paper does not report it for its workloads."""

MIXED: dict[int, tuple[float, float]] = {
    25: (0.338, 0.282),
    50: (0.535, 0.417),
    75: (0.528, 0.420),
    90: (0.305, 0.223),
}
"""Share of node time in mixed nodes, without and with compaction, by load (Figure 4)."""

STATES = ("empty", "mixed", "full")

FIGURE_3_LOAD = 50
FIGURE_3: dict[str, tuple[float, float]] = {
    "empty": (0.281, 0.319),
    "mixed": (0.535, 0.417),
    "full": (0.184, 0.264),
}
"""Share of node time at `FIGURE_3_LOAD`, without and with compaction, by state (Figure 3)."""

TABLE_1_S: dict[int, dict[int, float]] = {
    100: {1: 53, 2: 54, 4: 55, 8: 59, 16: 66},
    1000: {1: 89, 2: 97, 4: 115, 8: 144, 16: 202},
}
"""Seconds of a complete checkpoint and restart, by MB per task and number of tasks, for jobs that
fit on one node (Table 1).
"""

CORES = 16
"""Cores per node (section 4)."""

LONGEST_S = TABLE_1_S[USUAL_MB][CORES]
"""Seconds of a complete checkpoint and restart of a job that fills a node (Table 1)."""

TABLE_2: dict[int, dict[str, dict[str, tuple[float, float]]]] = {
    75: {
        "low": {"empty": (0.2033, 0.1924), "mixed": (0.4349, 0.4833), "full": (0.3618, 0.3243)},
        "high": {"empty": (0.0106, 0.0105), "mixed": (0.7336, 0.6731), "full": (0.2558, 0.3164)},
    },
    90: {
        "low": {"empty": (0.0772, 0.0772), "mixed": (0.3165, 0.3685), "full": (0.6063, 0.5543)},
        "high": {"empty": (0.0125, 0.0125), "mixed": (0.5756, 0.5802), "full": (0.4119, 0.4073)},
    },
}
"""Share of node time without and with migration, by load, partition and state (Table 2)."""

WAITING_FACTOR = sum(1 / n for n in range(1, CORES + 1))
"""The harmonic number H_16. If each of 16 cores runs a separate job with an exponential run time of
mean T, the node is empty after T times this factor on average. (Section 4.2 does not state how long
a node takes to empty.)
"""
