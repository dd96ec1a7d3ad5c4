# SPDX-License-Identifier: Apache-2.0
"""Results of runs, workloads and summaries as pandas DataFrames, with times in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rebat.core.table import Texts
from rebat.core.units import FOREVER_US, to_s
from rebat.results.comparison import COMPARED, MetricRow, Runs
from rebat.results.comparison import compared as row_of
from rebat.results.files.run_csv import attempt_columns
from rebat.results.files.tables import plain_columns
from rebat.results.measures.jobs import GROUP_COLUMNS, JobRow, group_rows
from rebat.results.metric import Name
from rebat.runs.single import RunResult

if TYPE_CHECKING:
    from pandas import DataFrame
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rebat.api import sheets
from rebat.core.errors import InputError, short
from rebat.core.files import read_text
from rebat.core.jobs import Workload
from rebat.results.catalogue import VERDICT
from rebat.results.comparison import rows, verdict
from rebat.results.files.run_folder import SUMMARY, policy_of, run_folders
from rebat.results.measures.summary import RunSummary, as_json
from rebat.results.metric import flat_metrics
from rebat.workloads.batsim_json import workload_of

_NUMBERS = ("mean", "low", "high", "ratio", "ratio_low", "ratio_high")


def jobs(results: Sequence[RunResult]) -> DataFrame:
    """Return a row per policy and job, with the columns of rebat_jobs.csv and rebat_sizes.csv."""
    import pandas as pd

    columns = JobRow.__struct_fields__
    parts = [
        pd.DataFrame({name: result.rows.column(name) for name in columns}) for result in results
    ]
    return _with_policies(parts, results)


def owners(results: Sequence[RunResult], column: str) -> DataFrame:
    """Return a row per policy and user (or queue), with the columns of rebat_users.csv."""
    import pandas as pd

    names = [column, *GROUP_COLUMNS]
    parts = [pd.DataFrame(group_rows(run.rows, column), columns=names) for run in results]
    return _with_policies(parts, results)


def attempts(results: Sequence[RunResult]) -> DataFrame:
    """Return a row per policy and attempt, with the columns of rebat_attempts.csv."""
    import pandas as pd

    parts = []
    for result in results:
        columns = plain_columns(attempt_columns(result.ledger), slice(None))
        lists = {name: [*texts] for name, texts in columns.items() if isinstance(texts, Texts)}
        parts.append(pd.DataFrame(columns | lists))
    return _with_policies(parts, results)


def nodes(results: Sequence[RunResult]) -> DataFrame:
    """Return a row per policy and outage: ``node``, ``down``, ``up`` (NaN if never repaired)."""
    import pandas as pd

    parts = []
    for result in results:
        outages = result.ledger.node_events.outages(FOREVER_US).rows()
        rows = [
            (node, to_s(down), to_s(up) if up < FOREVER_US else float("nan"))
            for down, node, up in sorted((down, node, up) for node, down, up in outages)
        ]
        parts.append(pd.DataFrame(rows, columns=["node", "down", "up"]))
    return _with_policies(parts, results)


def metrics(seeds: Runs[str]) -> DataFrame:
    """Return a row per seed, policy, metric and size class."""
    import pandas as pd

    return pd.DataFrame(seeds, columns=["seed", "policy", "metric", "size_class", "value"])


def compared(rows: Sequence[MetricRow]) -> DataFrame:
    """Return means and ratios to the first policy, with intervals, as in comparison.csv."""
    import pandas as pd

    table = pd.DataFrame(map(row_of, rows), columns=list(COMPARED))
    return table.astype(dict.fromkeys(_NUMBERS, float))


def means(
    rows: Sequence[MetricRow], policies: list[str], texts: Sequence[str], metrics: Sequence[Name]
) -> DataFrame:
    """Return the means, with a row per policy and a column per metric. Missing means are NaN."""
    import pandas as pd

    by = {(row.policy, row.metric): row.value.mean for row in rows}
    columns = {
        text: [by.get((policy, name)) for policy in policies]
        for text, name in zip(texts, metrics, strict=True)
    }
    return pd.DataFrame(columns, index=pd.Index(policies, name="policy"))


def _with_policies(parts: Sequence[DataFrame], results: Sequence[RunResult]) -> DataFrame:
    import pandas as pd

    named = [part.assign(policy=result.policy) for part, result in zip(parts, results, strict=True)]
    table = pd.concat(named, ignore_index=True)
    return table[["policy", *(name for name in table.columns if name != "policy")]]


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


MOST_RUNS = 1000
"""Maximum number of policies in a folder."""


def runs_in(path: Path) -> list[Path]:
    """Return the folders of the policies in a result folder.

    Return an empty list for other folders.
    """
    try:
        return run_folders(path, most=MOST_RUNS)
    except InputError:
        return []


def compared_summaries(folders: Sequence[Path]) -> str:
    """Return the verdict and the table of several runs, with changes relative to the first run."""
    summaries = {name: _summary(folder) for name, folder in _named(folders).items()}
    sizes = {name: summary.n_nodes for name, summary in summaries.items()}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} {n_nodes}" for name, n_nodes in sizes.items())
        problem = f"the machines have different numbers of nodes: {listed}"
        raise InputError(problem, expected="runs on the same machine")
    seeds = Runs(list(summaries))
    for name, summary in summaries.items():
        seeds.add(0, name, flat_metrics(as_json(summary)))
    table = list(rows(seeds))
    if len(summaries) > sheets.MANY_POLICIES:
        sheet = sheets.by_policy(table, seeds, VERDICT)
    else:
        sheet = sheets.by_metric(summaries, others_in="summary.json of each policy")
    return f"{verdict(table, seeds)}\n\n{sheet.text()}{_jobs(summaries)}"


def _named(folders: Sequence[Path]) -> dict[str, Path]:
    """Return the folders by name of policy or, if names are not unique, by path."""
    names = [policy_of(folder) for folder in folders]
    counts = Counter(names)
    return {
        name if counts[name] == 1 else str(folder): folder
        for name, folder in zip(names, folders, strict=True)
    }


def _summary(folder: Path) -> RunSummary:
    path = folder / SUMMARY
    try:
        content = msgspec.json.decode(read_text(path))
        return msgspec.convert(content["metrics"], RunSummary)
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        problem = f"has no field {error}" if isinstance(error, KeyError) else f"is invalid: {error}"
        raise InputError(problem, str(path), "a summary of this version of rebat") from None


def _jobs(summaries: Mapping[str, RunSummary]) -> str:
    """Return a line about the numbers of jobs. It is empty if these numbers are equal."""
    jobs = {name: summary.jobs for name, summary in summaries.items()}
    if len(set(jobs.values())) == 1:
        return ""
    numbers = ", ".join(f"{name} {n_jobs}" for name, n_jobs in jobs.items())
    return f"The runs have different numbers of jobs: {numbers}.\n"
