# SPDX-License-Identifier: Apache-2.0
"""Attempts in accounting records: the bounds of requeues, of down intervals and of corrections."""

from __future__ import annotations

import math
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from rebat.core.errors import InputError
from rebat.records.attempts import (
    REQUEUE_CUT_S,
    REQUEUE_S,
    AttemptsOfNodes,
    corrections_of,
    jobs_of,
    merged_downs,
)
from rebat.records.clock import Clock
from rebat.records.node_events import DownRow
from rebat.records.table import Problems, Rows

COLUMNS = ("submit", "start", "end")
NAN = math.nan


def table(*rows: tuple[float, float, float], states: str = "", users: str = "") -> Rows:
    """Return attempts of job 7 on node n1 (submission, start, end)."""
    numbers = {
        name: np.array(column, float)
        for name, column in zip(COLUMNS, zip(*rows, strict=True), strict=True)
    }
    numbers["recorded_end"] = numbers["end"]
    n = len(rows)
    texts = {
        "raw": ["7"] * n,
        "id": ["7"] * n,
        "hosts": ["n1"] * n,
        "state": states.split() or ["COMPLETED"] * n,
        "user": [*(users or "a" * n)],
    }
    return Rows(
        "f", np.arange(1, n + 1), numbers,
        {name: np.array(column, dtype=object) for name, column in texts.items()},
        Clock(ZoneInfo("UTC")), Problems("f"),
    )  # fmt: skip


def down(first: float, last: float) -> DownRow:
    return DownRow("n1", first, last, "", "")


@pytest.mark.parametrize(
    ("state", "pause"), [("COMPLETED", REQUEUE_S), ("NODE_FAIL", REQUEUE_CUT_S)]
)
def test_a_requeue_follows_within_the_longest_time(state: str, pause: float) -> None:
    for more, n_jobs in ((0, 1), (1, 2)):
        again = 100 + pause + more
        rows = table((0, 10, 100), (again, again + 5, again + 9), states=f"{state} COMPLETED")
        joined = jobs_of(rows)
        assert (len(joined.last), joined.n_recycled) == (n_jobs, n_jobs - 1)


def test_attempts_of_two_users_may_meet_but_not_overlap() -> None:
    assert len(jobs_of(table((0, 10, 20), (0, 20, 30), users="ab")).last) == 2
    assert len(jobs_of(table((0, 10, 20), (5, 10, 10), users="ab")).last) == 2
    with pytest.raises(InputError, match="runs for two users at the same time"):
        jobs_of(table((0, 10, 20), (0, 19, 30), users="ab"))


def test_a_down_interval_overlaps_attempts_that_it_does_not_only_touch() -> None:
    of = AttemptsOfNodes(table((0, 10, 20), (0, 30, 40)), np.arange(2), {"n1"})
    assert of.during(down(20, 30)) == []
    assert of.during(down(19, 30)) == [0]
    assert of.during(down(20, 31)) == [1]
    assert of.during(down(0, 99)) == [0, 1]


def test_the_first_start_is_after_a_time() -> None:
    rows = table((0, 10, 20), (0, 30, 40), (0, 25, 26), states="COMPLETED COMPLETED NODE_FAIL")
    of = AttemptsOfNodes(rows, np.arange(3), {"n1"})
    assert [of.first_start_s("n1", after) for after in (9, 10, 29, 30)] == [10, 30, 30, math.inf]


def test_an_attempt_is_shortened_to_the_first_failure_or_to_its_start() -> None:
    rows = table((0, 10, 20), (0, 30, NAN))
    cuts = corrections_of(rows, np.arange(2), [down(18, 31), down(15, 16)])
    assert [(cut.cut_s, cut.length_s) for cut in cuts.values()] == [(15, 5), (30, 0)]


def test_down_intervals_that_overlap_or_touch_are_joined() -> None:
    rows = [down(20, 30), down(0, 10), down(10, 12), down(2, 5), down(13, 14)]
    assert [row[1:3] for row in merged_downs(rows)] == [(0, 12), (13, 14), (20, 30)]
