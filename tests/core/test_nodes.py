# SPDX-License-Identifier: Apache-2.0
"""Packed node sets are equal to the original sets."""

from __future__ import annotations

import pytest

from rebat.core.nodes import NodeSet


@pytest.mark.parametrize("text", ["", "0", "0-3 5 7-9", "4294967296-4294967299"])
def test_a_packed_set_is_the_same(text: str) -> None:
    plain, packed = NodeSet.parse(text), NodeSet.parse(text)
    packed.pack()
    packed.pack()
    assert packed == plain
    if plain.size and plain.lowest < 2**31:
        assert len(packed._packed) == 8 * len(plain.intervals)
        assert packed.intervals is not packed.intervals  # intervals are unpacked each time
    assert (str(packed), packed.size, list(packed)) == (str(plain), plain.size, list(plain))
    assert packed.intervals.dtype == plain.intervals.dtype
