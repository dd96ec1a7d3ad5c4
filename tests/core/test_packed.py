# SPDX-License-Identifier: Apache-2.0
"""Packed sequences behave like lists."""

from __future__ import annotations

import errno
import os
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.core import packed
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.packed import Packed, Packing


class Item(msgspec.Struct, array_like=True):
    """An item with a number, a text with few values, nodes, and a number that changes later."""

    number: int
    state: str
    nodes: NodeSet | None = None
    later: int = 0
    note: str = ""


PACKING = Packing(Item, ("number", "later"), ("state",))
NODES = st.none() | st.lists(st.integers(0, 200)).map(NodeSet.of)
ITEMS = st.lists(st.builds(Item, st.integers(-(2**40), 2**40), st.sampled_from("abc"), NODES))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use blocks of three items, and files in memory of at most 100 bytes."""
    monkeypatch.setattr(packed, "BLOCK", 3)
    monkeypatch.setattr(packed, "MOST_BYTES", 100)


@given(items=ITEMS, data=st.data())
def test_a_packed_sequence_is_a_list(items: list[Item], data: st.DataObject) -> None:
    """This holds if items change at any time."""
    ours, theirs = Packed(PACKING), []
    for item in items:
        ours.append(msgspec.structs.replace(item))
        theirs.append(item)
        if data.draw(st.booleans()):
            place = data.draw(st.integers(0, len(theirs) - 1))
            changes: dict[str, Any] = {"later": data.draw(st.integers(0, 9)), "note": "x" * place}
            ours.amend(place, **changes)
            for name, value in changes.items():
                setattr(theirs[place], name, value)
        assert ours.column("later").tolist() == [item.later for item in theirs]
    assert len(ours) == len(theirs)
    assert [*ours] == theirs
    assert ours == Packed(PACKING, theirs)
    assert ours != Packed(PACKING, [*theirs, Item(0, "a")])
    assert [ours[at] for at in range(-len(theirs), len(theirs))] == theirs * 2
    assert ours[1:7:2] == theirs[1:7:2]
    assert ours.column("number").tolist() == [item.number for item in theirs]
    values = ours.values("state")
    assert [values[code] for code in ours.column("state").tolist()] == [i.state for i in theirs]
    assert ours.having("state", "a", "c").tolist() == [item.state in "ac" for item in theirs]
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(items), max_size=len(items))))
    assert [*ours.where(mask)] == [theirs[at] for at in np.flatnonzero(mask)]


def test_a_place_outside_is_an_error() -> None:
    items = Packed(PACKING, [Item(1, "a")])
    for place in (1, -2):
        with pytest.raises(IndexError):
            items[place]


def test_a_full_disk_is_an_error_of_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    items = Packed(PACKING, [Item(1, "a"), Item(2, "a")])

    def full(content: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(items._file, "write", full)
    with pytest.raises(InputError, match=r"No space left on device.*TMPDIR"):
        items.append(Item(3, "a"))
