"""What a checkpoint and restart of a job costs: Table 1 of Rodríguez-Pascual, Cao, Moríñigo,
Cooperman and Mayo-García, "Job migration in HPC clusters by means of checkpoint/restart", 2019.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from rebat.core.errors import InputError
from rebat.core.units import to_us

TASKS = (1, 2, 4, 8, 16, 32, 64, 128)
MEMORY_MB = (50.0, 100.0, 1000.0)
"""Memory of each task."""

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


def overhead_s(n_tasks: int, memory_mb: float = USUAL_MB) -> float:
    """Seconds for one checkpoint and restart, all included.

    Bilinear in the logarithm of the tasks and the memory of each, between the sizes that were
    measured; beyond them as at the nearest one.

    >>> overhead_s(16, 100), overhead_s(24, 100) > 66
    (66.0, True)
    """
    rows = np.log2(np.array(TASKS, dtype=float))
    row = float(np.interp(math.log2(max(1, n_tasks)), rows, np.arange(len(TASKS))))
    column = float(np.interp(memory_mb, MEMORY_MB, np.arange(len(MEMORY_MB))))
    i, j = min(int(row), len(TASKS) - 2), min(int(column), len(MEMORY_MB) - 2)
    across = OVERHEAD_S[:, j] * (1 - (column - j)) + OVERHEAD_S[:, j + 1] * (column - j)
    return float(across[i] * (1 - (row - i)) + across[i + 1] * (row - i))


@lru_cache(maxsize=4096)
def cost_us(text: str, n_tasks: int) -> int:
    """What is said of a cost, for a job of so many tasks, in microseconds.

    ``text`` is a number of seconds, 'table' or 'table*MEMORY' with the memory of a task in MB.

    >>> cost_us("3.5", 16), cost_us("table*1000", 128)
    (3500000, 608000000)

    Raises
    ------
    InputError
        For anything else.
    """
    name, times, memory = text.partition("*")
    try:
        value = float(memory if times else text) if name != "table" or times else USUAL_MB
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1e6 or (times and name != "table"):
        raise InputError(
            f"cost {text!r}", expected="seconds from 0 to 1e6, table, or table*MB (of each task)"
        )
    return to_us(overhead_s(n_tasks, value) if name == "table" else value)
