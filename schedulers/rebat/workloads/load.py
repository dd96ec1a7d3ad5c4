# SPDX-License-Identifier: Apache-2.0
"""One door for every workload file: the reader is chosen by the file's name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rebat.core.errors import InputError
from rebat.core.jobs import Workload
from rebat.workloads.alcf import read_alcf
from rebat.workloads.batsim_json import read_workload
from rebat.workloads.swf import read_swf


def load_workload(path: Path, **options: Any) -> Workload:
    """Read a workload or trace: ``.json``, ``.swf`` or ``.csv``, each also ``.gz``.

    Parameters
    ----------
    path : Path
        The file.
    **options
        Options of the trace importers, see `rebat.workloads.trace.TraceOptions`. A Batsim
        workload (``.json``) is taken as it is and accepts none.

    Raises
    ------
    InputError
        For an ending that is not known, and for whatever the reader refuses.
    """
    path = Path(path)
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    if ending not in READERS:
        raise InputError("cannot tell the kind of workload", str(path), _KNOWN_ENDINGS)
    return READERS[ending](path, **options)


def _read_json(path: Path, **options: Any) -> Workload:
    given = sorted(name for name, value in options.items() if value is not None)
    if given:
        raise InputError(
            f"option {', '.join(given)} does not apply to a Batsim workload",
            str(path),
            "trace options with a .swf or .csv trace only",
        )
    return read_workload(path)


READERS: dict[str, Callable[..., Workload]] = {
    ".json": _read_json,
    ".swf": read_swf,
    ".csv": read_alcf,
}
_KNOWN_ENDINGS = "a name ending in .json, .swf or .csv, plain or with .gz"
