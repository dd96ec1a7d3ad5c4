# SPDX-License-Identifier: Apache-2.0
"""Event files of Batsim 5: each line has a time and a text that Batsim forwards to the scheduler.

rebat writes the JSON line of Batsim 4, without the time, as this text: ``{"type": "generic",
"timestamp": 10, "data": "{\\"type\\":\\"machine_unavailable\\",\\"resources\\":\\"0-4\\"}"}``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rebat.core.batsim5 import GENERIC, line_to_five
from rebat.core.files import open_text, write_lines
from rebat.core.jobs import batsim_number
from rebat.models.failures.batsim_order import batsim_order
from rebat.models.failures.events import (
    AVAILABLE,
    UNAVAILABLE,
    ExternalEvent,
    GenericEvent,
    MachineEvent,
    read_event,
)


def write_events5(events: Iterable[ExternalEvent], path: Path) -> None:
    """Write an event file for Batsim 5, a line per event in the given order."""
    write_lines(path, (msgspec.json.encode(_five(event)).decode() for event in events))


def write_events4(events: Iterable[ExternalEvent], path: Path) -> None:
    """Write an event file for Batsim 4, a line per event in the given order."""
    write_lines(path, (msgspec.json.encode(_four(event)).decode() for event in events))


def _four(event: ExternalEvent) -> dict[str, Any]:
    """Return the JSON object of an event in Batsim 4's form."""
    if isinstance(event, GenericEvent):
        return {**event.data, "timestamp": batsim_number(event.at_us)}
    kind = AVAILABLE if event.available else UNAVAILABLE
    at_s = batsim_number(event.at_us)
    cores = {"cores_per_node": event.cores_per_node} if event.cores_per_node else {}
    cause = {"cause": event.cause} if event.cause else {}
    return {"type": kind, "resources": str(event.nodes), "timestamp": at_s, **cores, **cause}


def _five(event: ExternalEvent) -> dict[str, Any]:
    return line_to_five(_four(event))


def read_texts(path: Path, number: int) -> list[GenericEvent]:
    """Read an event file for the engine, in the form of Batsim 4 or of Batsim 5.

    Parameters
    ----------
    path : Path
        The file, plain or .gz.
    number : int
        Number of the file among Batsim's event files. It is part of the ids of the events.

    Returns
    -------
    list of GenericEvent
        Events in Batsim's order: sorted only by time. The fields of an event are ``id`` (like
        ``ee0!3``) and the text ``data``.
    """
    events: list[ExternalEvent] = []
    with open_text(Path(path)) as lines:
        for place, line in enumerate(lines, 1):
            if line.strip():
                events.append(read_event(line, f"{path}:{place}"))
    texts = texts_of(events, number)
    return batsim_order(texts, [(text.at_us, 0) for text in texts])


def texts_of(events: Iterable[ExternalEvent], number: int) -> list[GenericEvent]:
    """Return the events of a file for the engine as in `read_texts`, in the given order."""
    return [
        GenericEvent(event.at_us, {"type": GENERIC, "id": f"ee{number}!{place}"} | _text(event))
        for place, event in enumerate(events)
    ]


def _text(event: ExternalEvent) -> dict[str, Any]:
    return {"data": _five(event)["data"]}


def machine_events_in(files: Iterable[Sequence[ExternalEvent]]) -> list[MachineEvent]:
    """Return the failures and repairs of several files, in order of time."""
    events = [event for file in files for event in file if isinstance(event, MachineEvent)]
    return sorted(events, key=lambda event: event.at_us)
