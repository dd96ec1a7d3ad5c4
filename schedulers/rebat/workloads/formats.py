# SPDX-License-Identifier: Apache-2.0
"""The formats of traces and accounting records."""

from __future__ import annotations

from pathlib import Path

from rebat.core.errors import InputError
from rebat.records import detect
from rebat.records.detect import ALCF, AUTO, PBS, SACCT, SWF, TABLE
from rebat.records.sources import PARQUET, kind_of, opened

__all__ = ["ABOUT", "ACCOUNTING", "ALCF", "AUTO", "PBS", "SACCT", "SWF", "TABLE", "detected"]

ABOUT = {
    SWF: "Standard Workload Format of the Parallel Workloads Archive.",
    ALCF: "ALCF's DIM_JOB_COMPOSITE CSV.",
    SACCT: "Slurm's sacct -P with any field order and delimiter, or sacct --json.",
    PBS: "OpenPBS accounting logs of one or more days.",
    TABLE: "A table of jobs with any columns, in CSV, JSON or Parquet, and a mapping.",
}
ACCOUNTING = (SACCT, PBS)


def detected(path: Path) -> str:
    """Return the format of a record of jobs, detected from its name and its first lines.

    A file is detected as a table of jobs if it is a Parquet file, a JSON list, or a CSV file with
    the columns of a mapping that rebat includes.
    """
    form = detect.detected(path)
    if form not in ABOUT:
        expected = f"--format {', '.join(ABOUT)}"
        raise InputError("its format is not recognised", str(path), expected)
    return form


def detected_text(path: Path) -> str | None:
    """Return the format of jobs in a file that is neither JSON nor Parquet, or None."""
    with opened(path) as text:
        lines = [line[:100_000] for _, line in zip(range(detect.FIRST_LINES), text, strict=False)]
    first = next((line for line in lines if line.strip()), "")
    form = None if first.lstrip().startswith(("{", "[")) else detect.form_of(lines)
    return form if form in ABOUT else None


def is_parquet(path: Path) -> bool:
    """Return whether a file is a Parquet file."""
    return kind_of(path) == PARQUET
