# SPDX-License-Identifier: Apache-2.0
"""Recorded failures of a machine, mapped onto a machine of any size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, cast

from rebat.core.errors import InputError, unknown_name
from rebat.core.files import file_hash
from rebat.core.units import to_s
from rebat.models.failures.events import MachineEvent, machine_mtbf_s, read_events
from rebat.models.failures.law import Law, Outage, check_span, events_of
from rebat.models.failures.mapping import WAYS, MappedRecord, mapped, source_of
from rebat.models.failures.outages import grouped, merged_events
from rebat.models.failures.records.detect import AUTO, EVENTS, detected
from rebat.models.failures.records.formats import FORMATS, ReaderOptions, read_record
from rebat.models.failures.records.mira import MAINTAINED, Maintained


class Recorded(Law, frozen=True):
    """A record of real failures, mapped onto the machine. No node fails after the end of the
    record.

    Parameters
    ----------
    file : str
        The record, in a format of 'rebat failures import', or an event file.
    format : str
        events, lanl, mira-ras, fta or csv. With auto, the first lines determine the format.
    map : str
        How to map the record onto a machine of another size: rank, share or rate; see 'rebat
        failures map'.
    size : int
        Number of nodes of the recorded machine. If 0, use the number that the record states, or
        else the largest number of a failed node, plus 1.
    turn : bool
        If true, each seed starts at another time of the record, and continues at the beginning of
        the record after its end. If false, the seed only affects the random choices of map=rate.
    system : int
        For lanl: number of the system in the record. If 0, use the only system.
    platform : int
        For fta: number of the platform in the record. If -1, use the only platform.
    downtime_s : float
        For mira-ras: minimum length of an outage (default: 1h).
    maintenance : str
        For mira-ras: file of maintenance periods, with lines START,END.
    maintained : str
        For mira-ras: leave-out drops failures during maintenance. With down, the entire machine is
        down during maintenance.
    """

    file: str
    format: str = AUTO
    map: str = "rank"
    size: int = 0
    turn: bool = False
    system: int = 0
    platform: int = -1
    downtime_s: float | None = None
    maintenance: str = ""
    maintained: str = ""

    paths: ClassVar[tuple[str, ...]] = ("file", "maintenance")

    def __post_init__(self) -> None:
        formats = (AUTO, EVENTS, *FORMATS)
        tables = {"format": formats, "map": WAYS, "maintained": ("", *MAINTAINED)}
        for name, choices in tables.items():
            if getattr(self, name) not in choices:
                raise unknown_name(name, getattr(self, name), list(filter(None, choices)))
        if self.downtime_s is not None:
            check_span(self.downtime_s, "downtime")
        if self.size < 0:
            raise InputError(f"is {self.size}", "size", "0 or more")

    @property
    def seeded(self) -> bool:
        """Whether failures depend on the seed. They do if ``turn`` is set or ``map`` is rate."""
        return self.turn or self.map == "rate"

    def outages(self, n_nodes: int, seed: int) -> Iterator[Outage]:
        """Yield the outages of the mapped record, sorted by time."""
        return iter(_outages(self, self._key, n_nodes, seed))

    def machine_events(self, outages: Iterable[Outage]) -> Iterator[MachineEvent]:
        """Yield the events that 'rebat failures import' would write."""
        return merged_events(events_of(outages))

    def mtbf_on(self, n_nodes: int | None) -> float:
        """Return the MTBF (s) of a machine with ``n_nodes`` nodes.

        If ``n_nodes`` is None, return the MTBF of the recorded machine. Failures at the same time
        count as one failure. The mean is over the time from 0 to the last event of the record. With
        map=rate, a machine with twice the nodes fails twice as often. The other ways keep the
        number of failures of the record.
        """
        source = _source(self, self._key)
        mtbf_s = machine_mtbf_s(source.events)
        if not mtbf_s:
            problem = "contains no failure after its beginning, so its MTBF is unknown"
            raise InputError(problem, self.file, "--mtbf as well")
        scales = self.map == "rate" and n_nodes is not None
        return mtbf_s * source.n_nodes / n_nodes if scales and n_nodes else mtbf_s

    @property
    def length_s(self) -> float:
        """Time of the last event of the record, in seconds."""
        return to_s(_source(self, self._key).length_us)

    def survival(self, uptime_s: float, duration_s: float, n_nodes: int) -> float:
        """Raise InputError: recorded failures have no survival probability."""
        expected = "a law that draws failures"
        raise InputError("recorded failures have no failure probability", self.file, expected)

    def identity(self) -> dict[str, Any]:
        """Return the hashes of the files and the parameters that differ from their defaults."""
        parameters = {
            name: value for name, value in self._non_defaults().items() if name not in self.paths
        }
        return {**parameters, **self._content()}

    def label(self) -> str | None:
        """Return the parameters that differ from their defaults, with file names for paths."""
        parameters = {
            name: value for name, value in self._non_defaults().items() if not name.endswith("_s")
        }
        files = {name: Path(parameters[name]).name for name in self.paths if name in parameters}
        return ",".join(f"{name}={_text(value)}" for name, value in (parameters | files).items())

    def read(self) -> tuple[list[MachineEvent], int | None]:
        """Return the events of the record, and its number of nodes.

        The number of nodes is None if the record does not state it.
        """
        path, options, form = Path(self.file), self._reader_options(), self.form
        if form != EVENTS:
            record = read_record(form, path, options)
            return record.events, record.n_nodes
        if options != ReaderOptions():
            raise InputError(
                "is an event file, for which options of records have no effect",
                str(path),
                "no options",
            )
        return read_events(path), None

    @property
    def form(self) -> str:
        """The format of the record."""
        return detected(Path(self.file)) if self.format == AUTO else self.format

    @property
    def _key(self) -> tuple[str, ...]:
        return tuple(self._content().values())

    def _non_defaults(self) -> dict[str, Any]:
        defaults = Recorded("")
        return {
            name: getattr(self, name)
            for name in self.__struct_fields__
            if getattr(self, name) != getattr(defaults, name)
        }

    def _content(self) -> dict[str, str]:
        return {
            {"file": "sha256"}.get(name, f"{name}_sha256"): file_hash(Path(getattr(self, name)))
            for name in self.paths
            if getattr(self, name)
        }

    def _reader_options(self) -> ReaderOptions:
        return ReaderOptions(
            system=self.system or None,
            platform=None if self.platform < 0 else self.platform,
            downtime_s=self.downtime_s,
            maintenance=Path(self.maintenance) if self.maintenance else None,
            maintained=cast("Maintained | None", self.maintained or None),
        )


@lru_cache(maxsize=2)
def _source(law: Recorded, content: tuple[str, ...]) -> MappedRecord:
    """Return the record of a law. Each process reads a record only once."""
    events, n_nodes = law.read()
    try:
        return source_of(events, law.size or n_nodes)
    except InputError as error:
        raise error.at(law.file) from None


@lru_cache(maxsize=4)
def _outages(
    law: Recorded, content: tuple[str, ...], n_nodes: int, seed: int
) -> tuple[Outage, ...]:
    """Return the outages of a record on a machine, cached for all policies of a seed."""
    events = mapped(_source(law, content), n_nodes, law.map, seed, law.turn)
    return tuple(grouped(events))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
