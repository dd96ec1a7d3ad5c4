# SPDX-License-Identifier: Apache-2.0
"""Detection of the format of a record from the names and values in its first lines."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from rebat.core.errors import InputError
from rebat.records.foreign import FIRST_LINES, reject_foreign
from rebat.records.forms import (
    ALCF,
    EVENTS,
    FTA,
    LANL,
    MIRA_RAS,
    PBS,
    PLAIN,
    SACCT,
    SACCTMGR,
    SWF,
    TABLE,
)
from rebat.records.mapping import detected_mapping, identifying, shipped_mappings
from rebat.records.pbs import RECORD
from rebat.records.slurm_rows import header_of
from rebat.records.sources import PARQUET, kind_of, opened

LANL_COLUMNS = ("System", "nodenumz", "Prob Started", "Prob Fixed")
PLAIN_COLUMNS = ("node", "down", "up")
FTA_FIELDS = 8
"""Least number of fields of a row of the Failure Trace Archive."""

_SACCT_JSON = re.compile(r'\{\s*(?:$|\}|"(?:jobs|meta|errors|warnings)")')
_NUMBERS = re.compile(r"\s*(?:-?\d+(?:\.\d+)?\s+){17}-?\d")


def detected(path: Path) -> str | None:
    """Return the format of a record of jobs or failures, or None if it is not recognised.

    A file that begins with more than `FIRST_LINES` comment lines is not recognised.
    A file whose name ends in .swf is a trace. All other formats are detected by the names of their
    columns, or by their values.
    """
    if Path(path.name.removesuffix(".gz")).suffix.lower() == ".swf":
        return SWF
    if kind_of(path) == PARQUET:
        return TABLE
    with opened(path) as text:
        lines = [line[:100_000] for line in islice(text, FIRST_LINES)]
    reject_foreign("".join(lines), str(path))
    return form_of(lines)


def form_of(lines: Iterable[str]) -> str | None:
    """Return the format of a text with these first lines, or None if no format fits."""
    for number, line in enumerate(lines):
        if number == 0 and line.startswith("#count="):
            return MIRA_RAS
        if not line.strip() or line.startswith("#"):
            continue
        return _by_begin(line) or _fta(line) or _by_names(line)
    return None


def split_header(line: str) -> tuple[str, list[str]]:
    """Return the separator of the columns of a table, and their names."""
    rows = [(delimiter, next(csv.reader([line], delimiter=delimiter), [])) for delimiter in ",;\t|"]
    delimiter, names = max(rows, key=lambda row: len(row[1]))
    return delimiter, [name.strip() for name in names]


def unusual(line: str) -> str:
    """Return why a header that is not recognised almost is one of a mapping, or an empty text."""
    delimiter, names = split_header(line)
    for name in shipped_mappings():
        needed = identifying(name)
        if needed <= {*names}:
            return f"its columns are separated by {delimiter!r}, those of {name} by commas"
        lower = {column.lower(): column for column in names}
        if {column.lower() for column in needed} <= lower.keys():
            wrong = next(column for column in sorted(needed) if column not in names)
            return f"its column {lower[wrong.lower()]} is called {wrong} in the mapping {name}"
    return ""


def _by_begin(line: str) -> str | None:
    first = line.lstrip()
    if first.startswith("{"):
        return SACCT if _SACCT_JSON.match(first) else EVENTS
    if first.startswith("["):
        return TABLE
    if first.startswith(";") or _NUMBERS.match(line):
        return SWF
    return PBS if RECORD.match(line.rstrip("\r\n")) else None


def _fta(line: str) -> str | None:
    """Return the format of the Failure Trace Archive, if the names or the values of a row fit."""
    fields = [field.strip() for field in line.rstrip("\r\n").split("\t")]
    if len(fields) < FTA_FIELDS:
        return None
    named = {"node_id", "event_type"} <= {field.lower() for field in fields}
    ids = all(fields[at].isdecimal() for at in (2, 3, 5))
    return FTA if named or (ids and re.match(r"\d", fields[6])) else None


def _by_names(line: str) -> str | None:
    columns = [name.strip() for name in next(csv.reader([line]), [])]
    if "COBALT_JOBID" in columns:
        return ALCF
    if set(columns) >= set(LANL_COLUMNS):
        return LANL
    if {name.lower() for name in split_header(line)[1]} >= set(PLAIN_COLUMNS):
        return PLAIN
    if detected_mapping(columns) is not None:
        return TABLE
    try:
        names = set(header_of(line, "")[1])
    except InputError:
        names = {name.lower() for name in re.findall(r"[A-Za-z]+", line)}
    if "nodename" in names and names & {"timestart", "start"}:
        return SACCTMGR
    return SACCT if names & {"jobid", "jobidraw"} else None
