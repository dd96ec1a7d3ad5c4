# SPDX-License-Identifier: Apache-2.0
"""Folders of recorded data: ``tests/data``, and the folder ``shared`` next to the project."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from rebat.session.session import Session
from rebat.wire import batsim4
from rebat.wire.conversation import Conversation
from rebat.wire.recording import TO_SCHEDULER, TO_SIMULATOR, read_recording

DATA = Path(__file__).parent / "data"
SHARED = Path(os.environ.get("REBAT_SHARED", Path(__file__).parents[2] / "shared"))
"""Other people's traces, and what was recorded on them: not part of the project."""

ABSENT = "needs recordings that are not part of the project"
"""Why a test is skipped for want of that folder; `tests.conftest` counts these skips."""


def beside(name: str = ".") -> Path:
    """A file or folder of the folder ``shared``; the test is skipped where it is absent."""
    if not (SHARED / name).exists():
        pytest.skip(f"{ABSENT}: {SHARED / name}")
    return SHARED / name


def needs(name: str) -> pytest.MarkDecorator:
    """A mark for tests that need a file or folder of the folder ``shared``."""
    return pytest.mark.skipif(not (SHARED / name).exists(), reason=f"{ABSENT}: {SHARED / name}")


def folder_of(name: str) -> Path:
    """The folder with a recorded conversation; the test is skipped where it is not at hand."""
    own = DATA / "transcripts"
    if (own / f"{name}.workload.json").exists():
        return own
    return beside(f"transcripts/{name}.workload.json").parent


def conversations() -> list[Path]:
    """Every conversation at hand, each once."""
    found = {
        path.name: path
        for folder in (SHARED, DATA)
        for path in sorted((folder / "transcripts").glob("*.jsonl"))
    }
    return [found[name] for name in sorted(found)]


def cases5() -> list[Path]:
    """The folders of all recorded conversations of Batsim 5 in JSON, each once."""
    found = {
        path.parent.name: path.parent
        for folder in (DATA, SHARED / "transcripts")
        for path in sorted((folder / "batsim5").glob("*/conversation.jsonl"))
    }
    return [found[name] for name in sorted(found) if name != "binary"]


def job_sets() -> list[Path]:
    """The sixteen job sets with reference makespans of R-LIST and R-SHELF."""
    return sorted((DATA / "rlist").glob("g*.json"))


class Difference(msgspec.Struct, frozen=True):
    """A recorded message that a session answers otherwise; texts are the replies' bytes."""

    seq: int
    recorded: str
    ours: str


def replay(path: Path, configure: Callable[[str], Session]) -> Iterator[Difference]:
    """Feed a recorded simulator's messages to a session; yields where its answers differ.

    Replies are compared as decisions, not as bytes: order of fields, number formats and fields
    that mean nothing (mappings of delay jobs) do not count.
    """
    conversation = Conversation(configure)
    ours = b""
    for line in read_recording(path):
        if line.dir == TO_SCHEDULER:
            ours = conversation.answer(line.data)
        elif line.dir == TO_SIMULATOR:
            recorded = batsim4.decode_reply(line.raw.encode())
            if recorded != batsim4.decode_reply(ours):
                yield Difference(line.seq, line.raw, ours.decode())
