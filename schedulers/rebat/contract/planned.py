# SPDX-License-Identifier: Apache-2.0
"""The planned starts of queued attempts. A policy reports them if the run records its plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.contract.view import View
from rebat.core.units import FOREVER_US

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

NO_START = FOREVER_US
"""The planned start of an attempt without a reservation."""

_NOBODY: Ints = np.empty(0, dtype=np.int64)
_NOWHERE: Flags = np.empty(0, dtype=np.bool_)


class PlannedStarts(msgspec.Struct):
    """Planned starts of the queued attempts, in queue order. Arrays of shape (n,), times in us.

    Attributes
    ----------
    serials : int64 array
        ``Attempt.serial`` of each attempt.
    sizes : int64 array
        Number of nodes of each attempt.
    durations_us : int64 array
        Planned duration of each attempt.
    starts_us : int64 array
        Planned start of each attempt, or NO_START if it has no reservation.
    behind : int64 array
        For each attempt, the serial number of the attempt that must start before it, or -1 if there
        is none. If the policy does not start attempts in order, the array is empty.
    placeless : bool array
        Whether the free nodes have no suitable place for the attempt, for example no free box. If
        attempts fit whenever enough nodes are free, the array is empty.
    """

    serials: Ints
    sizes: Ints
    durations_us: Ints
    starts_us: Ints
    behind: Ints = msgspec.field(default_factory=lambda: _NOBODY)
    placeless: Flags = msgspec.field(default_factory=lambda: _NOWHERE)

    def describes(self, view: View) -> bool:
        """Return whether the arrays have consistent lengths, and describe attempts of the view.

        The attempts may include those that the plan has started.
        """
        columns = self.serials, self.sizes, self.durations_us, self.starts_us
        shape = (len(self.serials),)
        serials = [attempt.serial for attempt in view.queue.values()]
        serials += [running.attempt.serial for running in view.running.values()]
        return (
            all(column.dtype == np.int64 and column.shape == shape for column in columns)
            and all(len(extra) in (0, *shape) for extra in (self.behind, self.placeless))
            and bool(np.isin(self.serials, serials).all())
        )

    @classmethod
    def of(cls, view: View, starts_us: Mapping[str, int]) -> PlannedStarts:
        """Return the planned starts of the view's queue.

        Parameters
        ----------
        starts_us : mapping
            Planned start in microseconds by id of the attempt. Other attempts have no reservation.
        """
        rows = [
            (a.serial, a.n_nodes, a.walltime_us, starts_us.get(a.id, NO_START))
            for a in view.queue.values()
        ]
        table = np.array(rows, dtype=np.int64).reshape(len(rows), 4)
        serials, sizes, durations_us, given_us = (np.ascontiguousarray(row) for row in table.T)
        return cls(serials, sizes, durations_us, given_us)


def joined(tables: Sequence[PlannedStarts]) -> PlannedStarts:
    """Return the planned starts of all partitions.

    An attempt that waits although enough nodes are free has no place in its partition.
    """
    names = "serials", "sizes", "durations_us", "starts_us"
    columns = (np.concatenate([getattr(table, name) for table in tables]) for name in names)
    starts = PlannedStarts(*columns)
    starts.placeless = np.ones(len(starts.serials), dtype=np.bool_)
    return starts
