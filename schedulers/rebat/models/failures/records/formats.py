# SPDX-License-Identifier: Apache-2.0
"""The forms of failure records that can be read, each with the options that are its own.

A further one is a module with a reader, and a row here.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from rebat.core.errors import InputError, unknown_name
from rebat.models.failures.records.detect import AUTO, EVENTS, detected
from rebat.models.failures.records.fta import read_fta
from rebat.models.failures.records.lanl import read_lanl
from rebat.models.failures.records.maintenance import read_periods
from rebat.models.failures.records.mira_ras import Maintained, read_mira_ras
from rebat.models.failures.records.plain import read_plain
from rebat.models.failures.records.record import Record


class ReaderOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader may be told; None: nothing. Each format takes some of them."""

    system: int | None = None
    platform: int | None = None
    downtime_s: float | None = None
    maintenance: Path | None = None
    maintained: Maintained | None = None


class Format(NamedTuple):
    """A form of records: its reader, which options it takes, and what it is."""

    read: Callable[[Path, ReaderOptions], Record]
    takes: tuple[str, ...]
    about: str


def _lanl(path: Path, options: ReaderOptions) -> Record:
    return read_lanl(path, options.system)


def _mira_ras(path: Path, options: ReaderOptions) -> Record:
    downtime_s = 3600.0 if options.downtime_s is None else options.downtime_s
    if options.maintenance is None:
        if options.maintained is not None:
            raise InputError("has no effect", "--maintained", "--maintenance beside it")
        return read_mira_ras(path, downtime_s)
    periods = read_periods(options.maintenance)
    return read_mira_ras(path, downtime_s, periods, options.maintained or "leave-out")


def _fta(path: Path, options: ReaderOptions) -> Record:
    return read_fta(path, options.platform)


def _csv(path: Path, _: ReaderOptions) -> Record:
    return read_plain(path)


FORMATS = {
    "lanl": Format(
        _lanl,
        ("system",),
        "one system of Los Alamos' failure records (LA-UR-05-7318, CSV); date 0 is its first "
        "failure.",
    ),
    "mira-ras": Format(
        _mira_ras,
        ("downtime_s", "maintenance", "maintained"),
        "Mira's fatal events as LogAider publishes them; date 0 is midnight of the first event's "
        "day.",
    ),
    "fta": Format(
        _fta,
        ("platform",),
        "event_trace.tab of the Failure Trace Archive; date 0 is the start of its first line.",
    ),
    "csv": Format(
        _csv,
        (),
        "node,down,up in seconds or ISO dates (date 0 is then midnight of the first failure's "
        "day); an empty up: never back. Nodes are numbers, or names, numbered as they appear.",
    ),
}


def read_record(form: str, path: Path, options: ReaderOptions) -> Record:
    """Read a record of that form, which 'auto' detects.

    Raises
    ------
    InputError
        For an unknown form, an option that it does not take, and what its reader refuses.
    """
    if form == AUTO:
        form = detected(path)
    if form == EVENTS:
        raise InputError("is an event file already", str(path), "a failure record")
    if form not in FORMATS:
        raise unknown_name("format", form, [AUTO, *FORMATS])
    for name in ReaderOptions.__struct_fields__:
        if getattr(options, name) is not None and name not in FORMATS[form].takes:
            takers = " or ".join(other for other, row in FORMATS.items() if name in row.takes)
            option = f"--{name.removesuffix('_s')}"
            raise InputError(f"has no effect on {form}", option, f"--format {takers}")
    return FORMATS[form].read(path, options)
