# SPDX-License-Identifier: Apache-2.0
"""Workloads from pandas DataFrames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rebat.core.errors import InputError, short
from rebat.core.jobs import Workload
from rebat.workloads.batsim_json import workload_of

if TYPE_CHECKING:
    from pandas import DataFrame

FIELDS = {"job_id": "id", "size": "res", "submission_time": "subtime", "walltime": "walltime"}
"""Columns of a table of jobs, each with the corresponding field in Batsim's JSON."""

REQUIRED = ("job_id", "size", "submission_time", "run_time")


def workload_of_table(table: DataFrame, n_nodes: int, name: str = "table") -> Workload:
    """Create a workload from a table with one row per job.

    Parameters
    ----------
    table : DataFrame
        Columns ``job_id``, ``size`` (nodes), ``submission_time``, ``run_time`` and optionally
        ``walltime`` (seconds). If the walltime is missing, the job has no walltime. Other columns
        are additional fields of the jobs. Missing values are left out.
    n_nodes : int
        Number of nodes of the machine.
    name : str
        Name of the workload.
    """
    missing = [column for column in REQUIRED if column not in table.columns]
    if missing:
        expected = f"the columns {', '.join(REQUIRED)}"
        raise InputError(f"has no column {missing[0]!r}", "workload", expected)
    if isinstance(n_nodes, bool) or not isinstance(n_nodes, int):
        raise InputError(f"is {short(n_nodes)}", "n_nodes", "the number of nodes of the machine")
    columns = [str(column) for column in table.columns]
    rows = (dict(zip(columns, row, strict=True)) for row in table.itertuples(index=False))
    jobs, profiles = [], dict[str, Any]()
    for row in rows:
        present = {key: _plain(value) for key, value in row.items() if _is_present(value)}
        jobs.append(_job(present, profiles))
    return workload_of(name, {"nb_res": n_nodes, "jobs": jobs, "profiles": profiles})


def _job(row: Mapping[str, Any], profiles: dict[str, Any]) -> dict[str, Any]:
    """Return a job as Batsim's JSON, and add its profile to ``profiles``."""
    run_s = row.get("run_time")
    if run_s is None:
        expected = "the run time in seconds"
        raise InputError("is missing", f"job {row.get('job_id')}: run_time", expected)
    profile = f"delay{run_s}"
    profiles[profile] = {"type": "delay", "delay": run_s}
    job = {FIELDS.get(key, key): value for key, value in row.items() if key != "run_time"}
    return job | {"profile": profile}


def _plain(value: Any) -> Any:
    """Convert a value to a JSON type: NumPy numbers to int or float, whole numbers to int."""
    value = value.item() if hasattr(value, "item") else value
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_present(value: Any) -> bool:
    import pandas as pd

    return isinstance(value, list | dict) or not pd.isna(value)
