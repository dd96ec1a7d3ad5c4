# SPDX-License-Identifier: Apache-2.0
"""Results of runs as pandas DataFrames, with times in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rebat.core.table import Texts
from rebat.core.units import FOREVER_US, to_s
from rebat.results.comparison import COMPARED, MetricRow, Seeds
from rebat.results.comparison import compared as row_of
from rebat.results.files.run_csv import attempt_columns
from rebat.results.files.tables import plain_columns
from rebat.results.measures.jobs import GROUP_COLUMNS, JobRow, group_rows
from rebat.results.metric import Name
from rebat.runs.single import RunResult

if TYPE_CHECKING:
    from pandas import DataFrame

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


def metrics(seeds: Seeds) -> DataFrame:
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
