# SPDX-License-Identifier: Apache-2.0
"""Errors of the user's input."""

from __future__ import annotations

import pickle

from rebat.core.errors import MOST_NAMES, InputError, unknown_name


def test_an_error_says_what_is_wrong_where_and_what_was_expected() -> None:
    error = InputError("res is 0", "job 17", "at least 1").at("jobs.json")
    assert str(error) == "jobs.json: job 17: res is 0 (expected at least 1)"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_short_list_of_valid_names_is_complete() -> None:
    error = unknown_name("colour", "rde", ["red", "green"])
    assert str(error) == "unknown colour 'rde'; did you mean red? (expected one of: green, red)"


def test_a_long_list_of_valid_names_has_the_five_nearest() -> None:
    names = [f"name{number}" for number in range(MOST_NAMES)]
    error = unknown_name("name", "stealing", [*names, "h-stealing", "steal"], "rebat names")
    nearest, _, others = str(error.expected).partition(", or ")
    assert nearest.split(", ")[:2] == ["h-stealing", "steal"]
    assert len(nearest.split(", ")) == 5
    assert others == f"{MOST_NAMES + 2 - 5} others, see 'rebat names'"
