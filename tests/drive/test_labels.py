# SPDX-License-Identifier: Apache-2.0
"""Labels in the order of texts."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from rebat.drive.labels import Labels

TEXTS = st.lists(st.text("0129-", min_size=1, max_size=4), max_size=40)


def labels_of(labels: Labels, texts: list[str]) -> list[int]:
    rows: dict[int, int] = {}
    for row, text in enumerate(texts):
        rows.update(labels.add(text, row))
    return [rows[row] for row in range(len(texts))]


@given(TEXTS, st.sampled_from([50, 1000, 2**62]), st.sampled_from([1, 5, 2**40]))
def test_labels_have_the_order_of_the_texts(texts, limit, step):
    labels = Labels(limit, step)
    numbers = labels_of(labels, texts)
    for text, number in zip(texts, numbers, strict=True):
        smaller = {other for other, n in zip(texts, numbers, strict=True) if n < number}
        assert smaller == {other for other in texts if other < text}
    assert all(-limit <= number < limit for number in numbers)
    ordered = sorted(set(texts))
    assert labels.nested == any(b.startswith(a) for a, b in itertools.pairwise(ordered))


def test_rows_get_new_labels_if_a_gap_is_used_up():
    labels = Labels()
    numbers = labels_of(labels, ["1", *(f"0{'9' * k}" for k in range(70, 0, -1))])
    assert labels.n_renewed == 1
    assert numbers[1:] == sorted(numbers[1:], reverse=True)


def test_ascending_texts_need_no_new_labels():
    labels = Labels()
    labels_of(labels, [f"{row:06}" for row in range(10_000)])
    assert labels.n_renewed == 0
