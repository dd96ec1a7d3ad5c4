# SPDX-License-Identifier: Apache-2.0
"""What every reader makes of a file: a record, with its lines counted and its date 0."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO

import msgspec

from rebat.core.errors import InputError
from rebat.core.files import open_text
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.law import events_of
from rebat.models.failures.spans import Span, joined, merged_events, single, together


class Record(msgspec.Struct, frozen=True, eq=False):
    """A machine's failures as a file tells them.

    Parameters
    ----------
    events : list of MachineEvent
        Outages of a node that overlap, or touch, are one; what fails at a date is one event.
    taken, dropped : Counter
        Lines that are taken, by what they take down, and lines that are not, by the reason.
    n_outages : int
        Outages of single nodes that the lines told of.
    n_joined : int
        How many of them are one with another.
    origin : datetime, optional
        Date 0 of the events; None where the file counts seconds itself.
    n_nodes : int, optional
        Size of the machine, where the file tells it.
    names : tuple of str
        What the file calls node 0, 1, ...; empty where it has numbers.
    """

    events: list[MachineEvent]
    taken: Counter[str]
    dropped: Counter[str]
    n_outages: int
    n_joined: int
    origin: datetime | None = None
    n_nodes: int | None = None
    names: tuple[str, ...] = ()

    @property
    def n_lines(self) -> int:
        """Lines read."""
        return self.taken.total() + self.dropped.total()


class Lines:
    """Counts the lines of a file by what becomes of them."""

    def __init__(self) -> None:
        self.taken: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()

    def record(
        self,
        spans: list[Span],
        origin: datetime | None = None,
        n_nodes: int | None = None,
        names: tuple[str, ...] = (),
    ) -> Record:
        """The record that the lines told of."""
        kept = list(joined(spans))
        return Record(
            list(merged_events(events_of(together(single(kept))))),
            self.taken, self.dropped, len(spans), len(spans) - len(kept), origin, n_nodes, names,
        )  # fmt: skip


@contextmanager
def opened(path: Path) -> Iterator[IO[str]]:
    """A text file, plain, .gz or .xz, with its line ends as they are.

    Raises
    ------
    InputError
        When it cannot be read.
    """
    if path.suffix != ".xz":
        with open_text(path, newline="") as text:
            yield text
        return
    import lzma

    try:
        with lzma.open(path, "rt", newline="", encoding="utf-8-sig") as text:
            yield text
    except (OSError, EOFError, lzma.LZMAError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise InputError(f"cannot read the file: {reason}", str(path)) from None
    except UnicodeDecodeError:
        raise InputError("is not a text file", str(path), "UTF-8 text, .gz or .xz") from None


def us_between(first: datetime, date: datetime) -> int:
    """Whole microseconds from one date to another."""
    return (date - first) // timedelta(microseconds=1)


def midnight(date: datetime) -> datetime:
    """When its day began."""
    return date.replace(hour=0, minute=0, second=0, microsecond=0)
