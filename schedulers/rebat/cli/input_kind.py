# SPDX-License-Identifier: Apache-2.0
"""Errors for files of the wrong kind: failures instead of jobs, or jobs instead of failures."""

from __future__ import annotations

from pathlib import Path

from rebat.core.errors import InputError

OF_BOTH = ("sacct", "csv")
"""Formats of failure records that may also contain jobs."""


def reject_failures(path: Path) -> None:
    """Raise InputError if a file for 'rebat workload import' contains failures or a workload."""
    from rebat.models.failures.records.formats import detected
    from rebat.records.detect import EVENTS

    if _is_workload(path):
        raise _misplaced(path, "a workload", "a trace; 'rebat run' reads workloads directly")
    try:
        form = detected(path)
    except InputError:
        return
    if form == EVENTS and _is_event(path):
        raise _misplaced(path, "an event file", "jobs; 'rebat run --failures' reads event files")
    if form not in (EVENTS, *OF_BOTH):
        expected = "jobs; 'rebat failures import' reads failures"
        raise _misplaced(path, f"a failure record ({form})", expected)


def reject_jobs(path: Path) -> None:
    """Raise InputError if a file for 'rebat failures import' contains jobs."""
    from rebat.workloads.importing import ACCOUNTING, detected

    if _is_workload(path):
        raise _misplaced(path, "a workload", "a failure record")
    if _is_event(path):
        return
    try:
        form = detected(path)
    except InputError:
        return
    if form != ACCOUNTING[0]:
        expected = "failures; 'rebat workload import' reads jobs"
        raise _misplaced(path, f"a trace of jobs ({form})", expected)


def _misplaced(path: Path, kind: str, expected: str) -> InputError:
    return InputError(f"is {kind}", str(path), expected)


def _start(path: Path) -> str:
    """Return the first characters of a text file. For other files, return an empty text."""
    from rebat.records.sources import opened

    try:
        with opened(path) as text:
            return text.read(4096)
    except InputError:
        return ""


def _is_workload(path: Path) -> bool:
    from rebat.workloads.importing import is_parquet
    from rebat.workloads.parquet_workload import is_workload

    return is_workload(path) if is_parquet(path) else '"nb_res"' in _start(path)


def _is_event(path: Path) -> bool:
    first = _start(path).lstrip().partition("\n")[0]
    return first.startswith("{") and '"type"' in first and '"timestamp"' in first
