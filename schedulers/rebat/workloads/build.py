# SPDX-License-Identifier: Apache-2.0
"""From plain arrays to a workload of delay jobs, as every importer and generator needs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rebat.core.jobs import Job, Workload, batsim_number


def delay_profiles(run_us: Sequence[int]) -> tuple[list[str], dict[str, dict[str, Any]]]:
    """A Batsim delay profile per distinct run time, named after it.

    Returns
    -------
    names : list of str
        The profile of each job, in the order given.
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
    """A workload of delay jobs from one column per field, all of the same length.

    Times are in microseconds; a walltime of None means no bound. ``extra``: further fields of each
    job's JSON.
    """
    names, profiles = delay_profiles(run_us)
    more = [{}] * len(ids) if extra is None else extra
    columns = zip(ids, sizes, submit_us, walltime_us, names, more, strict=True)
    jobs = tuple(Job(*row) for row in columns)
    return Workload(name, n_nodes, jobs, profiles, tuple(notes))
