# SPDX-License-Identifier: Apache-2.0
"""Tables of jobs behave like tuples of jobs, and arrays of texts like lists."""

from __future__ import annotations

import pickle
from collections import Counter

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.core import job_table, table
from rebat.core.job_table import Jobs, submission_order
from rebat.core.jobs import Job
from rebat.core.table import Texts, distinct


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use blocks of a few jobs."""
    monkeypatch.setattr(job_table, "_BLOCK", 3)
    monkeypatch.setattr(table, "_BLOCK", 2)


TEXTS = st.lists(st.text(st.characters(codec="utf-8")) | st.sampled_from(["1", "10", "a\0", "a"]))


@given(values=TEXTS, other=st.text())
def test_texts_are_a_list(values: list[str], other: str) -> None:
    ours = Texts.of(iter(values))
    assert [*ours] == values
    assert [ours[at] for at in range(-len(values), len(values))] == values * 2
    assert ours[1:7:2] == values[1:7:2]
    assert [*Texts.joined([ours, ours])] == values * 2
    for text in (*values, other):
        assert ours.position(text) == (values.index(text) if text in values else None)
    repeats = [at for at, text in enumerate(values) if text in values[:at]]
    assert ours.first_repeat() == (repeats[0] if repeats else None)


@pytest.mark.parametrize("factor", [0, 1])
def test_texts_with_equal_hashes_are_distinguished(
    factor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "_FACTOR", factor)
    monkeypatch.setattr(table, "_POWERS", [1])
    ours = Texts.of(["ab", "b", "ba", "ac", "ba"])
    assert [ours.position(text) for text in ("ab", "ba", "ac", "ca")] == [0, 2, 3, None]
    assert ours.first_repeat() == 4


@given(rows=st.lists(st.tuples(st.integers(-2, 2), st.sampled_from([0, 2**62, -(2**61), 5]))))
def test_distinct_rows_are_in_order(rows: list[tuple[int, int]]) -> None:
    columns = np.array(rows, np.int64).reshape(len(rows), 2).T
    first, codes = distinct(*columns, *columns)
    expected = [*dict.fromkeys(rows)]
    assert [rows[row] for row in first.tolist()] == expected
    assert [rows.index(row) for row in expected] == first.tolist()
    assert [expected[code] for code in codes.tolist()] == rows


JOBS = st.lists(
    st.builds(
        Job, st.text(st.characters(codec="utf-8"), min_size=1), st.integers(1, 2**31 - 1),
        st.integers(0, 10**17), st.none() | st.integers(1, 10**17), st.sampled_from(["p", "q"]),
        st.dictionaries(st.sampled_from("ab"), st.integers(0, 2) | st.booleans()),
    )
)  # fmt: skip


@given(jobs=JOBS)
def test_a_table_of_jobs_is_a_tuple(jobs: list[Job]) -> None:
    ours, theirs = Jobs.of(jobs), tuple(jobs)
    assert [*ours] == [*theirs]
    assert ours == theirs
    assert theirs == ours
    assert ours != (*theirs, Job("x", 1, 0, None, "p"))
    assert [ours[at] for at in range(-len(theirs), len(theirs))] == [*theirs, *theirs]
    assert ours[1::2] == theirs[1::2]
    assert all(type(a) is type(b) for one, other in zip(ours, theirs, strict=True)
               for a, b in zip(one.extra.values(), other.extra.values(), strict=True))  # fmt: skip


@given(jobs=JOBS)
def test_columns_of_jobs(jobs: list[Job]) -> None:
    ours = pickle.loads(pickle.dumps(Jobs.of(jobs)))
    assert ours.submit_us.tolist() == [job.submit_us for job in jobs]
    assert [*ours.ids] == [job.id for job in jobs]
    assert [*ours.profile_uses().items()] == [*Counter(job.profile for job in jobs).items()]
    kinds = [ours.extra_fields[code] for code in ours.extra_codes.tolist()]
    assert kinds == [job.extra for job in jobs]


@given(jobs=JOBS)
def test_a_table_with_other_walltimes_and_profiles(jobs: list[Job]) -> None:
    numbers = np.arange(len(jobs))
    expected = [
        msgspec.structs.replace(
            job, walltime_us=None if number % 2 else number, profile=f"p{number % 3}"
        )
        for number, job in enumerate(jobs)
    ]
    ours = Jobs.of(jobs)
    changed = ours.changed(np.where(numbers % 2, -1, numbers), numbers % 3, ["p0", "p1", "p2"])
    assert [*changed] == expected
    assert [*ours] == jobs


@given(jobs=JOBS, at_us=st.data())
def test_jobs_submitted_together_are_ordered_by_complete_id(
    jobs: list[Job], at_us: st.DataObject
) -> None:
    jobs = [msgspec.structs.replace(job, submit_us=at_us.draw(st.integers(0, 2))) for job in jobs]
    half = len(jobs) // 2
    tables = [("w10", jobs[:half]), ("w1", jobs[half:])]
    placed = [(name, job) for name, part in tables for job in part]
    order = submission_order([(name, Jobs.of(part)) for name, part in tables])
    ours = [(placed[row][1].submit_us, f"{placed[row][0]}!{placed[row][1].id}") for row in order]
    assert ours == sorted((job.submit_us, f"{name}!{job.id}") for name, job in placed)
