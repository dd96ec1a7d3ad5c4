# SPDX-License-Identifier: Apache-2.0
"""Node sets that a table stores are equal to the original sets."""

from __future__ import annotations

import pytest

from rebat.core.nodes import NodeSet
from rebat.core.table import Ragged


@pytest.mark.parametrize("text", ["0", "0-3 5 7-9", "4294967296-4294967299"])
def test_a_stored_set_is_the_same(text: str) -> None:
    plain = NodeSet.parse(text)
    (stored,) = Ragged.of([plain]).sets()
    assert stored is not None
    assert stored == plain
    assert (str(stored), stored.size, list(stored)) == (str(plain), plain.size, list(plain))
    assert stored.intervals.dtype == plain.intervals.dtype
    assert str(plain) == text
