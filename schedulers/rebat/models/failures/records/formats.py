# SPDX-License-Identifier: Apache-2.0
"""The formats of failure records, each with its options.

To add a format, write a module with a reader and add a row to this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from rebat.core.declared import Seconds
from rebat.core.errors import InputError, unknown_name
from rebat.models.failures.records.mira import mira_record
from rebat.models.failures.records.record import Record, record_of
from rebat.models.failures.records.slurm import (
    SLURMD_TIMEOUT_S,
    EventOptions,
    read_merged,
    read_node_fail,
    read_sacctmgr,
    record_on,
)
from rebat.records import detect
from rebat.records.clock import zone_of
from rebat.records.down_table import read_down_table
from rebat.records.forms import AUTO, EVENTS, FTA, LANL, MIRA_RAS, PLAIN, SACCT, SACCTMGR
from rebat.records.fta import read_fta
from rebat.records.lanl import read_lanl
from rebat.records.node_events import DownRow
from rebat.records.options import ZONE, Cluster, Maintained, Stale, Strict


class ReaderOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the readers.

    Options that are not set are None. Each format accepts only some of the options.
    """

    system: Annotated[
        int | None, "With the format lanl: number of the system, if the record has several."
    ] = None
    platform: Annotated[
        int | None, "With the format fta: number of the platform, if the table has several."
    ] = None
    downtime_s: Annotated[
        Seconds | None,
        "--downtime",
        "With the format mira-ras: minimum duration of an outage (default: 1h). The record "
        "contains no repair times. An outage is longer only if the messages of its event span a "
        "longer time.",
    ] = None
    maintenance: Annotated[
        Path | None,
        "With the format mira-ras: file with the maintenance periods of the machine, START,END "
        "per line.",
    ] = None
    maintained: Annotated[
        Maintained | None,
        "With --maintenance: what happens in a maintenance period. leave-out (default): the "
        "machine stays up, and events that begin in the period are left out, because no job was "
        "running. down: the entire machine is down, and all running jobs are killed.",
    ] = None
    zone: Annotated[
        str | None,
        ZONE.format(
            "the zone of --workload, or UTC",
            "With the format csv and Unix times: time zone of the midnight that is time 0.",
        ),
    ] = None
    workload: tuple[tuple[str, ...], float] | None = None
    """Node names and time 0 of the workload, in seconds since the Unix epoch."""
    attempts: Annotated[
        Path | None,
        "With the format sacctmgr: file with the output of sacct -P -X -D. Adds failures that have "
        "no Slurm event but ended an attempt with NODE_FAIL. A later job on the node also ends an "
        "event without an end (--stale).",
    ] = None
    slurmd_timeout_s: Annotated[
        Seconds | None,
        "--slurmd-timeout",
        "With --attempts: SlurmdTimeout of the cluster (default: 5min, as in Slurm). This is the "
        "maximum length of an outage without an event, because Slurm records an event for each "
        "longer outage.",
    ] = None
    strict: Strict | None = None
    cluster: Cluster | None = None
    stale: Stale | None = None
    absent: tuple[DownRow, ...] = ()
    """Times in which nodes of the workload were not in service."""


class Format(NamedTuple):
    """A record format: its reader, its options, and its description."""

    read: Callable[[Path, ReaderOptions], Record]
    takes: tuple[str, ...]
    about: str


def _lanl(path: Path, options: ReaderOptions) -> Record:
    return record_of(read_lanl(path, options.system, bool(options.strict)))


def _mira_ras(path: Path, options: ReaderOptions) -> Record:
    downtime_s = 3600.0 if options.downtime_s is None else options.downtime_s
    if options.maintenance is None and options.maintained is not None:
        raise InputError("has no effect", "--maintained", "--maintenance as well")
    maintained = options.maintained or "leave-out"
    return mira_record(path, downtime_s, options.maintenance, maintained, bool(options.strict))


def _fta(path: Path, options: ReaderOptions) -> Record:
    return record_of(read_fta(path, options.platform, bool(options.strict)))


def _sacctmgr(path: Path, options: ReaderOptions) -> Record:
    names, origin_s = options.workload or ((), None)
    timeout_s = options.slurmd_timeout_s
    choices = EventOptions(
        bool(options.strict), options.cluster, options.stale or "next", options.absent
    )
    if options.attempts is not None:
        return read_merged(
            path,
            options.attempts,
            options.zone,
            names,
            origin_s,
            timeout_s or SLURMD_TIMEOUT_S,
            choices,
        )
    if timeout_s is not None:
        raise InputError("has no effect", "--slurmd-timeout", "--attempts as well")
    return read_sacctmgr(path, options.zone, names, origin_s, choices)


