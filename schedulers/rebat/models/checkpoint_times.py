# SPDX-License-Identifier: Apache-2.0
"""Time that attempts spend to write checkpoints (section 5.2 of Du et al. 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rebat.models.checkpoint import NEVER, Accounting, Checkpointing

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Patterns(NamedTuple):
    """The checkpointing of each attempt, as int64 arrays of shape (n,).

    Attempts without checkpoints have the values of `NEVER`.
    """

    which: Ints
    """For each attempt, the index of its checkpointing in ``distinct``."""
    distinct: Sequence[Checkpointing | None]
    period_us: Ints
    cost_us: Ints
    first_period_us: Ints
    first_recovery_us: Ints
    closing: Ints
    """1 if a checkpoint also ends an incomplete last period, otherwise 0."""
    light: Ints
    """1 if the attempt writes light checkpoints, otherwise 0."""

    @classmethod
    def of(cls, which: Ints, distinct: Sequence[Checkpointing | None]) -> Patterns:
        """Return the patterns of attempts.

        ``which`` contains, for each attempt, the index of its checkpointing in ``distinct``.
        """
        rows = [_numbers(each or NEVER) for each in distinct]
        table = np.array(rows, dtype=np.int64).reshape(-1, len(cls._fields) - 2).T
        return cls(which, distinct, *table.take(which, axis=1))

    def take(self, rows: Ints) -> Patterns:
        """Return the patterns of an array of rows."""
        which, distinct, *columns = self
        return Patterns(which[rows], distinct, *(column[rows] for column in columns))

    @property
    def cycle_us(self) -> Ints:
        """T + C."""
        return self.period_us + self.cost_us


def _numbers(c: Checkpointing) -> tuple[int, ...]:
    light = c.light is not None
    return c.period_us, c.cost_us, c.first_period_us, c.first_recovery_us, c.closing, light


def checkpoint_times_us(
    c: Patterns, until_us: Ints, length_us: Ints, ended: Bools, accounting: Accounting
) -> Ints:
    """Return the checkpoint time (us) in the first ``until_us`` of each attempt's progress.

    Parameters
    ----------
    until_us : int64 array, shape (n,)
        The part of the progress to examine, after the recovery, in microseconds.
    length_us : int64 array, shape (n,)
        The total progress after the recovery, in microseconds.
    ended : bool array, shape (n,)
        Whether the job completed with this attempt, possibly with a closing checkpoint.
    """
    closes = ended & (c.closing != 0)
    written = (until_us > c.first_period_us) | (closes & (until_us > length_us - c.cost_us))
    rows = np.flatnonzero(written | (c.light != 0))
    time_us = np.zeros_like(until_us)
    if len(rows):
        of_rows = until_us[rows], length_us[rows], closes[rows]
        time_us[rows] = _deep_us(c.take(rows), *of_rows, accounting)
    for at in rows[c.light[rows] != 0].tolist():
        pattern = c.distinct[c.which[at]]
        assert pattern is not None
        time_us[at] += _light_us(pattern, int(until_us[at] - time_us[at]))
    return time_us


def checkpoint_time_us(
    c: Checkpointing | None, until_us: int, length_us: int, ended: bool, accounting: Accounting
) -> int:
    """Return the checkpoint time of one attempt in microseconds; see `checkpoint_times_us`.

    >>> c = Checkpointing(100, 10, 7, first_period_us=100)
    >>> [checkpoint_time_us(c, 160, 160, True, how) for how in ("exact", "program")]
    [20, 10]
    >>> checkpoint_time_us(c, 155, 160, True, "exact")
    15
    """
    pattern = Patterns.of(np.zeros(1, dtype=np.int64), [c])
    until, length = (np.array([us], dtype=np.int64) for us in (until_us, length_us))
    return int(checkpoint_times_us(pattern, until, length, np.array([ended]), accounting)[0])


def _light_us(c: Checkpointing, worked_us: int) -> int:
    """Return the time of light checkpoints. ``worked_us`` does not include regular checkpoints.

    With a single light tier, the times between light checkpoints are counted from the start of the
    attempt.
    """
    assert c.light is not None
    if len(c.light.tiers) == 1:
        return c.light.written_us(worked_us)
    begin_us = c.period_us - c.first_period_us
    return c.light.written_us(begin_us + worked_us) - c.light.written_us(begin_us)


def _deep_us(
    c: Patterns, until_us: Ints, length_us: Ints, closes: Bools, accounting: Accounting
) -> Ints:
    """Return the time of regular checkpoints; see `checkpoint_times_us`.

    ``closes`` is a mask of the attempts that end with a closing checkpoint.
    """
    n_complete = np.maximum(0, length_us - c.first_period_us + c.period_us) // c.cycle_us
    after_us = c.first_period_us + (n_complete - 1) * c.cycle_us + c.cost_us
    last_us = np.where(n_complete > 0, after_us, 0)
    complete_us = n_complete * c.cost_us
    if accounting == "program":
        return np.where(until_us <= last_us, _regular_us(c, until_us), complete_us)
    period_us = np.where(n_complete > 0, c.period_us, c.first_period_us)
    closing_us = np.minimum(period_us, np.maximum(0, length_us - last_us - c.cost_us))
    period_us = np.where(closes, closing_us, period_us)
    beyond_us = complete_us + np.maximum(0, until_us - last_us - period_us)
    return np.where(until_us <= last_us, _regular_us(c, until_us), beyond_us)


def _regular_us(c: Patterns, until_us: Ints) -> Ints:
    """Return the time of the checkpoints that end complete periods."""
    cycles, position_us = np.divmod(until_us - c.first_period_us, c.cycle_us)
    time_us = cycles * c.cost_us + np.minimum(position_us, c.cost_us)
    return np.where(until_us <= c.first_period_us, 0, time_us)
