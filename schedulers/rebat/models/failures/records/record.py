# SPDX-License-Identifier: Apache-2.0
"""The result of a reader: a record with its time 0 and the counts of used and dropped lines."""

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
    """The failures of a machine, read from a file.

    Parameters
    ----------
    events : list of MachineEvent
        Overlapping or adjacent outages of a node are joined. Failures at the same time are one
        event.
    taken : Counter
        Number of used lines for each kind of part that fails.
    dropped : Counter
        Number of dropped lines for each reason.
    n_outages : int
        Number of outages of single nodes in the file.
    n_joined : int
        Number of outages in the file that were joined with another outage.
    origin : datetime, optional
        Time 0 of the events, or None if the times in the file are seconds.
    n_nodes : int, optional
        Size of the machine, if the file states it.
    names : tuple of str
        Names of nodes 0, 1, ... in the file. There are no names if nodes are numbers in the file.
    sources : Counter
        Number of outages (after joining) for each combination of records that contain them. The
        counter is empty if there is only one record.
    notes : tuple of str
        Findings about the record, see `rebat.records.judge`.
    """

    events: list[MachineEvent]
    taken: Counter[str]
    dropped: Counter[str]
    n_outages: int
    n_joined: int
    origin: datetime | None = None
    n_nodes: int | None = None
    names: tuple[str, ...] = ()
    sources: Counter[str] = msgspec.field(default_factory=Counter)
    notes: tuple[str, ...] = ()

    @property
    def n_lines(self) -> int:
        """Number of lines read."""
        return self.taken.total() + self.dropped.total()


class Lines:
    """Counts of the used and the dropped lines of a file."""

    def __init__(self) -> None:
        self.taken: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self.notes: list[str] = []

    def record(
        self,
        spans: list[Span],
        origin: datetime | None = None,
        n_nodes: int | None = None,
        names: tuple[str, ...] = (),
    ) -> Record:
        """Return the record of all outages that were read."""
        outages = list(joined(spans))
        return Record(
            list(merged_events(events_of(together(single(outages))))),
            self.taken,
            self.dropped,
            len(spans),
            len(spans) - len(outages),
            origin,
            n_nodes,
            names,
            notes=tuple(self.notes),
        )


@contextmanager
def opened(path: Path) -> Iterator[IO[str]]:
    """Open a text file, plain, .gz or .xz, without conversion of line ends.

    Raises
    ------
    InputError
        If the file cannot be read.
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
    """Return the number of microseconds between two dates."""
    return (date - first) // timedelta(microseconds=1)


def midnight(date: datetime) -> datetime:
    """Return midnight at the start of the day of a date."""
    return date.replace(hour=0, minute=0, second=0, microsecond=0)
