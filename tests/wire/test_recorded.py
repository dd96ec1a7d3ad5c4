"""Recorded conversations of the real Batsim, replayed to our schedulers in Batsched's place."""

from __future__ import annotations

from pathlib import Path

import pytest

from rebat.wire.conversation import replay, session_for


@pytest.mark.parametrize(
    ("recording", "policy"),
    [
        ("conservative_bf_250", "batsched-conservative"),
        ("easy_bf_250", "batsched-easy"),
        ("generic_events", "sfsj"),
        *(
            (f"ties_{number}_{policy}", policy)
            for number in (701, 703, 704, 706, 707, 709)
            for policy in ("sfsj", "h322")
        ),
    ],
)
def test_our_presets_answer_as_was_recorded(shared: Path, recording: str, policy: str) -> None:
    path = shared / "transcripts" / f"{recording}.jsonl"
    assert list(replay(path, lambda _: session_for(policy, {}, strict=True))) == []


def test_a_different_scheduler_answers_differently(shared: Path) -> None:
    """The comparison can fail."""
    path = shared / "transcripts" / "easy_bf_250.jsonl"
    with pytest.raises(Exception, match=r"started|job"):
        assert list(replay(path, lambda _: session_for("batsched-fcfs", {}))) == []
