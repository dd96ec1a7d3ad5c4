# SPDX-License-Identifier: Apache-2.0
"""Tables behave like lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.core import table
from rebat.core.nodes import NodeSet
from rebat.core.table import Ragged, Schema, Table, Texts, fields


class Item(msgspec.Struct):
    """An item with a number, texts with few and with many values, nodes, and changing fields."""

    number: int
    state: str
    name: str
    nodes: NodeSet | None = None
    later: int | None = 0
    note: str = ""
    more: dict[str, int] = {}


def items_of(columns: Any) -> Iterator[Item]:
    """Yield the items of rows."""
    later = [None if value < 0 else value for value in columns["later"]]
    more = [value or {} for value in columns["more"]]
    named = {**columns, "later": later, "more": more}
    return map(Item, *(named[name] for name in Item.__struct_fields__))


SCHEMA = Schema(
    Item, fields("number", "later"), fields("state", "note"), fields("name"), fields("more"),
    items_of,
)  # fmt: skip
NODES = st.none() | st.lists(st.integers(0, 200), min_size=1).map(NodeSet.of)
ITEMS = st.lists(
    st.builds(
        Item, st.integers(-(2**40), 2**40), st.sampled_from("abc"), st.text(), NODES,
        more=st.dictionaries(st.sampled_from("xy"), st.integers(0, 2)),
    )
)  # fmt: skip


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use blocks of three items."""
    monkeypatch.setattr(table, "BLOCK", 3)
    monkeypatch.setattr(table, "STEP", 2)


@given(items=ITEMS, data=st.data())
def test_a_table_is_a_list(items: list[Item], data: st.DataObject) -> None:
    """This holds if items change at any time."""
    ours, theirs = Table(SCHEMA), []
    for item in items:
        ours.append(msgspec.structs.replace(item))
        theirs.append(item)
        if data.draw(st.booleans()):
            place = data.draw(st.integers(0, len(theirs) - 1))
            later = data.draw(st.none() | st.integers(0, 2**40))
            changes: dict[str, Any] = {"later": later, "note": "x" * place, "more": {"z": place}}
            ours.amend(place, **changes)
            for name, value in changes.items():
                setattr(theirs[place], name, value)
        later = [-1 if item.later is None else item.later for item in theirs]
        assert ours.column("later").tolist() == later
    assert len(ours) == len(theirs)
    assert [*ours] == theirs
    assert ours == Table(SCHEMA, theirs)
    assert ours != Table(SCHEMA, [*theirs, Item(0, "a", "")])
    assert [ours[at] for at in range(-len(theirs), len(theirs))] == theirs * 2
    assert ours[1:7:2] == theirs[1:7:2]
    assert ours.column("number").tolist() == [item.number for item in theirs]
    values = ours.values("state")
    assert [values[code] for code in ours.column("state").tolist()] == [i.state for i in theirs]
    assert ours.having("state", "a", "c").tolist() == [item.state in "ac" for item in theirs]
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(items), max_size=len(items))))
    chosen = np.flatnonzero(mask)
    assert [*ours.where(mask)] == [theirs[at] for at in chosen]
    assert [*ours.texts("name", chosen)] == [theirs[at].name for at in chosen]
    assert [*ours.texts("name", slice(1, 4))] == [item.name for item in theirs[1:4]]
    assert [*ours.nodes().sets()] == [item.nodes for item in theirs]


@given(items=ITEMS)
def test_a_table_of_columns_has_the_same_items(items: list[Item]) -> None:
    items = [msgspec.structs.replace(item, more={}) for item in items]
    made = Table.of_columns(
        SCHEMA,
        {"number": [i.number for i in items], "later": 0, "note": 0,
         "state": ["abc".index(i.state) for i in items]},
        {"state": {"a": 0, "b": 1, "c": 2}, "note": {"": 0}},
        {"name": Texts.of([i.name for i in items])},
        Ragged.of([i.nodes for i in items]),
    )  # fmt: skip
    assert [*made] == items
    made.append(Item(1, "z", "new", later=2))
    assert [*made] == [*items, Item(1, "z", "new", later=2)]


def test_a_place_outside_is_an_error() -> None:
    items = Table(SCHEMA, [Item(1, "a", "")])
    for place in (1, -2):
        with pytest.raises(IndexError):
            items[place]
