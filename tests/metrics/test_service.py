"""Waiting times and slowdowns, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rebat.metrics.jobs import JobRows
from rebat.metrics.service import service_of
from tests.scenarios import machine, run


def test_of_three_jobs_one_after_the_other() -> None:
    """Lengths 20, 5 and 40 on one node, all there at 0: waits 0, 20 and 25."""
    found = service_of(run("baseline", machine(1, (1, 20), (1, 5), (1, 40))).rows)
    assert found is not None
    assert (found.wait_mean_s, found.wait_max_s) == (15, 25)
    assert found.slowdown_mean == pytest.approx((1 + 25 / 5 + 65 / 40) / 3)
    assert found.bounded_slowdown_mean == pytest.approx((1 + 25 / 10 + 65 / 40) / 3)
    assert service_of(JobRows(np.empty(0))) is None
