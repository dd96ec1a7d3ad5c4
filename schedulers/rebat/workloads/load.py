# SPDX-License-Identifier: Apache-2.0
"""Reader and writer of workload files. The ending of the file name selects the format."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rebat.core.errors import InputError
from rebat.core.files import file_hash
from rebat.core.jobs import Workload
from rebat.records.forms import ALCF, SWF, TABLE
from rebat.workloads.batsim_json import read_workload, write_workload
from rebat.workloads.parquet_workload import is_workload, read_parquet, write_parquet

SITE_ENDING = ".toml"
"""Ending of the file of a site (see `workloads.site`)."""


def load_workload(path: Path, mapping: str | Path | None = None, **options: Any) -> Workload:
    """Read a workload or trace: ``.json``, ``.swf`` or ``.csv``, also ``.gz``, or ``.parquet``.

    A Parquet file contains either a workload (`save_workload`) or a table of jobs. A file ending in
    ``.toml`` is a site (see `workloads.site`).

    Parameters
    ----------
    path : Path
        The file.
    mapping : str or Path, optional
        Mapping of a table of jobs, see `rebat.records.tables.read_table`. With a mapping,
        the file name can have any ending.
    **options
        Options of the trace importers, see `rebat.workloads.trace.TraceOptions`. With a workload,
        they raise InputError.
    """
    path = Path(path)
    if mapping is not None:
        return _read_trace(path, TABLE, mapping=mapping, **options)
    return READERS[known_ending(path)](path, **options)


def known_ending(path: Path) -> str:
    """Return the ending of a file's name, without .gz. If it is unknown, raise InputError."""
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    if ending not in READERS:
        raise _unknown_kind(path)
    return ending


def _unknown_kind(path: Path) -> InputError:
    """Return an error that names the command for a trace, if the content is a trace."""
    from rebat.workloads.importing import detected_text

    try:
        form = detected_text(path)
    except InputError:
        form = None
    if form is None:
        return InputError("unknown kind of workload file", str(path), _KNOWN_ENDINGS)
    expected = "a workload; 'rebat workload import' reads traces"
    return InputError(f"is a trace of jobs ({form})", str(path), expected)


def workload_hash(path: Path) -> str:
    """Return a hash of all that determines a workload."""
    if path.suffix.lower() != SITE_ENDING:
        return file_hash(path)
    from rebat.workloads.site import site_hash

    return site_hash(path)


def save_workload(workload: Workload, path: Path) -> None:
    """Write a workload for Batsim (``.json``, ``.json.gz``) or, faster, as ``.parquet``."""
    write = write_parquet if path.suffix.lower() == ".parquet" else write_workload
    write(workload, path)


def _read_trace(path: Path, form: str, **options: Any) -> Workload:
    from rebat.workloads.importing import read_jobs  # workloads need no readers of records

    return read_jobs(path, form, **options)


def _read_json(path: Path, **options: Any) -> Workload:
    _check_no_options(path, options)
    return read_workload(path)


def _read_parquet(path: Path, **options: Any) -> Workload:
    if not is_workload(path):
        return _read_trace(path, TABLE, **options)
    _check_no_options(path, options)
    return read_parquet(path)


def _read_site(path: Path, checkpoints: bool = True, **options: Any) -> Workload:
    from rebat.workloads.site import site_jobs

    _check_no_options(path, options)
    return site_jobs(path, load_workload, checkpoints=checkpoints)


def _check_no_options(path: Path, options: dict[str, Any]) -> None:
    names = sorted(name for name, value in options.items() if value is not None)
    if names:
        raise InputError(
            f"option {', '.join(names)} has no effect on a workload",
            str(path),
            "a trace, or no options",
        )


READERS: dict[str, Callable[..., Workload]] = {
    ".json": _read_json,
    ".swf": partial(_read_trace, form=SWF),
    ".csv": partial(_read_trace, form=ALCF),
    ".parquet": _read_parquet,
    SITE_ENDING: _read_site,
}
_KNOWN_ENDINGS = "a name ending in .json, .swf or .csv, plain or with .gz, .parquet, or .toml"
