# SPDX-License-Identifier: Apache-2.0
"""The kernel of DBES's first stage, compared with sets of processors."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rebat.kernels.dependents import dependents
from tests.oracles import dependents as oracle
from tests.support.amount import few

times, sizes = st.integers(0, 30), st.integers(1, 8)


def counted(idle, running, reserved):
    ends, run_sizes = np.array(running, dtype=np.int64).reshape(-1, 2).T
    start, end, size = np.array(reserved, dtype=np.int64).reshape(-1, 3).T
    columns = map(np.ascontiguousarray, (ends, run_sizes, start, end, size))
    return dependents(idle, *columns).tolist()


@settings(max_examples=few(300))
@given(
    idle=st.integers(0, 10),
    running=st.lists(st.tuples(times, sizes), max_size=8),
    reserved=st.lists(st.tuples(times, st.integers(1, 20), sizes), max_size=12),
)
def test_is_the_oracle(idle, running, reserved) -> None:
    reserved = sorted((start, start + length, size) for start, length, size in reserved)
    assert counted(idle, running, reserved) == oracle.dependents(idle, running, reserved)


def test_counts_what_waits_through_others() -> None:
    """The second running job passes nodes to the first reservation, which passes them to the
    second. The first running job ends too late for both."""
    running = [(50, 4), (10, 4)]
    reserved = [(10, 20, 4), (20, 30, 3)]
    assert counted(0, running, reserved) == [0, 2]


def test_what_is_idle_is_taken_first() -> None:
    assert counted(3, [(10, 4)], [(10, 20, 3)]) == [0]
    assert counted(2, [(10, 4)], [(10, 20, 3)]) == [1]
