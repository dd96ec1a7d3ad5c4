# SPDX-License-Identifier: Apache-2.0
"""Reading of workload files; the ending of the file name selects the reader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rebat.core.errors import InputError
from rebat.core.jobs import Workload
from rebat.workloads.alcf import read_alcf
from rebat.workloads.batsim_json import read_workload
from rebat.workloads.swf import read_swf
from rebat.workloads.tables.read import read_table


def load_workload(path: Path, mapping: str | Path | None = None, **options: Any) -> Workload:
    """Read a workload or trace: ``.json``, ``.swf`` or ``.csv``, also ``.gz``, or ``.parquet``.

    Parameters
    ----------
    path : Path
        The file.
    mapping : str or Path, optional
        Mapping of a table of jobs with any ending, see `rebat.workloads.tables.read.read_table`.
    **options
        Options of the trace importers, see `rebat.workloads.trace.TraceOptions`. A Batsim
        workload (``.json``) accepts none.

    Raises
    ------
    InputError
        For an unknown ending, and for errors in the file.
    """
    path = Path(path)
    if mapping is not None:
        return read_table(path, mapping=mapping, **options)
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    if ending not in READERS:
        raise InputError("unknown kind of workload file", str(path), _KNOWN_ENDINGS)
    return READERS[ending](path, **options)


def _read_json(path: Path, **options: Any) -> Workload:
    names = sorted(name for name, value in options.items() if value is not None)
    if names:
        raise InputError(
            f"option {', '.join(names)} has no effect on a Batsim workload",
            str(path),
            "a trace, or no options",
        )
    return read_workload(path)


READERS: dict[str, Callable[..., Workload]] = {
    ".json": _read_json,
    ".swf": read_swf,
    ".csv": read_alcf,
    ".parquet": read_table,
}
_KNOWN_ENDINGS = "a name ending in .json, .swf or .csv, plain or with .gz, or .parquet"
