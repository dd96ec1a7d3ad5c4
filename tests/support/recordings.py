# SPDX-License-Identifier: Apache-2.0
"""Folders of recorded data: ``tests/data``, and the folder ``shared`` next to the project."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from rebat.core.events import SimulationBegan
from rebat.drive.messages import Messages
from rebat.wire import batsim4
from rebat.wire.conversation import Conversation
from rebat.wire.recording import read_frames

DATA = Path(__file__).parents[1] / "data"
SHARED = Path(os.environ.get("REBAT_SHARED", Path(__file__).parents[3] / "shared"))
"""Traces of other projects and recordings made with them. They are not part of this project."""

ABSENT = "needs recordings that are not part of the project"
"""Reason for skipping a test if this folder is absent. `tests.conftest` counts these skips."""

OUR_RECORDINGS = [
    ("conservative_bf_250", "batsched-conservative"),
    ("easy_bf_250", "batsched-easy"),
    ("generic_events", "sfsj"),
    *(
        (f"ties_{number}_{policy}", policy)
        for number in (701, 703, 704, 706, 707, 709)
        for policy in ("sfsj", "h322")
    ),
]
"""Conversations with Batsim that a preset repeats: recording, preset."""


def beside(name: str = ".") -> Path:
    """Return a path in the folder ``shared``; skip the test if the path is absent."""
    if not (SHARED / name).exists():
        pytest.skip(f"{ABSENT}: {SHARED / name}")
    return SHARED / name


def needs(name: str) -> pytest.MarkDecorator:
    """Return a mark that skips a test if a path in the folder ``shared`` is absent."""
    return pytest.mark.skipif(not (SHARED / name).exists(), reason=f"{ABSENT}: {SHARED / name}")


def folder_of(name: str) -> Path:
    """Return the folder of a recorded conversation; skip the test if the recording is absent."""
    own = DATA / "transcripts"
    if (own / f"{name}.workload.json").exists():
        return own
    return beside(f"transcripts/{name}.workload.json").parent


def conversations() -> list[Path]:
    """Return every available recorded conversation once."""
    found = {
        path.name: path
        for folder in (SHARED, DATA)
        for path in sorted((folder / "transcripts").glob("*.jsonl"))
    }
    return [found[name] for name in sorted(found)]


def cases5() -> list[Path]:
    """Return the folder of every available conversation of Batsim 5 in JSON once."""
    found = {
        path.parent.name: path.parent
        for folder in (DATA, SHARED / "transcripts")
        for path in sorted((folder / "batsim5").glob("*/conversation.jsonl"))
    }
    return [found[name] for name in sorted(found) if name != "binary"]


def job_sets() -> list[Path]:
    """Return the sixteen job sets with reference makespans of R-LIST and R-SHELF."""
    return sorted((DATA / "rlist").glob("g*.json"))


class Difference(msgspec.Struct, frozen=True):
    """A recorded reply that differs from the session's reply. Both replies are the JSON texts."""

    line: int
    recorded: str
    ours: str


def replay(
    path: Path, configure: Callable[[str, SimulationBegan], Messages]
) -> Iterator[Difference]:
    """Pass the messages of a recorded simulator to a session; yield the replies that differ.

    Replies are compared as decisions, not as bytes. The order of fields, number formats and fields
    without meaning (mappings of delay jobs) are ignored.
    """
    conversation = Conversation(configure)
    ours = b""
    for frame in read_frames(path):
        if frame.of_simulator:
            ours = conversation.answer(frame.data)
        else:
            recorded = batsim4.decode_reply(frame.data)
            if recorded != batsim4.decode_reply(ours):
                yield Difference(frame.line, frame.data.decode(), ours.decode())
