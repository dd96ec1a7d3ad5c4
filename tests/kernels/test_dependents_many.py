# SPDX-License-Identifier: Apache-2.0
"""More running jobs than the kernel of DBES's first stage can follow in one pass."""

from __future__ import annotations

import numpy as np
import pytest

from rebat.kernels.dependents import GROUP
from tests.kernels.test_dependents import counted
from tests.oracles import dependents as oracle


@pytest.mark.parametrize("n_running", [GROUP - 1, GROUP, GROUP + 1, 3 * GROUP + 5])
def test_every_running_job_is_counted_in_one_of_the_passes(n_running: int) -> None:
    rng = np.random.default_rng(n_running)
    running = rng.integers(1, (30, 9), (n_running, 2)).tolist()
    starts, lengths, sizes = rng.integers(1, ((40,), (20,), (60,)), (3, 50))
    reserved = sorted(
        zip(starts.tolist(), (starts + lengths).tolist(), sizes.tolist(), strict=True)
    )
    found = counted(3, running, reserved)
    assert found == oracle.dependents(3, running, reserved)
    assert all(any(found[first : first + GROUP]) for first in range(0, n_running, GROUP))
