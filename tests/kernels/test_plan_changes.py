# SPDX-License-Identifier: Apache-2.0
"""The changes of plans, compared with their definitions."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rebat.core.units import FOREVER_US
from rebat.drive.plan_record import NONE, PlanChange, PlanRecorder
from rebat.kernels import plan_changes
from tests.oracles.plan_changes import Queued, changed

SERIALS = 8

starts = st.one_of(st.integers(0, 12), st.just(FOREVER_US))
attempts = st.builds(
    Queued,
    st.integers(0, SERIALS - 1),
    st.integers(1, 6),
    st.one_of(st.integers(1, 9), st.just(FOREVER_US)),
    starts,
    st.sampled_from([NONE, NONE, 3]),
    st.booleans(),
)
queues = st.lists(attempts, max_size=6, unique_by=lambda attempt: attempt.serial)
plans = st.lists(st.tuples(queues, st.integers(0, 6), st.booleans()), min_size=1, max_size=5)


@given(plans)
def test_changes_are_those_of_the_definition(plans) -> None:
    last, before = PlanRecorder._unplanned(SERIALS), {}
    for now, (drawn, n_free, simple) in enumerate(plans):
        queue = drawn
        if simple:  # any attempt may start first, and nodes are only counted
            queue = [attempt._replace(behind=NONE, placeless=False) for attempt in drawn]
        columns = [np.array(column, dtype=np.int64) for column in zip(*queue, strict=True)]
        serial, size, duration, start, behind, placeless = columns or [np.empty(0, np.int64)] * 6
        if simple:
            behind = placeless = np.empty(0, dtype=np.int64)
        rows = np.full((2 * len(queue) + 1, 4), -7, dtype=np.int64)
        n = plan_changes.changed(
            serial, size, duration, start, behind, placeless.astype(np.bool_),
            last, rows, 0, now, now, n_free,
        )  # fmt: skip
        expected = changed(queue, before, now, n_free)
        assert rows[:n].tolist() == [[now, *row] for row in expected]
        assert (rows[n:] == -7).all()


def test_kinds_have_the_numbers_of_the_kernel() -> None:
    assert {kind.name: int(kind) for kind in PlanChange} == {
        name: getattr(plan_changes, name) for name in PlanChange.__members__
    }