def _sacct(path: Path, options: ReaderOptions) -> Record:
    names, origin_s = options.workload or ((), None)
    choices = EventOptions(bool(options.strict), options.cluster, absent=options.absent)
    return read_node_fail(path, options.zone, names, origin_s, choices)


def _csv(path: Path, options: ReaderOptions) -> Record:
    if options.workload is None:
        return record_of(read_down_table(path, bool(options.strict), options.zone))
    local = zone_of(options.zone, "--zone")
    rows = read_down_table(path, bool(options.strict), options.zone, local)
    names, origin_s = options.workload
    return record_on(rows, names, origin_s, options.zone, options.absent)


FORMATS = {
    "lanl": Format(
        _lanl,
        ("system", "strict"),
        "One system of Los Alamos' failure records (LA-UR-05-7318, CSV). Time 0 is its first "
        "failure.",
    ),
    "mira-ras": Format(
        _mira_ras,
        ("downtime_s", "maintenance", "maintained", "strict"),
        "Mira's fatal events as published by LogAider. Time 0 is midnight of the first event's "
        "day.",
    ),
    "fta": Format(
        _fta,
        ("platform", "strict"),
        "event_trace.tab of the Failure Trace Archive. Time 0 is the start time in its first line.",
    ),
    "sacctmgr": Format(
        _sacctmgr,
        (
            "zone",
            "workload",
            "absent",
            "attempts",
            "slurmd_timeout_s",
            "strict",
            "cluster",
            "stale",
        ),
        "Slurm's node events (sacctmgr -P show event). Only events in which the node is DOWN "
        "are used, except planned reboots. If an event has no end, the node stays down. "
        "--attempts adds failures that are only in the records of jobs. Time 0 is the first "
        "failure.",
    ),
    "sacct": Format(
        _sacct,
        ("zone", "workload", "absent", "strict", "cluster"),
        "Attempts of jobs under Slurm that ended with NODE_FAIL (sacct -P -X -D), for clusters "
        "without node events. Time 0 is the first failure.",
    ),
    "csv": Format(
        _csv,
        ("strict", "zone", "workload", "absent"),
        "A table with columns node,down,up. Times are seconds from time 0, Unix times, or ISO "
        "dates; with Unix times or dates, time 0 is midnight of the day of the first failure. "
        "If up is empty, the node never returns. Nodes are numbers, names, or lists of names such "
        "as n[01-04]. Names are numbered in order of appearance. With --workload, names and time 0 "
        "are those of the workload.",
    ),
}


def read_record(form: str, path: Path, options: ReaderOptions) -> Record:
    """Read a record in this format. With 'auto', detect the format."""
    if form == AUTO:
        form = detected(path)
    if form == EVENTS:
        raise InputError("is already an event file", str(path), "a failure record")
    if form not in FORMATS:
        raise unknown_name("format", form, [AUTO, *FORMATS])
    for name in ReaderOptions.__struct_fields__:
        if getattr(options, name) not in (None, ()) and name not in FORMATS[form].takes:
            takers = " or ".join(other for other, row in FORMATS.items() if name in row.takes)
            option = f"--{name.removesuffix('_s').replace('_', '-')}"
            raise InputError(f"has no effect with --format {form}", option, f"--format {takers}")
    return FORMATS[form].read(path, options)


DETECTED = (LANL, MIRA_RAS, FTA, SACCTMGR, SACCT, PLAIN, EVENTS)
"""The formats that are detected."""


def detected(path: Path) -> str:
    """Return the format of a failure record, or `EVENTS`."""
    form = detect.detected(path)
    if form not in DETECTED:
        expected = "a record in a known format, or its format with --format"
        raise InputError("its format is not recognised", str(path), expected)
    return form


@contextmanager
def rejecting_records(path: Path) -> Iterator[None]:
    """Read an event file in the block. If this fails because it is a record, the error says so."""
    try:
        yield
    except InputError:
        form = _detected_or_none(path)
        if form in (None, EVENTS):
            raise
        expected = "an event file; 'rebat failures import' reads failure records"
        raise InputError(f"is a failure record ({form})", str(path), expected) from None


def _detected_or_none(path: Path) -> str | None:
    try:
        return detected(path)
    except InputError:
        return None
