# SPDX-License-Identifier: Apache-2.0
"""The formats of traces and accounting records, and their detection."""

from __future__ import annotations

import re
from pathlib import Path

from rebat.accounting.pbs import RECORD
from rebat.core.errors import InputError
from rebat.core.files import open_text

AUTO = "auto"

ABOUT = {
    "swf": "Standard Workload Format of the Parallel Workloads Archive.",
    "alcf": "ALCF's DIM_JOB_COMPOSITE CSV.",
    "sacct": "Slurm's sacct -P with any field order and delimiter, or sacct --json.",
    "pbs": "OpenPBS accounting logs of one or more days.",
}
ACCOUNTING = ("sacct", "pbs")

_SACCT = re.compile(r"\s*([A-Za-z]+\W)*\"?JobID(Raw)?\b", re.IGNORECASE)


def detected(path: Path) -> str:
    """Return the format of a trace: by the ending .swf, otherwise by its first line.

    Raises
    ------
    InputError
        If the format is not recognised, or the file cannot be read.
    """
    if Path(path.name.removesuffix(".gz")).suffix.lower() == ".swf":
        return "swf"
    with open_text(path, errors="replace") as text:
        first = next((line for line in text if line.strip()), "")[:100_000]
    if "COBALT_JOBID" in first:
        return "alcf"
    if RECORD.match(first.rstrip("\r\n")):
        return "pbs"
    if first.lstrip().startswith(("{", ";")):
        return "sacct" if first.lstrip().startswith("{") else "swf"
    if _SACCT.match(first):
        return "sacct"
    expected = f"--format {', '.join(ABOUT)}"
    raise InputError("its format is not recognised", str(path), expected)
