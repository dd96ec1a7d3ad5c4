# SPDX-License-Identifier: Apache-2.0
"""Published values of RR-9296."""

from __future__ import annotations

from typing import NamedTuple

from rebat.models.resilient import HEURISTICS


class PrintedRatio(NamedTuple):
    """Published ratios of a heuristic at one failure probability, over the 30 days of June 2019."""

    average: float
    deviation: float
    maximum: float


LEAST_JOBS = 66
"""Minimum number of jobs on the paper's days: June 2019 has 66 to 277 jobs a day (section 5.1)."""

PRINTED_FAILURES = {0.0: 0.0, 0.05: 15.2913, 0.1: 254.453}
"""Average number of failures by average failure probability (Table 1)."""

_TABLE_1: dict[float, tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]] = {
    # Table 1 (LPT): average ratio, standard deviation, maximum ratio, by heuristic.
    0.0: (
        (1.067, 1.051, 1.051, 1.407, 1.441),
        (8.78e-2, 8.19e-2, 8.23e-2, 1.29e-1, 1.45e-1),
        (1.425, 1.425, 1.425, 1.633, 1.760),
    ),
    0.05: (
        (1.031, 1.049, 1.061, 1.129, 1.141),
        (6.72e-2, 6.87e-2, 7.76e-2, 1.30e-1, 1.40e-1),
        (1.278, 1.292, 1.292, 1.489, 1.510),
    ),
    0.1: (
        (1.016, 1.025, 1.028, 1.071, 1.073),
        (4.66e-2, 4.54e-2, 4.97e-2, 1.03e-1, 1.06e-1),
        (1.249, 1.224, 1.245, 1.398, 1.413),
    ),
}

PRINTED = {
    (q, heuristic): PrintedRatio(*(column[place] for column in columns))
    for q, columns in _TABLE_1.items()
    for place, heuristic in enumerate(HEURISTICS)
}

ABOVE_OVER_Q = {"R-LIST-Q": [(0.5, 26.0)], "R-SHELF-NB": [(0.9, 15.0)]}
"""Figure 4(a), section 5.2: (average failure probability, % above R-LIST-0)."""

ABOVE_OVER_PROCS = {"R-LIST-Q": [(15_000.0, 23.0)]}
"""Figure 4(b), section 5.2: (number of processors, % above R-LIST-0)."""
