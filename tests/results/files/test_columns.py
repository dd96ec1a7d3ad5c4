# SPDX-License-Identifier: Apache-2.0
"""The cells of result files equal Python's own formatting of each value."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from rebat.core.formatting import csv_line
from rebat.core.nodes import NodeSet
from rebat.core.table import Ragged, Texts
from rebat.core.units import to_s
from rebat.results.files.tables import (
    Column,
    Names,
    Nodes,
    Reals,
    Seconds,
    Whole,
    Words,
    csv_lines,
    csv_parts,
    plain_columns,
)

INTS = st.integers(-(2**62), 2**62)
FLOATS = st.floats(allow_infinity=False) | st.integers(-(10**9), 10**9).map(lambda n: n / 128)
NODES = st.none() | st.lists(st.integers(0, 10**6), min_size=1).map(NodeSet.of)
ROWS = st.lists(st.tuples(INTS, INTS, FLOATS, st.text(), st.sampled_from(["", "=a", "b,"]), NODES))


def lines_of(columns: dict[str, Column], n: int) -> list[str]:
    """Return the lines, which together are the text of the file."""
    lines = [*csv_lines(columns, n)]
    assert b"".join(csv_parts(columns, n)).decode() == "".join(f"{line}\n" for line in lines)
    return lines


def cell(value: Any) -> Any:
    """Return a value in the form in which it is written."""
    if isinstance(value, float):
        return "" if math.isnan(value) else _Number(f"{value:.6f}")
    return "" if value is None else str(value) if isinstance(value, NodeSet) else value


class _Number(float):
    """A float that is printed as it is written."""

    def __new__(cls, text: str) -> _Number:
        made = super().__new__(cls, text)
        made.text = text
        return made

    def __str__(self) -> str:
        return self.text


@given(rows=ROWS)
@example(rows=[(-1, 2**53 + 1, 0.0000005, "", "", None), (0, -1, -0.0, "x", "=a", None)])
@example(rows=[(0, 0, 7.5e-6 + n * 1e-6, "x", "", None) for n in range(9)])
def test_cells_are_as_python_writes_them(rows: list[tuple[Any, ...]]) -> None:
    whole, us, reals, texts, words, nodes = map(list, zip(*rows, strict=True)) if rows else [[]] * 6
    distinct = ["b,", "", "=a"]
    time_us, n = np.array(us, dtype=np.int64), len(rows)
    columns: dict[str, Column] = {
        "whole": Whole(np.array(whole, dtype=np.int64)),
        "seconds": Seconds(time_us),
        "later": Seconds(time_us, time_us < 0),
        "real": Reals(np.array(reals, dtype=np.float64)),
        "nodes": Nodes(Ragged.of(nodes)),
        "name": Names(lambda part: Texts.of(texts[part])),
        "word": Words(np.array(list(map(distinct.index, words)), dtype=np.int64), distinct),
        "more": Nodes(Ragged.of(nodes)),
    }
    values = [
        (w, to_s(s), None if s < 0 else to_s(s), r, nodes, t, word, nodes)
        for w, s, r, t, word, nodes in rows
    ]
    expected = [csv_line(map(cell, row)).removesuffix("\n") for row in values]
    assert lines_of(columns, n) == [",".join(columns), *expected]
    plain = plain_columns(columns, slice(0, n))
    for name, written in zip(columns, zip(*values, strict=True), strict=False):
        for ours, value in zip(plain[name], written, strict=True):
            theirs = float(f"{value:.6f}") if isinstance(value, float) else value
            if isinstance(theirs, NodeSet) or name in ("nodes", "more"):
                assert ours == str(theirs or "")
            elif name in ("later", "real") and (theirs is None or math.isnan(theirs)):
                assert math.isnan(ours)
            elif name in ("seconds", "later"):
                assert ours == value
            else:
                assert ours == theirs


def test_parts_of_wide_rows_are_short() -> None:
    """The text of a file does not depend on its division into parts."""
    n = 40_000
    columns: dict[str, Column] = {
        "name": Names(lambda part: Texts.of(["x" * 5000] * len(range(n)[part]))),
        "number": Whole(np.arange(n)),
    }
    for at, line in enumerate(csv_lines(columns, n)):
        assert at == 0 or line == "x" * 5000 + f",{at - 1}"
