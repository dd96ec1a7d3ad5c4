# SPDX-License-Identifier: Apache-2.0
"""Profiles of several cells are equal to a slow search over all steps."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rebat.core.traits import Traits
from rebat.drive.parts import whole_machine
from rebat.drive.site_windows import SiteWindows
from rebat.kernels import cell_plan
from rebat.kernels.counts import NEVER
from rebat.rules.by_value import arrays_of
from rebat.state import rooms, tables
from rebat.state.rows import zeros

STEPS = st.lists(
    st.tuples(st.integers(1, 9), st.lists(st.integers(-1, 4), min_size=3, max_size=3)),
    min_size=1,
    max_size=8,
)


NODES = st.lists(st.integers(0, 4), min_size=3, max_size=3)


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
    windows = [(cell, begin, begin + length) for cell, begin, length in closed]
    cells = three_cells(order, windows)
    cells.t[: len(t)], cells.f[: len(t)] = t, f
    cells.wall[0] = duration + more
    start = cell_plan.fit(cells, 0, len(t), 0, size, duration, latest, 0)
    expected, nodes = slow_fit(
        t.tolist(), f.tolist(), size, duration, duration + more, order, windows, latest
    )
    assert start == expected
    assert nodes is None or cells.reserved[0].tolist() == nodes


@given(
    held=st.lists(st.tuples(st.integers(1, 20), NODES), max_size=5),
    planned=st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20), NODES), max_size=5),
    free=NODES,
)
def test_a_profile_is_the_sum_of_its_events(held, planned, free) -> None:
    cells = three_cells([0, 1, 2], [], len(held) + len(planned))
    cells.f[0] = free
    expected = np.tile(np.array(free), (50, 1))
    n_events = 0
    for a, (end, nodes) in enumerate(held):
        cells.reserved[a] = nodes
        n_events = cell_plan.add_event(cells, n_events, end, a, 1)
        expected[end:] += nodes
    for a, (start, length, nodes) in enumerate(planned, len(held)):
        cells.reserved[a] = nodes
        n_events = cell_plan.add_event(cells, n_events, start, a, -1)
        n_events = cell_plan.add_event(cells, n_events, start + length, a, 1)
        expected[start : start + length] -= nodes
    n = cell_plan.profile(cells, 0, n_events, 0)
    assert cells.t[0] == 0 and (np.diff(cells.t[:n]) > 0).all()
    for time in range(50):
        step = np.searchsorted(cells.t[:n], time, side="right") - 1
        assert cells.f[step].tolist() == expected[time].tolist()


def three_cells(order, windows, n_attempts=1):
    """Return tables of three nodes, each of which is a cell, with windows that bind."""
    parts = [f"r{i}:{c}:begin={b}:length={e - b}" for i, (c, b, e) in enumerate(windows)]
    text = "+".join(parts) or "none:0:begin=0:length=1"
    site = SiteWindows(text, whole_machine(3))
    site.who_of(Traits())
    parameters = tables.Numbers(n_nodes=3, max_wakes=site.max_wakes)
    room = rooms.room_for(
        zeros(tables.Job, n_attempts), zeros(tables.Profile, 1), parameters, 0, whole_machine(3),
        tables.no_links(), tables.no_limits(), tables.no_tree(), arrays_of([], 3), False,
    )  # fmt: skip
    table = site.table(room)
    cells = table._replace(
        n_cells=np.array([3]), cell_of=np.arange(3), order=np.array([[*order, 0, 0, 0]]),
        n_order=np.array([len(order)]), reserved=np.zeros((len(table.wall), 3), dtype=np.int64),
        f=np.zeros((len(table.t), 3), dtype=np.int64), ordered=np.zeros(6, dtype=np.int64),
        out=np.zeros(6, dtype=np.int64), closed=np.zeros((1, len(table.begin), 3), dtype=np.bool_),
    )  # fmt: skip
    for r, (cell, begin, end) in enumerate(windows):
        s = r * cell_plan.AHEAD
        cells.slot_begin[s], cells.slot_end[s], cells.binding[0, s] = begin, end, begin + 1
        cells.closed[0, r, cell] = True
    return cells
