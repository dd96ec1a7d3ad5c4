# SPDX-License-Identifier: Apache-2.0
"""The state of a machine at one time of a run."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rebat.core.units import FOREVER_US
from rebat.figures.torus import DOWN, FREE
from rebat.models.boxes import TorusBlocks
from rebat.session.ledger import Ledger

Ints = npt.NDArray[np.int64]


def owners(ledger: Ledger, blocks: TorusBlocks, at_us: int) -> Ints:
    """Return, per block, the serial of its job at a time, or FREE or DOWN, shape (blocks,)."""
    nodes = np.full(blocks.of_nodes.n_nodes, FREE, dtype=np.int64)
    for record in ledger.attempts:
        if record.nodes is not None and record.start_us <= at_us < record.end_us:
            nodes[list(record.nodes)] = record.attempt.job_serial
    for node, down_us, up_us in ledger.node_events.outages(FOREVER_US).rows():
        if down_us <= at_us < up_us:
            nodes[node] = DOWN
    table = nodes[blocks.members]
    of_blocks: Ints = np.where((table == DOWN).any(axis=1), DOWN, table.max(axis=1))
    return of_blocks
