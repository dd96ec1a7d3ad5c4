# SPDX-License-Identifier: Apache-2.0
"""Either all requested nodes are taken, or none."""

from __future__ import annotations

import numpy as np
import pytest

from rebat.core.nodes import NodeSet
from rebat.models.node_pool import NodePool


@pytest.mark.parametrize(("asked", "obstacle"), [("0-5", 3), ("140-299", 200), ("290-310", 300)])
def test_what_cannot_be_taken_whole_leaves_all_as_it_was(asked: str, obstacle: int) -> None:
    """Of 300 nodes, node 3 is held and node 200 is down."""
    pool = NodePool(300)
    assert pool.take(NodeSet.parse("3"), 7) == -1
    pool.fail(NodeSet.parse("200"))
    before = pool.owner.copy(), pool.n_free
    assert pool.take(NodeSet.parse(asked), 8) == obstacle
    assert np.array_equal(pool.owner, before[0]) and pool.n_free == before[1] == 298
    assert pool.lowest(298) == NodeSet.parse("0-2 4-199 201-299")
