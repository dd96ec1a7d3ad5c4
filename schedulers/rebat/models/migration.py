# SPDX-License-Identifier: Apache-2.0
"""Models of the time to checkpoint and restart a job.

One of the models is Table 1 of Rodríguez-Pascual, Cao, Moríñigo, Cooperman and Mayo-García, "Job
migration in HPC clusters by means of checkpoint/restart", 2019.
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
"""Memory of a task in MB: the columns of Table 1."""

PURGE_S = 60.0
"""Slurm's PURGE_JOB_INTERVAL in seconds when Table 1 was measured."""

OVERHEAD_S = np.array(
    [
        [51, 53, 89],
        [51, 54, 97],
        [52, 55, 115],
        [53, 59, 144],
        [56, 66, 202],
        [52, 79, 343],
        [66, 98, 398],
        [99, 157, 608],
    ],
    dtype=float,
)
"""Table 1: seconds by tasks (rows) and memory (columns), including half a purge interval."""

USUAL_MB = 100.0
"""Default memory of a task of a simulated job, in MB."""

MOST = 1e6
"""Maximum of a number in the text of a cost."""


def overhead_s(n_tasks: int, memory_mb: float = USUAL_MB) -> float:
    """Return the total time of a checkpoint and restart in seconds (Table 1).

    Between the measured sizes, values are interpolated linearly in the logarithm of the number of
    tasks and in the memory of a task. Outside the measured range, the nearest measured size is
    used.

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
    """The properties of a job's image (its checkpoint), and Slurm's purge interval.

    Attributes
    ----------
    n_tasks : int
        Number of tasks.
    memory_mb : float, optional
        Memory of each task in MB. None if it is unknown.
    purge_s : float
        Slurm's PURGE_JOB_INTERVAL in seconds.
    """

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
    """A model of the time (s) to checkpoint and restart a job with an image.

    Attributes
    ----------
    seconds : callable
        Function that returns the cost. Its arguments are the parameter of the model (a number) and
        the image.
    usual : float, optional
        Default of the parameter, or None if the parameter is required.
    least : float
        Minimum of the parameter.
    words : str
        Syntax, for error messages.
    """

    seconds: Callable[[float, Image], float]
    usual: float | None
    least: float
    words: str


COSTS: dict[str, CostModel] = {
    "table": CostModel(
        _table_s, USUAL_MB, 0.0, "table, or table*MB with the default memory of a task"
    ),
    "constant": CostModel(lambda seconds, image: seconds, None, 0.0, "constant*SECONDS"),
    "bandwidth": CostModel(_bandwidth_s, None, 1e-3, "bandwidth*MB_PER_S"),
}
"""table: Table 1, adjusted to the purge interval. constant: the same time for all images.
bandwidth: the time to write and read the memory of all tasks at a total speed, plus half a purge
interval.
"""


@lru_cache(maxsize=4096)
def cost_us(
    text: str, n_tasks: int, memory_mb: float | None = None, purge_s: float = PURGE_S
) -> int:
    """Return the cost of a checkpoint and restart that a text describes, in microseconds.

    ``text`` is a number of seconds, or a key of ``COSTS`` with the parameter of the model
    (``table*1000``). ``memory_mb`` is the memory of a task, or None if it is unknown. ``purge_s``
    is Slurm's PURGE_JOB_INTERVAL in seconds.

    >>> cost_us("3.5", 16), cost_us("table*1000", 128), cost_us("table", 1, 1000.0, 300.0)
    (3500000, 608000000, 209000000)
    >>> cost_us("bandwidth*200", 16, 1000.0)
    190000000
    """
    model, number = read_cost(text)
    return to_us(COSTS[model].seconds(number, Image(n_tasks, memory_mb, purge_s)))


def read_cost(text: str) -> tuple[str, float]:
    """Return the name of the cost model in ``text``, and its parameter (see `cost_us`)."""
    name, times, number = text.partition("*")
    if not times and name not in COSTS:
        name, number = "constant", text
    default = COSTS[name].usual if name in COSTS else None
    try:
        value = default if not number and not times else float(number)
    except ValueError:
        value = None
    if name not in COSTS or value is None or not COSTS[name].least <= value <= MOST:
        words = ", ".join(model.words for model in COSTS.values())
        expected = f"seconds, {words}; numbers up to {MOST:g}"
        raise InputError(f"invalid cost {text!r}", expected=expected)
    return name, value
