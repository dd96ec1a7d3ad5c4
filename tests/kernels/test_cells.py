# SPDX-License-Identifier: Apache-2.0
"""Profiles of several cells are equal to a slow search over all steps."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rebat.kernels import cells, counts
from rebat.kernels.counts import NEVER

STEPS = st.lists(
    st.tuples(st.integers(1, 9), st.lists(st.integers(-1, 4), min_size=3, max_size=3)),
    min_size=1,
    max_size=8,
)


def slow_fit(t, f, size, duration, longest, order, closed, latest):
    """Return the earliest start and the nodes of each cell, or NEVER."""
    for i, at in enumerate(t):
        if at > latest:
            break
        steps = [j for j in range(i, len(t)) if j == i or t[j] < at + duration]
        low = {c: max(0, min(f[j][c] for j in steps)) for c in order}
        for cell, begin, end in closed:
            if any(begin <= second < end for second in range(at, at + longest)) and cell in low:
                low[cell] = 0
        if sum(low.values()) >= size:
            out, left = [0, 0, 0], size
            for c in order:
                out[c] = min(low[c], left)
                left -= out[c]
            return at, out
    return NEVER, None


@given(
    steps=STEPS,
    size=st.integers(1, 8),
    duration=st.integers(1, 30),
    order=st.permutations([0, 1, 2]).flatmap(
        lambda order: st.integers(1, 3).map(lambda n: order[:n])
    ),
    latest=st.sampled_from([0, 5, NEVER - 1]),
    closed=st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(1, 9)), max_size=3
    ),
    more=st.integers(0, 9),
)
def test_a_fit_is_the_earliest(steps, size, duration, order, latest, closed, more) -> None:
    t = np.cumsum([0, *(gap for gap, _ in steps[:-1])])
    f = np.array([free for _, free in steps], dtype=np.int64)
    out = np.zeros(3, dtype=np.int64)
    cells_of = np.array(order, dtype=np.int64)
    windows = [(cell, begin, begin + length) for cell, begin, length in closed]
    start = cells.fit(
        t, f, len(t), size, duration, duration + more, cells_of,
        np.array(windows, dtype=np.int64).reshape(-1, 3), latest, out,
    )  # fmt: skip
    expected, nodes = slow_fit(
        t.tolist(), f.tolist(), size, duration, duration + more, order, windows, latest
    )
    assert start == expected
    assert nodes is None or out.tolist() == nodes


@given(
    changes=st.lists(
        st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(-3, 3), st.booleans()),
        max_size=12,
    ),
    now=st.integers(0, 20),
)
def test_changes_add_up(changes, now) -> None:
    """The profile of each time is the sum of the changes that contain it."""
    t, f, n = np.zeros(64, dtype=np.int64), np.zeros((64, 2), dtype=np.int64), 1
    expected = np.zeros((60, 2), dtype=np.int64)
    for start, length, delta, forever in changes:
        end = NEVER if forever else start + length
        nodes = np.array([delta, 1], dtype=np.int64)
        n = cells.change(t, f, n, start, end, nodes, 1)
        expected[start : min(end, 60)] += nodes
    n = counts.forget(t, f, n, now)
    assert t[0] == now and (np.diff(t[:n]) > 0).all()
    for time in range(now, 60):
        step = np.searchsorted(t[:n], time, side="right") - 1
        assert f[step].tolist() == expected[time].tolist()
