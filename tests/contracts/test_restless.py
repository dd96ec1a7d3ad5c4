# SPDX-License-Identifier: Apache-2.0
"""Random points of the design space, with latency, split messages and random proposals."""

from __future__ import annotations

import pytest

from tests.support.amount import few
from tests.support.restless import play, play_noisy

pytestmark = pytest.mark.sampled

EACH = few(150)


@pytest.mark.parametrize("first", range(8))
def test_no_invariant_breaks_nothing_aborts_and_no_job_is_lost(first: int) -> None:
    for seed in range(first * EACH, (first + 1) * EACH):
        play(seed)


@pytest.mark.parametrize("first", range(4))
def test_messages_that_bring_nothing_change_nothing(first: int) -> None:
    for seed in range(first * EACH, (first + 1) * EACH):
        play_noisy(seed)


def test_everything_is_asked_for_in_some_run() -> None:
    missing = {"Move", "Wait", "Requeue", "Move later", "Move to vacated", "Wait on"}
    missing |= {"Start", "Start and Stop", "Start in another size", "Resize", "Reject", "Release"}
    missing |= {"Image"}
    for seed in range(40 * EACH):  # it stops when nothing is missing
        missing -= play(seed)
        if not missing:
            return
    assert not missing
