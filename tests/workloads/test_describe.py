# SPDX-License-Identifier: Apache-2.0
"""The share of jobs that write checkpoints."""

from __future__ import annotations

import pytest

from rebat.models.checkpoint import young_daly_period_s
from rebat.workloads.describe import checkpointing
from tests.support.flexible import flexible


def test_the_share_of_jobs_that_write_a_checkpoint() -> None:
    """Section 6.1 of Du et al. 2024: 128 nodes have a period of 8 h (MTBF 1 h, cost 5 min)."""
    eight_h = 8 * 3600.0
    assert young_daly_period_s(128, 49_152, 3600.0, 300.0) == pytest.approx(eight_h, rel=0.01)
    long_s, short_s = 9 * 3600.0, 7 * 3600.0
    jobs = (
        (128, long_s),
        (128, short_s),
        (128, short_s),
        (64, long_s),
        (64, 2 * long_s),
    )  # the period is 11 h on 64 nodes
    shares = checkpointing(flexible(49_152, *((n, s, 0, None) for n, s in jobs)), 3600.0, 300.0)
    assert shares["[128, 512)"] == pytest.approx(1 / 3)
    assert shares["[32, 128)"] == pytest.approx(1 / 2)
    assert shares["whole machine"] is None
