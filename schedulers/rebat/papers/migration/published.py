# SPDX-License-Identifier: Apache-2.0
"""What section 4 of Rodríguez-Pascual et al. 2019 prints. Shares are fractions of 1."""

from __future__ import annotations

LOADS: dict[str, int] = {"load-25": 25, "load-50": 50, "load-75": 75, "load-90": 90}
"""Workloads of Figures 1 to 4, as campaigns name them, by load in percent of the core time."""

WIDE: dict[str, int] = {"wide-75": 75, "wide-90": 90}
"""Those of Table 2; their jobs are wider here."""

MEMORY_MB: dict[str, int] = {"memory-50": 1000}
"""Of a task, in workloads where it is not `USUAL_MB`; the paper does not say it of its own."""

USUAL_MB = 100

MIXED: dict[int, tuple[float, float]] = {
    25: (0.338, 0.282),
    50: (0.535, 0.417),
    75: (0.528, 0.420),
    90: (0.305, 0.223),
}
"""Load -> share of node time that is mixed, without and with compaction (Figure 4)."""

STATES = ("empty", "mixed", "full")

FIGURE_3_LOAD = 50
FIGURE_3: dict[str, tuple[float, float]] = {
    "empty": (0.281, 0.319),
    "mixed": (0.535, 0.417),
    "full": (0.184, 0.264),
}
"""State -> share of node time at that load, without and with compaction (Figure 3)."""

TABLE_1_S: dict[int, dict[int, float]] = {
    100: {1: 53, 2: 54, 4: 55, 8: 59, 16: 66},
    1000: {1: 89, 2: 97, 4: 115, 8: 144, 16: 202},
}
"""MB of a task -> tasks -> seconds of a checkpoint and restart, all included, of jobs that fit on
one node (Table 1)."""

CORES = 16
"""Of a node (section 4)."""

LONGEST_S = TABLE_1_S[USUAL_MB][CORES]
"""What a checkpoint and restart of a job takes that fills a node, all included (Table 1)."""

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
"""Load -> partition -> state -> share of node time, without and with migration (Table 2)."""

WAITING_FACTOR = sum(1 / n for n in range(1, CORES + 1))
"""A node on which each core runs a job of its own, memoryless and of mean length T, gets empty
after T times this in the mean: the harmonic number H_16. Section 4.2 prints no duration."""
