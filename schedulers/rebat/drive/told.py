# SPDX-License-Identifier: Apache-2.0
"""The jobs of a conversation with Batsim, for the ledger."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rebat.core.attempts import job_name, workload_name
from rebat.core.table import Texts
from rebat.drive.outcome import Rows, coded, states_of
from rebat.state import tables
from rebat.state.rows import array_of

Ints = npt.NDArray[np.int64]


class Told:
    """The jobs in the messages that a `Wire` has received (see `outcome.Source`)."""

    def __init__(self, wire: Any) -> None:
        self._wire, self.machine = wire, wire.machine
        self.limits, self.windows, self.orders = wire.limits, wire.windows, wire.orders
        self.ids = Texts.of(map(job_name, wire.submitted))
        self.order = np.arange(len(wire.submitted))
        self.table = array_of(tables.Job, wire.state.jobs)
        self.workloads: dict[Any, int] = {}
        names = [*map(workload_name, wire.submitted)]
        self.workload_of = np.array(coded(self.workloads, names), dtype=np.int64)
        self.recovery = wire.recovery
        self.kinds, self.kind_of = wire.kinds, self.table["profile"]
        self.causes = [*wire.causes]
        self._blocks = [*wire.links.rows]

    def job_id(self, j: int) -> str:
        return str(self._wire.submitted[j])

    def blocking(self, block: int) -> str:
        return job_name(self._blocks[block])

    def profiles(self, rows: Rows) -> tuple[Ints, dict[Any, int]]:
        values: dict[Any, int] = {}
        names = [self._wire.profile_of[a] for a in rows.records.tolist()]
        return np.array(coded(values, names), dtype=np.int64), values

    def states(self, rows: Rows) -> tuple[Ints, dict[Any, int]]:
        usual, values = states_of(rows.cause)
        names = {code: state for state, code in values.items()}
        own = self._wire.states
        pairs = zip(rows.records.tolist(), usual.tolist(), strict=True)
        states = coded(values, [own.get(a, names[code]) for a, code in pairs])
        return np.array(states, dtype=np.int64), values

    def failures(self, rows: Rows) -> tuple[Ints, Any]:
        hits = [self._wire.hits.get(a) for a in rows.records.tolist()]
        causes = np.array([hit[1] if hit else 0 for hit in hits], dtype=np.int64)
        since_us = [
            hit[0] if hit else end for hit, end in zip(hits, rows.end_us.tolist(), strict=True)
        ]
        return causes, rows.end_us - np.array(since_us, dtype=np.int64)
