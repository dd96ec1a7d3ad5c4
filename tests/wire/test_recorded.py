# SPDX-License-Identifier: Apache-2.0
"""Recorded messages of the real Batsim, sent to rebat's schedulers instead of Batsched."""

from __future__ import annotations

import pytest

from rebat.wire.conversation import session_for
from tests.support.recordings import OUR_RECORDINGS, folder_of, replay


@pytest.mark.parametrize(("recording", "policy"), OUR_RECORDINGS)
def test_our_presets_answer_as_was_recorded(recording: str, policy: str) -> None:
    path = folder_of(recording) / f"{recording}.jsonl"
    assert list(replay(path, lambda _, began: session_for(policy, {}, began, strict=True))) == []


def test_a_different_scheduler_answers_differently() -> None:
    """This shows that the comparison can fail."""
    path = folder_of("ties_701_h322") / "ties_701_h322.jsonl"
    with pytest.raises(Exception, match=r"started|job"):
        assert list(replay(path, lambda _, began: session_for("easy", {}, began))) == []
