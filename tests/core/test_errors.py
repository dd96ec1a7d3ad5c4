# SPDX-License-Identifier: Apache-2.0
"""Errors of the user's input."""

from __future__ import annotations

import pickle

from rebat.core.errors import InputError


def test_an_error_says_what_is_wrong_where_and_what_was_expected() -> None:
    error = InputError("res is 0", "job 17", "at least 1").at("jobs.json")
    assert str(error) == "jobs.json: job 17: res is 0 (expected at least 1)"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
