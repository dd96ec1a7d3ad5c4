# SPDX-License-Identifier: Apache-2.0
"""Shapes and speedups: fields of a job, and its run times on other numbers of nodes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.core.errors import InputError
from rebat.core.traits import Malleable, Moldable, Rigid, check_shape, extent, shape_of
from rebat.models.speedup import (
    Amdahl,
    Downey,
    Linear,
    SpeedupTable,
    downey_speed,
    model_of,
    run_us,
    speedup_of,
)

PARALLELISMS = st.floats(1, 1e4)
SIGMAS = st.floats(0, 5)


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
        ({"kind": "moldable", "sizes": []}, "unique whole numbers of at least 1"),
        ({"kind": "moldable", "sizes": [0]}, "unique whole numbers of at least 1"),
        ({"kind": "moldable", "sizes": "4"}, "sizes"),
        ({"kind": "moldable", "sizes": [4, 8, 4]}, "unique whole numbers"),
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
    # A run time of 100 on one node, half of it serial, is 75 on two nodes and 62.5 on four.
    assert run_us(speedup, 100_000, 1, 2) == 75_000
    assert run_us(speedup, 75_000, 2, 4) == 62_500


def test_as_many_nodes_change_nothing() -> None:
    assert run_us(Amdahl(0.3), 12_345, 7, 7) == 12_345


# Golden numbers: the formulas of Downey 1998 by hand for a mean parallelism of 16. Sigma 0.5 uses
# the formula for low variance, 2 that for high variance, and both apply to 1.
@pytest.mark.parametrize(
    ("n_nodes", "sigma", "speed"),
    [
        (8, 0.5, 7.211268), (24, 0.5, 14.912621), (16, 1, 10.893617), (16, 2, 9.846154),
        (31, 2, 13.777778),
    ],
)  # fmt: skip
def test_downeys_speedup(n_nodes, sigma, speed) -> None:
    downey = speedup_of({"speedup": {"model": "downey", "parallelism": 16, "sigma": sigma}})
    assert downey == Downey(16, sigma)
    assert downey.speed(n_nodes) == pytest.approx(speed, abs=5e-7)


def test_downeys_speedup_ends_at_the_mean_parallelism() -> None:
    """The largest sizes are from eq. (5) of Prabhakaran et al. 2018."""
    assert [Downey(16, sigma).n_nodes_max for sigma in (0, 0.5, 1, 2)] == [31, 31, 31, 46]
    assert Downey(16, 0.5).speed(31) == Downey(16, 2).speed(46) == 16
    assert Downey(16, 0.5).speed(30) < 16 > Downey(16, 2).speed(45)
    assert run_us(Downey(16, 2), 1_000_000, 16, 46) == round(1e6 * 9.846153846153847 / 16)


@given(parallelism=PARALLELISMS, sigma=SIGMAS, sizes=st.lists(st.integers(1, 100_000), min_size=2))
def test_downeys_speedup_grows_from_1_to_the_mean(parallelism, sigma, sizes) -> None:
    downey = Downey(parallelism, sigma)
    assert downey.speed(1) == pytest.approx(1, rel=1e-12)
    speeds = [downey.speed(n) for n in sorted(sizes)]
    for n, less, more in zip(sorted(sizes), speeds, speeds[1:], strict=False):
        assert less <= min(parallelism, n) * (1 + 1e-12)
        assert less <= more * (1 + 1e-12)
    assert downey.speed(math.ceil(downey.n_nodes_max)) == pytest.approx(parallelism, rel=1e-9)


@given(parallelism=PARALLELISMS, sigma=SIGMAS)
def test_downeys_branches_meet(parallelism, sigma) -> None:
    ends = [parallelism, Downey(parallelism, sigma).n_nodes_max]
    for n in (end for end in ends if end >= 1):
        below, above = (downey_speed(n * f, parallelism, sigma) for f in (1 - 1e-9, 1 + 1e-9))
        assert below == pytest.approx(above, rel=1e-7)


@given(parallelism=PARALLELISMS, n=st.floats(1, 1e5))
def test_downeys_variants_agree_at_a_variance_of_1(parallelism, n) -> None:
    low, high = (downey_speed(n, parallelism, sigma) for sigma in (1, 1 + 1e-12))
    assert low == pytest.approx(high, rel=1e-9)


def test_a_table_is_linear_between_what_was_measured() -> None:
    given_ = {"model": "table", "sizes": [2, 4, 8], "speeds": [1, 1.5, 3]}
    table = speedup_of({"speedup": given_})
    assert table == SpeedupTable((2, 4, 8), (1, 1.5, 3))
    assert [table.speed(n) for n in (1, 2, 3, 4, 6, 8, 9, 64)] == [0.5, 1, 1.25, 1.5, 2.25, 3, 3, 3]
    assert run_us(table, 600, 2, 8) == 200


@given(st.dictionaries(st.integers(1, 100), st.floats(1e-3, 1e3), min_size=1), st.integers(1, 200))
def test_a_table_stays_within_what_was_measured(measured, n) -> None:
    sizes = tuple(sorted(measured))
    table = SpeedupTable(sizes, tuple(measured[size] for size in sizes))
    assert all(table.speed(size) == measured[size] for size in sizes)
    assert 0 < table.speed(n) <= max(measured.values())
    if n >= sizes[0]:
        assert table.speed(n) >= min(measured.values())


def test_every_speedup_has_a_name() -> None:
    models = [
        model_of(one) for one in (Linear(), Amdahl(0.1), Downey(2, 1), SpeedupTable((1,), (1.0,)))
    ]
    assert models == ["linear", "amdahl", "downey", "table"]


DOWNEY = {"model": "downey", "parallelism": 16, "sigma": 1}
TABLE = {"model": "table", "sizes": [1, 2], "speeds": [1, 1.9]}


@pytest.mark.parametrize(
    ("speedup", "told"),
    [
        ({"model": "warp"}, "unknown speedup 'warp'"),
        ({"model": "downy"}, "did you mean downey"),
        ("amdahl", "speedup: Expected"),
        ({"model": "amdahl"}, "missing required field `serial`"),
        ({"model": "amdahl", "serial": 2}, "speedup: serial: is 2"),
        ({"model": "amdahl", "serial": "much"}, "Expected `float`"),
        (DOWNEY | {"parallelism": 0.5}, "speedup: parallelism: is 0.5"),
        (DOWNEY | {"parallelism": -1}, "speedup: parallelism: is -1"),
        (DOWNEY | {"parallelism": math.nan}, "speedup: parallelism: is nan"),
        (DOWNEY | {"parallelism": math.inf}, "speedup: parallelism: is inf"),
        (DOWNEY | {"sigma": -0.1}, "speedup: sigma: is -0.1"),
        (DOWNEY | {"sigma": math.nan}, "speedup: sigma: is nan"),
        ({"model": "downey", "parallelism": 16}, "missing required field `sigma`"),
        (TABLE | {"speeds": [1]}, "2 sizes and 1 speed"),
        ({"model": "table", "sizes": [], "speeds": []}, "0 sizes and 0 speeds"),
        (TABLE | {"sizes": [2, 1]}, "sizes: do not ascend"),
        (TABLE | {"sizes": [2, 2]}, "sizes: do not ascend"),
        (TABLE | {"sizes": [1, 10**400]}, "sizes: is 1000"),
        (TABLE | {"sizes": [0, 2]}, "sizes: do not ascend"),
        (TABLE | {"sizes": [1, 2.5]}, "Expected `int`"),
        (TABLE | {"speeds": [0, 1]}, "speeds: is 0"),
        (TABLE | {"speeds": [1, math.nan]}, "speeds: is nan"),
    ],
)
def test_what_is_no_speedup_is_told(speedup, told) -> None:
    with pytest.raises(InputError, match="speedup") as error:
        speedup_of({"speedup": speedup})
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("shape", "asked", "told"),
    [
        (Malleable(2, 5), 1, "res: is 1 .expected 2 to 5"),
        (Malleable(2, 5), 6, "res: is 6 .expected 2 to 5"),
        (Malleable(2, 9), 4, "shape: max: contains 9 .expected at most the machine's 8 nodes"),
        (Moldable((2, 16)), 2, "shape: sizes: contains 16"),
    ],
)
def test_a_shape_that_does_not_fit_is_told(shape, asked, told) -> None:
    with pytest.raises(InputError, match=told):
        check_shape(shape, asked, 8)


def test_a_shape_that_fits_is_let_pass() -> None:
    fitting = ((Rigid(), 9), (Moldable((2, 8)), 4), (Malleable(1, 8), 8))
    for shape, asked in fitting:
        check_shape(shape, asked, 8)  # a rigid job may be larger than the machine: it waits
    assert [extent(shape, asked) for shape, asked in fitting] == [(9, 9), (2, 8), (1, 8)]
