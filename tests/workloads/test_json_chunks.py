# SPDX-License-Identifier: Apache-2.0
"""Documents that are decoded in parts equal those that are decoded in one call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.core.errors import InputError
from rebat.workloads import batsim_json
from rebat.workloads.batsim_json import JsonList, read_workload, split_document

TEXT = st.text(st.sampled_from('ab{},[]:"\\ '))
VALUES = st.recursive(
    st.none() | st.integers(-9, 9) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
)
JOBS = st.lists(st.dictionaries(TEXT, VALUES) | VALUES)


@given(jobs=JOBS, size=st.integers(1, 40), indent=st.none() | st.integers(0, 2))
def test_chunks_of_any_size_give_the_same_elements(
    jobs: list[object], size: int, indent: int | None
) -> None:
    """The texts have braces and quotes, and the elements have lists of objects."""
    text = json.dumps({"a": 1, "jobs": jobs, "b": [2]}, indent=indent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batsim_json, "CHUNK", size)
        document = split_document(text, "jobs")
        assert isinstance(document["jobs"], JsonList)
        assert [*document["jobs"]] == jobs
    assert (document["a"], document["b"]) == (1, [2])


def test_an_error_in_a_later_chunk_names_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batsim_json, "CHUNK", 50)
    job = '{"id": %d, "subtime": 0, "res": 1, "profile": "p"}'
    rows = ",\n".join(job % number for number in range(9))
    broken = rows.replace('"id": 7', '"id": 0x7')
    file = tmp_path / "w.json"
    head = '{"nb_res": 1, "profiles": {"p": {"type": "delay", "delay": 1}}, "jobs": [\n'
    file.write_text(f"{head}{rows}\n]}}")
    assert [job.id for job in read_workload(file).jobs] == [str(number) for number in range(9)]
    file.write_text(f"{head}{broken}\n]}}")
    with pytest.raises(InputError, match=r"w\.json:9:\d+: broken JSON"):
        read_workload(file)


def test_a_long_list_within_an_element_takes_no_quadratic_time() -> None:
    """After each wrong end of an element the chunk doubles, so that few ends are tried."""
    inner = "{}," * 400_000 + "{}"
    document = split_document('{"jobs": [{"x": [' + inner + "]}]}", "jobs")
    calls = 0
    decode = msgspec.json.decode

    def counted(text: bytes, **options: Any) -> object:
        nonlocal calls
        calls += 1
        return decode(text, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(msgspec.json, "decode", counted)
        (element,) = document["jobs"]
    assert len(element["x"]) == 400_001
    assert calls < 5
