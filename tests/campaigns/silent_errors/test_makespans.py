# SPDX-License-Identifier: Apache-2.0
"""Makespans of job set files equal recorded makespans; errors of files."""

from __future__ import annotations

import gzip
import json

import pytest

from rebat.core.errors import InputError
from rebat.models.resilient import HEURISTICS
from rebat.policies.makespans import PAPER_RULES, MakespanRow, makespans, read_job_set
from tests.support.recordings import job_sets

GOOD = {
    "id": "two",
    "P": 4,
    "n": 2,
    "jobs": [{"p": 2, "t": 4}, {"p": 3, "t": 3}],
    "scenarios": [{"f": [0, 0]}, {"f": [0, 1]}],
}


@pytest.fixture
def write(tmp_path):
    def to_file(data, name="set.json"):
        path = tmp_path / name
        path.write_text(data if isinstance(data, str) else json.dumps(data))
        return path

    return to_file


def test_rows_by_scenario_heuristic_and_rule(write):
    rows = list(makespans([write(GOOD)], ["R-LIST-0", "r-shelf-nb"], ["LPT", "hpa"]))
    assert rows == [
        MakespanRow("two", 0, "R-LIST-0", "LPT", 7, 4.25),
        MakespanRow("two", 0, "R-LIST-0", "HPA", 7, 4.25),
        MakespanRow("two", 0, "R-SHELF-NB", "LPT", 7, 4.25),
        MakespanRow("two", 0, "R-SHELF-NB", "HPA", 7, 4.25),
        MakespanRow("two", 1, "R-LIST-0", "LPT", 10, 6.5),
        MakespanRow("two", 1, "R-LIST-0", "HPA", 10, 6.5),
        MakespanRow("two", 1, "R-SHELF-NB", "LPT", 10, 6.5),
        MakespanRow("two", 1, "R-SHELF-NB", "HPA", 10, 6.5),
    ]
    assert all(type(row.makespan) is int for row in rows)


def test_the_recorded_tables():
    paths = job_sets()
    expected = []
    for path in paths:
        data = json.loads(path.read_text())
        for index, scenario in enumerate(data["scenarios"]):
            table = scenario["makespan_paper"]
            expected += [
                MakespanRow(
                    data["id"], index, name, rule, table[name][rule], scenario["lower_bound"]
                )
                for name in HEURISTICS
                for rule in PAPER_RULES
            ]
    assert len(expected) == 2310
    assert list(makespans(paths)) == expected


def test_a_set_without_id_has_the_files_name_and_may_be_compressed(tmp_path):
    data = {key: value for key, value in GOOD.items() if key not in ("id", "n")}
    path = tmp_path / "day-3.json.gz"
    path.write_bytes(gzip.compress(json.dumps(data).encode()))
    assert read_job_set(path).id == "day-3"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"P": 0}, r"set\.json: \$\.P: Expected `int` >= 1"),
        ({"jobs": []}, r"\$\.jobs: has no jobs"),
        ({"jobs": [{"p": 1, "t": 1}, {"p": 5, "t": 1}]}, r"\$\.jobs\[1\]\.p: needs 5 processors"),
        ({"jobs": [{"p": 1, "t": 1}, {"p": 1, "t": 0}]}, r"\$\.jobs\[1\]\.t: Expected `int` >= 1"),
        ({"jobs": [{"p": 1, "t": 1}, {"p": 1, "t": 1.5}]}, r"\$\.jobs\[1\]\.t: Expected `int`"),
        ({"jobs": [{"p": 1, "t": 1}, {"p": True, "t": 1}]}, r"\$\.jobs\[1\]\.p: Expected `int`"),
        ({"jobs": [{"p": 1}]}, r"\$\.jobs\[0\]: Object missing required field `t`"),
        (
            {"scenarios": [{"f": [0, 0]}, {"f": [0]}]},
            r"\$\.scenarios\[1\]\.f: contains 1 failure counts",
        ),
        ({"scenarios": [{"f": [0, -1]}]}, r"\$\.scenarios\[0\]\.f\[1\]: Expected `int` >= 0"),
        ({"n": 3}, r"\$\.n: n is 3 \(expected 2"),
        ({"verif": 1}, r"\$\.verif: verif is 1"),
    ],
)
def test_errors_name_the_file_and_the_place(write, change, message):
    with pytest.raises(InputError, match=message) as caught:
        list(makespans([write({**GOOD, **change})]))
    assert "set.json: " in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"P": NaN}'])
def test_what_is_not_a_job_set(write, text):
    with pytest.raises(InputError, match=r"set\.json: "):
        read_job_set(write(text))


def test_a_missing_file(tmp_path):
    with pytest.raises(InputError, match=r"gone\.json: cannot read"):
        list(makespans([tmp_path / "gone.json"]))


def test_times_too_long_for_the_kernels_are_named_too(write):
    huge = {**GOOD, "scenarios": [{"f": [1 << 53, 0]}, {"f": [0, 1 << 53]}]}
    huge["jobs"] = [{"p": 2, "t": 1 << 50}, {"p": 3, "t": 3}]
    with pytest.raises(InputError, match=r"set\.json: .*64 bits"):
        list(makespans([write(huge)]))


def test_two_sets_of_one_name(write):
    with pytest.raises(InputError, match=r"b\.json: set 'two' is already in .*a\.json"):
        list(makespans([write(GOOD, "a.json"), write(GOOD, "b.json")]))


@pytest.mark.parametrize(
    "bad", [{"heuristics": ["R-LIST"]}, {"rules": ["FIFO"]}, {"reservations": "firm"}]
)
def test_unknown_names_are_refused_before_any_file_is_read(bad):
    with pytest.raises(InputError, match="unknown"):
        makespans([], **bad)
