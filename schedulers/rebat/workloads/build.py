# SPDX-License-Identifier: Apache-2.0
"""Workloads of delay jobs from plain columns, for importers and generators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rebat.core.job_table import ExtraTable, Jobs
from rebat.core.jobs import Workload, batsim_number
from rebat.core.table import Texts, distinct


def delay_profiles(
    run_us: npt.ArrayLike,
) -> tuple[npt.NDArray[np.int64], dict[str, dict[str, Any]]]:
    """Return a Batsim delay profile for each distinct run time. Its name contains the run time.

    Returns
    -------
    codes : int64 array, shape (n,)
        The position of each job's profile in ``profiles``, in the order of ``run_us``.
    profiles : dict
        The profiles by name, in order of first use.

    Examples
    --------
    >>> delay_profiles([487_000_000])
    (array([0]), {'delay487': {'type': 'delay', 'delay': 487}})
    """
    run_us = np.asarray(run_us, np.int64)
    rows, codes = distinct(run_us)
    seconds = [*map(batsim_number, run_us[rows].tolist())]
    profiles = {f"delay{s}": {"type": "delay", "delay": s} for s in seconds}
    places = {
        name: place for place, name in enumerate(profiles)
    }  # the longest round to equal names
    return np.array([places[f"delay{s}"] for s in seconds], np.int64)[codes], profiles


def delay_workload(
    name: str,
    n_nodes: int,
    *,
    ids: Sequence[str],
    sizes: npt.ArrayLike,
    submit_us: npt.ArrayLike,
    walltime_us: npt.ArrayLike,
    run_us: npt.ArrayLike,
    extra: Sequence[dict[str, Any]] | None = None,
    notes: Sequence[str] = (),
) -> Workload:
    """Return a workload of delay jobs from columns of equal length.

    Times are in microseconds. A walltime of -1 means no walltime. ``extra`` contains additional
    fields of the JSON of each job.
    """
    codes, profiles = delay_profiles(run_us)
    extras, more = ExtraTable(), [{}] * len(ids) if extra is None else extra
    extra_codes = np.array([extras.code(fields) for fields in more], np.int64)
    columns = [*map(np.asarray, (sizes, submit_us, walltime_us)), codes, extra_codes]
    jobs = Jobs(Texts.of(ids), columns, [*profiles], extras.fields)
    return Workload(name, n_nodes, jobs, profiles, tuple(notes))
