"""Shapes and speedups: what a job says of itself, and how long it lasts on other sizes."""

from __future__ import annotations

import pytest

from rebat.core.errors import InputError
from rebat.core.shapes import Malleable, Moldable, Rigid, shape_of
from rebat.models.speedup import Amdahl, Linear, run_us, speedup_of


def test_a_job_without_a_shape_is_rigid() -> None:
    assert shape_of({"res": 4}) == Rigid()
    assert [n for n in range(1, 9) if Rigid().allows(n, 4)] == [4]


def test_shapes_allow_what_they_say() -> None:
    moldable = shape_of({"shape": {"kind": "moldable", "sizes": [2, 8]}})
    assert isinstance(moldable, Moldable)
    assert [n for n in range(1, 9) if moldable.allows(n, 4)] == [2, 4, 8]
    malleable = shape_of({"shape": {"kind": "malleable", "min": 2, "max": 5}})
    assert isinstance(malleable, Malleable)
    assert [n for n in range(1, 9) if malleable.allows(n, 4)] == [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        ("malleable", "shape: Expected"),
        ({"kind": "elastic"}, "unknown shape 'elastic'"),
        ({"kind": "malleable", "min": 5, "max": 2}, "1 <= min <= max"),
        ({"kind": "malleable", "min": 0, "max": 2}, "1 <= min <= max"),
        ({"kind": "malleable"}, "min"),
        ({"kind": "moldable", "sizes": []}, "whole numbers, 1 or more"),
        ({"kind": "moldable", "sizes": [0]}, "whole numbers, 1 or more"),
        ({"kind": "moldable", "sizes": "4"}, "sizes"),
    ],
)
def test_what_is_no_shape_is_told(shape, told) -> None:
    with pytest.raises(InputError, match=told):
        shape_of({"shape": shape})


def test_linear_is_the_default_and_keeps_the_node_seconds() -> None:
    assert speedup_of({"type": "delay"}) == Linear()
    assert speedup_of({"speedup": {"model": "linear"}}) == Linear()
    assert run_us(Linear(), 1000, 4, 8) == 500
    assert run_us(Linear(), 1000, 4, 1) == 4000


def test_amdahls_serial_part_does_not_shrink() -> None:
    speedup = speedup_of({"speedup": {"model": "amdahl", "serial": 0.5}})
    assert speedup == Amdahl(0.5)
    # On one node 100, half of it serial: on two 75, on four 62.5.
    assert run_us(speedup, 100_000, 1, 2) == 75_000
    assert run_us(speedup, 75_000, 2, 4) == 62_500


def test_as_many_nodes_change_nothing() -> None:
    assert run_us(Amdahl(0.3), 12_345, 7, 7) == 12_345


@pytest.mark.parametrize(
    "speedup",
    [
        {"model": "warp"}, "amdahl", {"model": "amdahl"}, {"model": "amdahl", "serial": 2},
        {"model": "amdahl", "serial": "much"},
    ],
)  # fmt: skip
def test_what_is_no_speedup_is_told(speedup) -> None:
    with pytest.raises(InputError, match="speedup"):
        speedup_of({"speedup": speedup})
