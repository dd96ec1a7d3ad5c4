# SPDX-License-Identifier: Apache-2.0
"""Workloads of delay jobs from plain columns, for importers and generators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rebat.core.compact_jobs import CompactJobs
from rebat.core.jobs import Job, Workload, batsim_number


def delay_profiles(run_us: Sequence[int]) -> tuple[list[str], dict[str, dict[str, Any]]]:
    """Return a Batsim delay profile for each distinct run time. Its name contains the run time.

    Returns
    -------
    names : list of str
        The profile of each job, in the order of ``run_us``.
    profiles : dict
        The profiles by name, in order of first use.

    Examples
    --------
    >>> delay_profiles([487_000_000])
    (['delay487'], {'delay487': {'type': 'delay', 'delay': 487}})
    """
    name_of = {us: f"delay{batsim_number(us)}" for us in run_us}
    profiles = {name: {"type": "delay", "delay": batsim_number(us)} for us, name in name_of.items()}
    return [name_of[us] for us in run_us], profiles


def delay_workload(
    name: str,
    n_nodes: int,
    *,
    ids: Sequence[str],
    sizes: Sequence[int],
    submit_us: Sequence[int],
    walltime_us: Sequence[int | None],
    run_us: Sequence[int],
    extra: Sequence[dict[str, Any]] | None = None,
    notes: Sequence[str] = (),
) -> Workload:
    """Return a workload of delay jobs from columns of equal length.

    Times are in microseconds. A walltime of None means no walltime. ``extra`` contains additional
    fields of the JSON of each job.
    """
    names, profiles = delay_profiles(run_us)
    more = [{}] * len(ids) if extra is None else extra
    columns = zip(ids, sizes, submit_us, walltime_us, names, more, strict=True)
    jobs = CompactJobs(Job(*row) for row in columns)
    return Workload(name, n_nodes, jobs, profiles, tuple(notes))
