# SPDX-License-Identifier: Apache-2.0
"""Recorded failures in Batsim's own event files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

from rebat.core.cores import groups_of
from rebat.core.errors import InputError
from rebat.core.files import file_hash
from rebat.core.nodes import NodeSet
from rebat.core.units import to_s
from rebat.models.failures.events import (
    MachineEvent,
    Numbers,
    check_alternation,
    machine_mtbf_s,
    read_events,
)
from rebat.models.failures.law import Law, Outage
from rebat.models.failures.outages import outages_of
from rebat.models.failures.records.detect import rejecting_records


class Trace(Law, frozen=True):
    """All failures of an event file (Batsim's --events). The seed has no effect.

    Parameters
    ----------
    file : str
        The event file, plain or .gz.
    numbers : str
        cores or nodes: whether the numbers in the file are core numbers or node numbers. This
        parameter only matters if nodes have several cores.
    """

    drawn: ClassVar[bool] = False
    paths: ClassVar[tuple[str, ...]] = ("file",)

    file: str
    numbers: Numbers = "cores"

    def events(
        self,
        n_nodes: int,
        seed: int = 0,
        horizon_s: float | None = None,
        cores_per_node: int = 1,
    ) -> Iterable[MachineEvent]:
        """Return the events of the file as a list, so that a simulation includes the last event.

        If ``cores_per_node`` is above 1, ``numbers`` states whether the file contains core numbers
        or node numbers. If it contains core numbers, each event must contain all cores of a node or
        none.
        """
        if horizon_s is not None:
            raise InputError(
                "a horizon has no effect on recorded failures", self.file, "no horizon"
            )
        groups_of(n_nodes, cores_per_node)
        path = Path(self.file)
        with rejecting_records(path):
            events = read_events(path, cores_per_node, self.numbers)
        try:
            check_alternation(events, n_nodes)
        except InputError as error:
            raise error.at(self.file) from None
        return events

    def mtbf_on(self, n_nodes: int | None) -> float:
        """Return the mean time between the failures of the file, from time 0 to its last event."""
        mtbf_s = machine_mtbf_s(self._lines)
        if not mtbf_s:
            problem = "contains no failure after time 0, so its MTBF is unknown"
            raise InputError(problem, self.file, "--mtbf as well")
        return mtbf_s

    @property
    def length_s(self) -> float:
        """Time of the last event, in seconds."""
        return to_s(max((event.at_us for event in self._lines), default=0))

    @property
    def _lines(self) -> list[MachineEvent]:
        path = Path(self.file)
        with rejecting_records(path):
            return read_events(path)

    def outages(self, n_nodes: int, seed: int) -> Iterator[Outage]:
        """Yield outages of single nodes. A node that is never repaired stays down forever."""
        rows = outages_of(self.events(n_nodes)).rows()
        for node, down_us, up_us in sorted(rows, key=lambda outage: outage[1]):
            yield Outage(down_us, up_us, NodeSet.of([node]))

    def survival(self, uptime_s: float, duration_s: float, n_nodes: int) -> float:
        """Raise InputError: recorded failures have no survival probability."""
        expected = "a law that draws failures"
        raise InputError("recorded failures have no failure probability", self.file, expected)

    def identity(self) -> dict[str, Any]:
        """Return the hash of the file's content, and ``numbers`` unless it is the default."""
        numbers = {} if self.numbers == "cores" else {"numbers": self.numbers}
        return {"sha256": file_hash(Path(self.file)), **numbers}

    def label(self) -> str | None:
        """Return the name of the file, and the parameter ``numbers`` unless it is the default."""
        numbers = "" if self.numbers == "cores" else f",numbers={self.numbers}"
        return f"file={self.file}{numbers}"
