# SPDX-License-Identifier: Apache-2.0
"""The part of summary.json that describes the source of a recorded run.

A recorded run is the schedule of a real machine, not of a simulation.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

RECORDED = "recorded"
"""Policy name of a recorded run, and the key of its source in summary.json."""


class RecordSource(msgspec.Struct, frozen=True):
    """The source of a recorded run, and how the run differs from a simulated run.

    Attributes
    ----------
    format : str
        Format of the accounting record. Empty for a simulated run.
    file, sha256 : str
        Name and hash of the accounting record.
    events : dict, optional
        Name and hash of the file of node events.
    attempts : int
        Number of attempts.
    shared_attempts : int
        Number of attempts that share nodes with other attempts.
    assigned_nodes : bool
        Whether rebat chose the nodes of attempts because the record contains no node names.
    notes : tuple of str
        Sentences about the conversion of the record to attempts.
    """

    format: str = ""
    file: str = ""
    sha256: str = ""
    events: dict[str, str] | None = None
    attempts: int = 0
    shared_attempts: int = 0
    assigned_nodes: bool = False
    notes: tuple[str, ...] = ()


SIMULATED = RecordSource()


def source_of(summary: dict[str, Any]) -> RecordSource:
    """Return the source in the content of summary.json, or `SIMULATED` if there is none."""
    return msgspec.convert(summary.get(RECORDED, {}), RecordSource)


def read_source(folder: Path) -> RecordSource:
    """Return the source of the run in a folder, or `SIMULATED` if there is no readable summary."""
    try:
        return source_of(_summary(folder))
    except msgspec.ValidationError:
        return SIMULATED


def node_list_of(folder: Path) -> str:
    """Return the node names of the run in ``folder`` in compact form, like ``node[1-4]``.

    If the nodes have no names, return an empty string.
    """
    workload = _summary(folder).get("workload")
    names = workload.get("nodes") if isinstance(workload, dict) else None
    return names if isinstance(names, str) else ""


def _summary(folder: Path) -> dict[str, Any]:
    """Return the content of summary.json, or an empty dict if the file cannot be read."""
    try:
        summary = msgspec.json.decode((folder / "summary.json").read_bytes())
    except (OSError, msgspec.DecodeError):
        return {}
    return summary if isinstance(summary, dict) else {}
