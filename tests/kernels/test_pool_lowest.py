# SPDX-License-Identifier: Apache-2.0
"""The lowest nodes of a mask, compared with a list."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rebat.policies.placement.choosers import Request, lowest


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(1, 12))
def test_the_lowest_nodes_of_a_mask(free: list[bool], count: int) -> None:
    plain = [node for node, is_free in enumerate(free) if is_free][:count]
    chosen = lowest(np.array(free), Request(count, 1), None)
    assert (None if chosen is None else list(chosen)) == (plain if len(plain) == count else None)
