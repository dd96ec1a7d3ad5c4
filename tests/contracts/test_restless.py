"""Random points of the whole product, with latency, split instants and random proposals."""

from __future__ import annotations

import pytest

from tests.restless import play

EACH = 150


@pytest.mark.parametrize("first", range(8))
def test_no_invariant_breaks_nothing_aborts_and_no_job_is_lost(first: int) -> None:
    done = set()
    for seed in range(first * EACH, (first + 1) * EACH):
        done |= play(seed)
    assert {"Move", "Wait", "Requeue", "Move later", "Move to vacated", "Wait on"} <= done
    assert {"Start", "Start and Stop", "Reject", "Release"} <= done
