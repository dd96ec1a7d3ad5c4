# SPDX-License-Identifier: Apache-2.0
"""Detection of the format of a failure record from its first lines."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from rebat.core.errors import InputError
from rebat.models.failures.records import fta, lanl, plain
from rebat.models.failures.records.record import opened

AUTO = "auto"
"""Value of the option ``format`` for automatic detection."""

EVENTS = "events"
"""The format of Batsim's own event files."""

FIRST_LINES = 100
"""Number of lines that are read. A record that begins with more comment lines is not recognised."""


def detected(path: Path) -> str:
    """Return the format of a record: a name of `formats.FORMATS`, or `EVENTS`.

    Raises
    ------
    InputError
        If the first lines match no format, or the file cannot be read.
    """
    with opened(path) as text:
        form = _form(islice(text, FIRST_LINES))
    if form is None:
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


def _form(lines: Iterable[str]) -> str | None:
    for number, line in enumerate(lines):
        if number == 0 and line.startswith("#count="):
            return "mira-ras"
        if not line.strip() or line.startswith("#"):
            continue
        if line.lstrip().startswith("{"):
            return EVENTS
        if line.count("\t") + 1 >= fta.LEAST_FIELDS:
            return "fta"
        return _slurm(line) or _by_header(line)
    return None


def _slurm(line: str) -> str | None:
    """Return the format of Slurm's parsable output, detected from its line of column names.

    Return None for any other line.
    """
    names = {name.lower() for name in re.findall(r"[A-Za-z]+", line)}
    if "nodename" in names and names & {"timestart", "start"}:
        return "sacctmgr"
    return "sacct" if names & {"jobid", "jobidraw"} and "submit" in names else None


def _by_header(line: str) -> str | None:
    columns = {name.strip() for name in next(csv.reader([line]), [])}
    for form, expected in (("lanl", lanl.COLUMNS), ("csv", plain.COLUMNS)):
        if columns.issuperset(expected):
            return form
    return None
