# SPDX-License-Identifier: Apache-2.0
"""Writers of failures as a plain table, and of the names of nodes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rebat.core.csv_text import csv_line
from rebat.core.files import write_text
from rebat.core.units import FOREVER_US, to_s
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.outages import outages_of


def write_plain(events: Iterable[MachineEvent], path: Path) -> int:
    """Write events as a table, one line per outage of a node, with times in seconds.

    Returns
    -------
    int
        Number of lines.
    """
    rows = sorted((down, node, up) for node, down, up in outages_of(events).rows())
    lines = [f"{node},{_text(down)},{_text(up)}\n" for down, node, up in rows]
    write_text(path, "node,down,up\n" + "".join(lines))
    return len(lines)


def _text(at_us: int) -> str:
    return "" if at_us == FOREVER_US else repr(to_s(at_us)).removesuffix(".0")


def write_names(names: Iterable[str], path: Path) -> None:
    """Write the table of node numbers and names: ``node,name``."""
    rows = [("node", "name"), *enumerate(names)]
    write_text(path, "".join(map(csv_line, rows)))
