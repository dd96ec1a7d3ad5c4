# SPDX-License-Identifier: Apache-2.0
"""Profiles: their durations, and profiles that cannot run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rebat.cli.main import main
from rebat.core.errors import InputError
from rebat.core.jobs import MAX_DEPTH, MAX_TASKS, check_profiles, delay_us, duration_us
from rebat.workloads.batsim_json import read_workload

DELAY = {"type": "delay", "delay": 2}


def composed(*seq: str, **fields: Any) -> dict[str, Any]:
    return {"type": "composed", "seq": list(seq), **fields}


def chain(length: int, **fields: Any) -> dict[str, dict[str, Any]]:
    """Return profiles in which p0 consists of p1, p1 of p2 and so on; the last one is a delay."""
    made = {f"p{n}": composed(f"p{n + 1}", **fields) for n in range(length)}
    return {**made, f"p{length}": DELAY}


def doubling(levels: int) -> dict[str, dict[str, Any]]:
    made = {f"p{n}": composed(f"p{n + 1}", f"p{n + 1}") for n in range(levels)}
    return {**made, f"p{levels}": DELAY}


@pytest.mark.parametrize(
    ("profiles", "seconds"),
    [
        ({"p0": composed("d", "d", "e"), "d": DELAY, "e": {"type": "delay", "delay": 0.5}}, 4.5),
        ({"p0": composed("q", repeat=3), "q": composed("d", "d"), "d": DELAY}, 12),
        (chain(MAX_DEPTH), 2),
        (doubling(19), 2**20),
        ({"p0": composed("d", repeat=MAX_TASKS), "d": DELAY}, 2e6),
        ({"p0": {"type": "parallel_homogeneous", "cpu": 3e9, "com": 0}}, 3),
    ],
)
def test_durations(profiles: dict[str, Any], seconds: float) -> None:
    assert duration_us(profiles, "p0") == seconds * 1e6
    check_profiles(profiles)


def test_what_is_computed_has_no_duration_on_nodes_of_unknown_speed() -> None:
    with pytest.raises(InputError, match="network model"):
        duration_us({"p0": {"type": "parallel_homogeneous", "cpu": 3e9}}, "p0", None)


ENDLESS = {
    "of itself": ({"p0": composed("p0")}, "'p0' of 'p0'"),
    "through another": (
        {"p0": composed("d", "q"), "q": composed("p0"), "d": DELAY}, "contains itself",
    ),
    "without parts": ({"p0": {"type": "composed"}}, "profile 'p0': seq: has no parts"),
    "of no parts": ({"p0": composed()}, "profile 'p0': seq"),
    "of numbers": ({"p0": {"type": "composed", "seq": [1]}}, "profile 'p0': seq"),
    "a text for parts": ({"p0": {"type": "composed", "seq": "d"}, "d": DELAY}, "profile 'p0': seq"),
    "of unknown parts": ({"p0": composed("d", "x"), "d": DELAY}, "seq: unknown profile 'x'"),
    "no times": ({"p0": composed("d", repeat=0), "d": DELAY}, "profile 'p0': repeat: is 0"),
    "half a time": ({"p0": composed("d", repeat=0.5), "d": DELAY}, "repeat: is 0.5"),
    "absurdly often": ({"p0": composed("d", repeat=10**18), "d": DELAY}, "repeat: is 1000000000"),
    "nested absurdly often": (chain(3, repeat=1000), "profile 'p0': runs 1000000000 profiles"),
    "doubled for ever": (doubling(90), "profiles in sequence"),
    "nested too deeply": (chain(5000), "profiles nested too deeply"),
    "for ever": (
        {"p0": composed("d", repeat=10**6), "d": {"type": "delay", "delay": 1e10}}, "lasts 1000",
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ENDLESS)
def test_a_profile_that_cannot_end_is_refused_by_name(tmp_path: Path, name: str) -> None:
    profiles, told = ENDLESS[name]
    path = tmp_path / "w.json"
    jobs = [{"id": 1, "subtime": 0, "res": 1, "profile": "p0"}]
    path.write_text(json.dumps({"nb_res": 1, "jobs": jobs, "profiles": profiles}))
    for refused in (
        lambda: duration_us(profiles, "p0"), lambda: check_profiles(profiles),
        lambda: read_workload(path),
    ):  # fmt: skip
        with pytest.raises(InputError) as error:
            refused()
        assert told in str(error.value)


@pytest.mark.parametrize("field", [{}, {"delay": "2"}, {"delay": -1}, {"delay": 1e300}])
def test_a_delay_without_a_duration_is_told(field: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="profile 'p0': delay: "):
        duration_us({"p0": {"type": "delay"} | field}, "p0")


@pytest.mark.parametrize(
    "verb", [["run", "-p", "easy", "--out", "out"], ["workload", "describe"], ["bound"]]
)
def test_every_command_tells_it_in_one_line(tmp_path: Path, capsys, monkeypatch, verb) -> None:
    monkeypatch.chdir(tmp_path)
    profiles, told = ENDLESS["through another"]
    jobs = [{"id": 1, "subtime": 0, "res": 1, "profile": "p0"}]
    text = json.dumps({"nb_res": 1, "jobs": jobs, "profiles": profiles})
    Path("w.json").write_text(text)
    with pytest.raises(SystemExit) as exit_:
        main([*verb, "w.json"])
    assert exit_.value.code == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert told in errors


def test_numbers_of_numpy_are_durations() -> None:
    """A workload made in Python may contain such numbers."""
    assert duration_us({"d": DELAY | {"delay": np.float64(2.5)}}, "d") == 2_500_000


@pytest.mark.parametrize("delay", [0, 1e-9, 1e200])
def test_all_errors_of_a_delay_state_the_same_range(delay) -> None:
    with pytest.raises(InputError, match=r"expected seconds, from 0\.000001 to 1e\+11"):
        delay_us({"delay": delay})
