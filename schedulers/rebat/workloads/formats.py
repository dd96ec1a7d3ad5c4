# SPDX-License-Identifier: Apache-2.0
"""The formats of traces and accounting records, and their detection."""

from __future__ import annotations

import re
from pathlib import Path

from rebat.accounting.pbs import RECORD
from rebat.core.errors import InputError
from rebat.core.files import open_text

AUTO = "auto"
TABLE = "table"

ABOUT = {
    "swf": "Standard Workload Format of the Parallel Workloads Archive.",
    "alcf": "ALCF's DIM_JOB_COMPOSITE CSV.",
    "sacct": "Slurm's sacct -P with any field order and delimiter, or sacct --json.",
    "pbs": "OpenPBS accounting logs of one or more days.",
    TABLE: "A table of jobs with any columns, in CSV, JSON or Parquet, and a mapping.",
}
ACCOUNTING = ("sacct", "pbs")

_SACCT = re.compile(r"\s*([A-Za-z]+\W)*\"?JobID(Raw)?\b", re.IGNORECASE)


def detected(path: Path) -> str:
    """Return the format of a trace.

    The format is detected from the ending .swf of the name, or from the first line.

    A file is detected as a table of jobs if it is a Parquet file, a JSON list, or a CSV file with
    the columns of a mapping that rebat includes.

    Raises
    ------
    InputError
        If the format is not recognised, or the file cannot be read.
    """
    if Path(path.name.removesuffix(".gz")).suffix.lower() == ".swf":
        return "swf"
    if is_parquet(path):
        return TABLE
    form = _form_of(_first_line(path))
    if form is None:
        expected = f"--format {', '.join(ABOUT)}"
        raise InputError("its format is not recognised", str(path), expected)
    return form


def detected_text(path: Path) -> str | None:
    """Return the format of a trace that is neither JSON nor Parquet, or None for another file.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    first = _first_line(path)
    return None if first.lstrip().startswith(("{", "[")) else _form_of(first)


def _first_line(path: Path) -> str:
    with open_text(path, errors="replace") as text:
        return next((line for line in text if line.strip()), "")[:100_000]


def _form_of(first: str) -> str | None:
    """Return the format of a text, detected from its first line.

    Return None if no format matches.
    """
    if "COBALT_JOBID" in first:
        return "alcf"
    if RECORD.match(first.rstrip("\r\n")):
        return "pbs"
    if first.lstrip().startswith("[") or _has_mapping(first):
        return TABLE
    if first.lstrip().startswith(";"):
        return "swf"
    return "sacct" if first.lstrip().startswith("{") or _SACCT.match(first) else None


def is_parquet(path: Path) -> bool:
    """Return whether a file is a Parquet file."""
    from rebat.workloads.tables.sources import PARQUET, kind_of

    return kind_of(path) == PARQUET


def _has_mapping(header: str) -> bool:
    from rebat.workloads.tables.mapping_file import detected_mapping

    return detected_mapping([name.strip() for name in header.split(",")]) is not None
