# SPDX-License-Identifier: Apache-2.0
"""What a checkpoint and restart of a job costs: Table 1 of Rodríguez-Pascual, Cao, Moríñigo,
Cooperman and Mayo-García, "Job migration in HPC clusters by means of checkpoint/restart", 2019,
and other models.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from rebat.core.errors import InputError
from rebat.core.units import to_us

TASKS = (1, 2, 4, 8, 16, 32, 64, 128)
MEMORY_MB = (50.0, 100.0, 1000.0)
"""Memory of each task."""

PURGE_S = 60.0
"""The interval at which Slurm purges jobs (PURGE_JOB_INTERVAL) when Table 1 was measured."""

OVERHEAD_S = np.array(
    [
        [51, 53, 89], [51, 54, 97], [52, 55, 115], [53, 59, 144],
        [56, 66, 202], [52, 79, 343], [66, 98, 398], [99, 157, 608],
    ],
    dtype=float,
)  # fmt: skip
"""Seconds by tasks (rows) and memory (columns), as printed: half of the interval of 60 s at which
Slurm purges jobs is in each."""

USUAL_MB = 100.0
"""Of simulated jobs, whose memory is not known."""

MOST = 1e6
"""Larger numbers are taken for mistakes."""


def overhead_s(n_tasks: int, memory_mb: float = USUAL_MB) -> float:
    """Seconds for one checkpoint and restart, all included.

    Bilinear in the logarithm of the tasks and the memory of each, between the sizes that were
    measured; beyond them as at the nearest one.

    >>> overhead_s(16, 100), overhead_s(16, 550), round(overhead_s(24, 100), 3)
    (66.0, 134.0, 73.605)
    """
    rows = np.log2(np.array(TASKS, dtype=float))
    row = float(np.interp(math.log2(max(1, n_tasks)), rows, np.arange(len(TASKS))))
    column = float(np.interp(memory_mb, MEMORY_MB, np.arange(len(MEMORY_MB))))
    i, j = min(int(row), len(TASKS) - 2), min(int(column), len(MEMORY_MB) - 2)
    across = OVERHEAD_S[:, j] * (1 - (column - j)) + OVERHEAD_S[:, j + 1] * (column - j)
    return float(across[i] * (1 - (row - i)) + across[i + 1] * (row - i))


class Image(NamedTuple):
    """What is saved and restored: so many tasks, each of so many MB (None: not known), under a
    Slurm that purges jobs every so many seconds."""

    n_tasks: int
    memory_mb: float | None = None
    purge_s: float = PURGE_S


def _table_s(usual_mb: float, image: Image) -> float:
    memory_mb = usual_mb if image.memory_mb is None else image.memory_mb
    return overhead_s(image.n_tasks, memory_mb) + (image.purge_s - PURGE_S) / 2


def _bandwidth_s(mb_per_s: float, image: Image) -> float:
    memory_mb = USUAL_MB if image.memory_mb is None else image.memory_mb
    return 2 * image.n_tasks * memory_mb / mb_per_s + image.purge_s / 2


class CostModel(NamedTuple):
    """Seconds by a number and an image; ``usual`` is the number where none is given, and None where
    one must be; ``least`` the smallest."""

    seconds: Callable[[float, Image], float]
    usual: float | None
    least: float
    words: str


COSTS: dict[str, CostModel] = {
    "table": CostModel(_table_s, USUAL_MB, 0.0, "table, or table*MB of each task unless told"),
    "constant": CostModel(lambda seconds, image: seconds, None, 0.0, "constant*SECONDS"),
    "bandwidth": CostModel(_bandwidth_s, None, 1e-3, "bandwidth*MB_PER_S"),
}
"""Table 1 with half of another purge interval; always the same; all memory written and read back at
a speed that the tasks share, and half a purge interval."""


@lru_cache(maxsize=4096)
def cost_us(
    text: str, n_tasks: int, memory_mb: float | None = None, purge_s: float = PURGE_S
) -> int:
    """What a text says of a cost, for a job of so many tasks, in microseconds.

    ``text`` is a row of ``COSTS`` with its number, or a number alone: seconds. ``memory_mb`` is
    that of a task (None: not told), ``purge_s`` the interval at which jobs are purged.

    >>> cost_us("3.5", 16), cost_us("table*1000", 128), cost_us("table", 1, 1000.0, 300.0)
    (3500000, 608000000, 209000000)
    >>> cost_us("bandwidth*200", 16, 1000.0)
    190000000

    Raises
    ------
    InputError
        For anything else.
    """
    model, number = read_cost(text)
    return to_us(COSTS[model].seconds(number, Image(n_tasks, memory_mb, purge_s)))


def read_cost(text: str) -> tuple[str, float]:
    """The model of a text and its number; see `cost_us`."""
    name, times, rest = text.partition("*")
    if not times and name not in COSTS:
        name, rest = "constant", text
    usual = COSTS[name].usual if name in COSTS else None
    try:
        value = usual if not rest and not times else float(rest)
    except ValueError:
        value = None
    if name not in COSTS or value is None or not COSTS[name].least <= value <= MOST:
        words = ", ".join(model.words for model in COSTS.values())
        raise InputError(f"cost {text!r}", expected=f"seconds, {words}; up to {MOST:g}")
    return name, value
