# SPDX-License-Identifier: Apache-2.0
"""Detection of failure records, and of event files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rebat.core.errors import InputError
from rebat.records import detect
from rebat.records.detect import AUTO, EVENTS, FTA, LANL, MIRA_RAS, PLAIN, SACCT, SACCTMGR

__all__ = ["AUTO", "EVENTS", "detected", "rejecting_records"]

FORMATS = (LANL, MIRA_RAS, FTA, SACCTMGR, SACCT, PLAIN, EVENTS)


def detected(path: Path) -> str:
    """Return the format of a failure record, or `EVENTS`."""
    form = detect.detected(path)
    if form not in FORMATS:
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
