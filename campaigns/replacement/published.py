# SPDX-License-Identifier: Apache-2.0
"""Published values of section V of Prabhakaran et al. 2018. Shares are from 0 to 1."""

from __future__ import annotations

MIXED, MALLEABLE_RIGID, MOLDABLE_RIGID = "mixed", "malleable-rigid", "moldable-rigid"
"""The workloads of Table III, as campaigns name them."""

RISES: dict[str, dict[str, float]] = {
    MIXED: {"baseline": 0.18, "pra": 0.06, "pwa": 0.11, "dbes": 0.05},
    MOLDABLE_RIGID: {"sa": 0.11},
}
"""Relative increase of the makespan due to failures, without replacement (sections V-A, V-C)."""

RISES_REPLACED: dict[str, dict[str, float]] = {MOLDABLE_RIGID: {"sa": 0.02}}
"""Relative increase of the makespan due to failures, with replacement (section V-C)."""

SOURCES: dict[str, dict[str, float]] = {
    MOLDABLE_RIGID: {"by_idle": 0.62, "requeued": 0.18, "by_restart": 0.20}
}
"""Sources of replacements, as shares (section V-C, Figure 9)."""

UTILISATION: dict[str, float] = {MOLDABLE_RIGID: 0.65}
"""Useful utilisation (section V-C)."""

AFFECTED, REQUEUED = 220, 8
"""Number of jobs that failures affect under DBES (mixed workload), and number of these jobs that
are requeued if moldable jobs may not start over (section V-A).
"""

FIGURES: dict[str, tuple[str, str]] = {
    MIXED: ("Figure 4", "Figure 5"),
    MALLEABLE_RIGID: ("Figure 6", "Figure 7"),
    MOLDABLE_RIGID: ("Figure 8", "Figure 9"),
}
"""Figures of the makespans and of the sources of replacements, by workload."""

WORDS = {
    "baseline": "rigid", "sa": "SA", "pra": "PRA", "pwa": "PWA", "dbes": "DBES",
    "easy": "rigid, EASY", "greedy": "rigid, greedy", "sfsj": "stealing", "h111": "stealing",
}  # fmt: skip
"""Names of the policies in the paper."""
