# SPDX-License-Identifier: Apache-2.0
"""The explorer page is a single file that shows names as text and has unchanged data."""

from __future__ import annotations

import base64
import gzip
import json
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rebat.figures.explore.data import packed, page_data, run_data
from rebat.figures.explore.page import explorer_page
from rebat.results.measures.timeline import Timeline, timeline_of
from tests.support.scenarios import fails, failures, machine, run, workloads

EVIL = "<script>alert(1)</script>"
NUMPY = {"Float64Array": np.float64, "Int32Array": np.int32, "Uint8Array": np.uint8}


def unpacked(text: str) -> Any:
    """Return data unpacked as in the page."""
    data = gzip.decompress(base64.b64decode(text))
    at = 4 + int.from_bytes(data[:4], "little")
    head = json.loads(data[4:at])

    def filled(value: Any) -> Any:
        nonlocal at
        if isinstance(value, list):
            return [filled(one) for one in value]
        if not isinstance(value, dict):
            return value
        if "array" not in value:
            return {key: filled(one) for key, one in value.items()}
        kind = np.dtype(NUMPY[value["array"]])
        size = kind.itemsize * value["length"]
        columns = np.frombuffer(data[at : at + size], np.uint8).reshape(kind.itemsize, -1)
        at += size
        return np.ascontiguousarray(columns.T).view(kind).ravel()

    found = filled(head)
    assert at == len(data)
    return found


@given(
    arrays(np.float64, st.integers(0, 9), elements=st.floats(allow_nan=False)),
    arrays(np.int32, st.integers(0, 9)),
    arrays(np.uint8, st.integers(0, 9)),
)
def test_what_is_packed_comes_out_again(dates, numbers, kinds) -> None:
    value = {"a": dates, "b": [{"c": numbers}, "text", 1], "d": kinds}
    found = unpacked(packed(value))
    assert found["a"].tolist() == dates.tolist()
    assert found["b"][0]["c"].tolist() == numbers.tolist()
    assert (found["b"][1:], found["d"].tolist()) == (["text", 1], kinds.tolist())


@given(workloads(), failures())
def test_every_attempt_keeps_its_nodes_when_sorted_by_start(workload, events) -> None:
    ledger = run("sfsj", workload, events).ledger
    data = run_data(timeline_of("sfsj", ledger, 10))
    assert np.all(np.diff(data["start"][: data["ran"]]) >= 0)
    found = {
        (data["jobs"][data["job"][i]], int(data["number"][i]), float(data["start"][i])): [
            (int(data["first"][k]), int(data["last"][k]))
            for k in range(data["offset"][i], data["offset"][i + 1])
        ]
        for i in range(data["ran"])
    }
    assert found == {
        (r.attempt.job_id[3:], r.attempt.number, r.start_us / 1e3): [
            tuple(pair) for pair in r.nodes.intervals.tolist()
        ]
        for r in ledger.attempts
        if r.nodes is not None
    }


@pytest.fixture(scope="module")
def evil() -> Timeline:
    """Return a run whose names would run as scripts if the page did not treat them as text."""
    made = run("sfsj", machine(8, (6, 10), (1, 5), (2, 8)), fails(0, 3, 6))
    timeline = timeline_of(EVIL, made.ledger, 8)
    n = len(timeline.job_id)
    return timeline._replace(job_id=[EVIL] * n, why=["</script><b>$$x$$"] * n)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_foreign_names_are_texts(evil: Timeline) -> None:
    page = explorer_page([evil], EVIL)
    assert EVIL not in page
    assert "alert(1)" not in re.sub(r"&lt;script&gt;alert\(1\)&lt;/script&gt;", "", page)
    data = unpacked(re.search(r'id="data">([^<]*)<', page)[1])
    assert data["runs"][0]["jobs"] == [EVIL]


def test_the_page_loads_nothing(evil: Timeline) -> None:
    parser = Tags()
    parser.feed(explorer_page([evil], "x"))
    loading = [(tag, at) for tag, at in parser.tags if tag in ("img", "iframe") or at.get("src")]
    assert loading == []
    links = [at.get("href") for tag, at in parser.tags if tag == "link"]
    assert links == ["data:,"]
    assert ("html", {"lang": "en"}) in parser.tags
    assert any(at.get("name") == "viewport" for _, at in parser.tags)


def test_the_window_is_what_is_shown_first(evil: Timeline) -> None:
    assert page_data([evil], (1_000_000, 4_000_000))["window"] == [1000, 4000]
    assert page_data([evil], None)["window"] == [0, evil.makespan_us / 1e3]


def test_the_same_run_gives_the_same_data(evil: Timeline) -> None:
    assert packed(page_data([evil], None)) == packed(page_data([evil], None))
