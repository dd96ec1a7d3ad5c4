# SPDX-License-Identifier: Apache-2.0
"""Failures of a machine's record, on a machine of any size, under any seed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, cast

from rebat.core.errors import InputError, unknown_name
from rebat.core.files import file_hash
from rebat.models.failures.events import MachineEvent, machine_mtbf_s, read_events
from rebat.models.failures.law import Law, Outage, check_span, events_of
from rebat.models.failures.mapping import WAYS, MappedRecord, mapped, source_of
from rebat.models.failures.records.detect import AUTO, EVENTS, detected
from rebat.models.failures.records.formats import FORMATS, ReaderOptions, read_record
from rebat.models.failures.records.mira_ras import MAINTAINED, Maintained
from rebat.models.failures.spans import one_a_date, outages_of


class Recorded(Law, frozen=True):
    """A record of real failures, mapped onto the machine; after its end nothing fails.

    Parameters
    ----------
    file : str
        The record, in one of the formats of 'rebat failures import', or an event file.
    format : str
        events, lanl, mira-ras, fta or csv; auto: by its first lines.
    map : str
        rank, share or rate, see 'rebat failures map'.
    size : int
        Nodes of the machine that the record is of; 0: as the record says, or as its largest node
        asks for.
    turn : bool
        Whether each seed begins at another date of the record (it goes on with its beginning after
        its end). Without it only what 'rate' draws depends on the seed.
    system : int
        lanl: which system of the record; 0: the only one.
    platform : int
        fta: which platform; -1: not told.
    downtime_s : float
        mira-ras: how long an outage lasts at least (an hour, if it is not told).
    maintenance : str
        mira-ras: a file of periods, START,END on a line.
    maintained : str
        mira-ras: leave-out (failures within them) or down (the whole machine).
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
        """What is neither turned nor drawn is the same under every seed."""
        return self.turn or self.map == "rate"

    def outages(self, n_nodes: int, seed: int) -> Iterator[Outage]:
        """The record's, by date: its own on a machine of its size, unless it is turned."""
        return iter(_outages(self, self._key, n_nodes, seed))

    def told(self, outages: Iterable[Outage]) -> Iterator[MachineEvent]:
        """As 'rebat failures import' writes them, if it is asked for the same."""
        return one_a_date(events_of(outages))

    def mtbf_on(self, n_nodes: int | None) -> float:
        """The mean time between failures of a machine of so many nodes, or of its own, in seconds.

        What fails at one time is one failure. ``rate`` makes a machine of twice the nodes fail
        twice as often; the other ways leave it the failures of the record.

        Raises
        ------
        InputError
            For a record in which nothing fails after its beginning.
        """
        source = _source(self, self._key)
        mtbf_s = machine_mtbf_s(source.events)
        if not mtbf_s:
            raise InputError("has no time between failures", self.file, "--mtbf")
        drawn = self.map == "rate" and n_nodes is not None
        return mtbf_s * source.n_nodes / n_nodes if drawn and n_nodes else mtbf_s

    def survival(self, uptime_s: float, duration_s: float, n_nodes: int) -> float:
        """A record is no law."""
        expected = "a law that failures are drawn from"
        raise InputError("recorded failures have no probability", self.file, expected)

    def identity(self) -> dict[str, Any]:
        """What files hold counts, their names do not; nor does what is as usual."""
        told = {name: value for name, value in self._told().items() if name not in self.paths}
        return {**told, **self._content()}

    def label(self) -> str | None:
        """What is not as usual, as the command line takes it, files by their names alone."""
        told = {name: value for name, value in self._told().items() if not name.endswith("_s")}
        files = {name: Path(told[name]).name for name in self.paths if name in told}
        return ",".join(f"{name}={_text(value)}" for name, value in (told | files).items())

    def read(self) -> tuple[list[MachineEvent], int | None]:
        """The events of the record, and how many nodes it says it has.

        Raises
        ------
        InputError
            For what its reader refuses.
        """
        path, options = Path(self.file), self._reader_options()
        form = detected(path) if self.format == AUTO else self.format
        if form != EVENTS:
            record = read_record(form, path, options)
            return record.events, record.n_nodes
        if options != ReaderOptions():
            raise InputError("has options of another format", str(path), "format=...")
        return read_events(path), None

    @property
    def _key(self) -> tuple[str, ...]:
        """What files hold now."""
        return tuple(self._content().values())

    def _told(self) -> dict[str, Any]:
        """The parameters that are not at their defaults, and the file."""
        usual = Recorded("")
        return {
            name: getattr(self, name)
            for name in self.__struct_fields__
            if getattr(self, name) != getattr(usual, name)
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
    """A record, read once per process."""
    events, told = law.read()
    try:
        return source_of(events, law.size or told)
    except InputError as error:
        raise error.at(law.file) from None


@lru_cache(maxsize=4)
def _outages(
    law: Recorded, content: tuple[str, ...], n_nodes: int, seed: int
) -> tuple[Outage, ...]:
    """A record on a machine: policies that meet the same failures share it."""
    events = mapped(_source(law, content), n_nodes, law.map, seed, law.turn)
    return tuple(outages_of(events))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
