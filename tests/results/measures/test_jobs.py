# SPDX-License-Identifier: Apache-2.0
"""The table of jobs: unchanged rows, and missing values."""

from __future__ import annotations

import numpy as np

from rebat.results.files.run_csv import rows_csv
from rebat.results.measures.jobs import EVERY_JOB, Selection, select
from tests.support.scenarios import machine, run


def test_a_rejected_job_has_no_times_and_is_in_no_selection() -> None:
    result = run("baseline", machine(2, (1, 20), (3, 5), (2, 10)))
    first, rejected, last = result.rows
    assert (first.flow, first.waiting_time, last.flow, last.waiting_time) == (20, 0, 30, 20)
    assert (rejected.flow, rejected.first_start, rejected.finish_time) == (None, None, None)
    assert (rejected.size, rejected.final_state, rejected.attempts) == (3, "REJECTED", 0)
    assert [row.job_id for row in select(result.rows, EVERY_JOB)] == ["1", "3"]
    assert [row.job_id for row in select(result.rows, Selection(0.4, 1.0))] == ["3"]
    assert list(rows_csv(result.rows))[2] == "2,3,0.000000,,,,,0,0,0,0.000000,REJECTED"


def test_rows_by_place_and_by_mask() -> None:
    rows = run("baseline", machine(1, (1, 20), (1, 5))).rows
    assert (rows[-1].job_id, len(rows[:1])) == ("2", 1)
    assert [row.job_id for row in rows[np.array([False, True])]] == ["2"]
