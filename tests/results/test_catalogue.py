# SPDX-License-Identifier: Apache-2.0
"""Each metric has one row in the catalogue, which tables, figures and documents read."""

from __future__ import annotations

import pytest

from rebat.core.errors import InputError
from rebat.results.catalogue import (
    CATALOGUE,
    FURTHER,
    NODE_TIME,
    RATIOS,
    RECORDED,
    USUAL,
    columns,
    metric,
)
from rebat.results.measures.summary import RunSummary
from rebat.results.metric import FORMS, metrics_of

ROWS = (*CATALOGUE, *FURTHER)


def test_every_metric_of_a_run_has_a_row() -> None:
    names = {row.name for row in ROWS}
    recorded = {row.name for row in metrics_of(RunSummary)}
    assert recorded == {row.name for row in ROWS if not row.derived} == {*RECORDED}
    assert len(ROWS) == len(names)


def test_every_row_says_what_the_metric_is() -> None:
    assert [row.name for row in ROWS if not row.definition] == []


def test_node_time_is_split_without_a_gap() -> None:
    fields = {name for name in RECORDED if name.startswith("platform_")}
    assert {row.name for row in NODE_TIME} == fields - {"platform_total", "platform_idle_share"}


def test_what_is_shown_by_default_is_in_the_catalogue() -> None:
    for name, _ in (*USUAL, *RATIOS):
        assert metric(name).title


def test_a_partition_stands_for_the_star() -> None:
    assert metric("partition_states_gpu_full").title == "  full in partition gpu"
    with pytest.raises(InputError, match="unknown metric 'partition_states__full'"):
        metric("partition_states__full")


def test_columns_without_a_size_class_are_of_all_jobs() -> None:
    recorded = [("flow_max_s", "all"), ("steals", None)]
    assert columns([" flow_max_s", "steals"], recorded) == (("flow_max_s", "all"), ("steals", None))
    with pytest.raises(InputError, match=r"--columns.*expected a metric of comparison.csv"):
        columns(["stels"], recorded)


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [("share", 0.5, "50.00 %"), ("share", 0.0001, "0.01 %"), ("factor", 1.2345, "1.23"),
     ("time", 90.0, "1.5 min"), ("count", 3.0, "3"), ("count", 63.416, "63.42"),
     ("count", None, "")],
)  # fmt: skip
def test_values_are_written_by_their_unit(unit, value, text) -> None:
    assert FORMS[unit](value) == text
