# SPDX-License-Identifier: Apache-2.0
"""The recorded waits of a workload, from the folder of its recorded schedule."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError
from rebat.core.jobs import Workload
from rebat.library.calibration.distance import Floats, Mask, RecordedWaits
from rebat.results.files.run_folder import read_source
from rebat.results.files.tables import Rows

FOLDER, FILE, SUMMARY = "recorded", "rebat_jobs.csv", "summary.json"
Texts = npt.NDArray[np.object_]
COLUMNS = ("job_id", "submission_time", "first_start", "size")

FEWEST = 100
"""Minimum number of jobs for a comparison."""


def read_waits(folder: Path, workload: Workload) -> RecordedWaits:
    """Return the waits of the jobs of a workload in its recorded schedule.

    The record is divided into `distance.N_PARTS` equal parts. Jobs of the first part are left out,
    because the simulated machine is empty at the beginning, unlike the real machine.
    """
    path = next((p for p in (folder / FOLDER / FILE, folder / FILE) if p.is_file()), None)
    if path is None:
        expected = "a folder of 'rebat workload import --schedule'"
        raise InputError("has no recorded schedule", str(folder), expected)
    rows = Rows(path, COLUMNS)
    numbers = [np.array(rows.texts(name), dtype=object) for name in COLUMNS[1:]]
    started = numbers[1] != ""
    submit_s, start_s, size = (_numbers(rows, column, started) for column in numbers)
    ids = np.array(rows.names("job_id"), dtype=object)[started]
    queues = np.array(rows.names("queue") if "queue" in rows else [""] * len(rows), dtype=object)
    sizes = size.astype(np.int64)
    waits = RecordedWaits(ids, submit_s, start_s - submit_s, sizes, queues[started])
    names = {job.id for job in workload.jobs}
    ours = waits.of(np.array([name in names for name in ids], dtype=bool))
    if len(ours.ids) < FEWEST:
        problem = f"has {len(ours.ids)} jobs of {workload.name} that started"
        raise InputError(problem, str(path), f"at least {FEWEST} jobs of the same import")
    return ours.of(ours.part > 0)


def _numbers(rows: Rows, column: Texts, started: Mask) -> Floats:
    try:
        numbers: Floats = column[started].astype(np.float64)
    except ValueError:
        raise InputError("a number is invalid", str(rows.path), "a file written by rebat") from None
    return numbers


class RecordedUse(NamedTuple):
    """Use of the nodes in a record.

    Attributes
    ----------
    utilisation : float
        Useful node time, divided by the node time of all nodes, or NaN if it is unknown.
    shared : int
        Number of attempts that share nodes.
    """

    utilisation: float = math.nan
    shared: int = 0


def read_use(folder: Path) -> RecordedUse:
    """Return the use of nodes from the summary of a recorded schedule."""
    path = next((p for p in (folder / FOLDER / SUMMARY, folder / SUMMARY) if p.is_file()), None)
    if path is None:
        return RecordedUse()
    try:
        summary = msgspec.json.decode(path.read_bytes())
        platform = summary["metrics"]["platform"]
        return RecordedUse(
            float(platform["useful"] / platform["total"]), read_source(path.parent).shared_attempts
        )
    except (msgspec.DecodeError, KeyError, TypeError, ZeroDivisionError):
        return RecordedUse()
