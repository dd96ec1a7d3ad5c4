# SPDX-License-Identifier: Apache-2.0
"""Images of runs: a pixel has the mean colour of its node time, at any size of the machine."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.image import imread

from rebat.figures import runs
from rebat.figures.canvas import content_of
from rebat.figures.runs import CAUSE_COLOURS, Rectangles, binned, coverage, tail_us
from rebat.results.measures.timeline import timeline_of
from rebat.state.ledger import Ledger
from tests.support.scenarios import fails, machine, run

RECTANGLE = st.tuples(
    st.integers(-20, 120), st.integers(0, 80), st.integers(0, 29), st.integers(0, 9)
)


def overlap(a: float, b: float, c: float, d: float) -> float:
    return max(0.0, min(b, d) - max(a, c))


@given(st.lists(RECTANGLE, max_size=6), st.integers(1, 7), st.integers(1, 9))
def test_coverage_is_the_area_that_rectangles_share_with_each_pixel(many, rows, columns) -> None:
    n_nodes, (begin, end) = 40, (10, 100)
    table = [(start, start + length, first, first + more) for start, length, first, more in many]
    plain = np.zeros((rows, columns))
    for j in range(rows):
        for i in range(columns):
            for start, stop, first, last in table:
                wide = overlap(
                    start, stop, begin + i * (end - begin) / columns,
                    begin + (i + 1) * (end - begin) / columns,
                )  # fmt: skip
                high = overlap(first, last + 1, j * n_nodes / rows, (j + 1) * n_nodes / rows)
                plain[j, i] += wide * high / ((end - begin) / columns) / (n_nodes / rows)
    columns_of = np.array(table, dtype=np.int64).reshape(-1, 4).T
    found = coverage(Rectangles(*columns_of), (begin, end), n_nodes, rows, columns)
    assert found == pytest.approx(plain, abs=1e-9)


def test_a_pixel_for_every_node_and_second_shows_who_had_it() -> None:
    """Node 2 fails after 3 of 6 seconds: the work on it is lost."""
    ledger = run("baseline", machine(4, (2, 5), (1, 6)), fails(2, 3, 5)).ledger
    timeline = timeline_of("baseline", ledger, 4)
    image = binned(timeline, (0, 6_000_000), 4, 6)
    completed = np.array([0x44, 0x77, 0xAA]) / 255
    assert image[0] == pytest.approx(np.array([*[completed] * 5, [1, 1, 1]]), abs=1e-6)
    assert image[2, 3:5] == pytest.approx(0)
    red = np.array([0xEE, 0x66, 0x77]) / 255
    assert image[2, :3] == pytest.approx(np.array([red] * 3), abs=1e-6)
    assert tail_us(timeline)[0] == 3_000_000
    assert CAUSE_COLOURS[ledger.attempts[0].cause] == "#ee6677"


def test_free_nodes_are_white_and_means_are_means() -> None:
    timeline = timeline_of("easy", run("easy", machine(4, (2, 10))).ledger, 4)
    image = binned(timeline, (0, 20_000_000), 1, 1)
    completed = np.array([0x44, 0x77, 0xAA]) / 255
    assert image[0, 0] == pytest.approx((completed + 3) / 4)


@pytest.mark.parametrize(("n_nodes", "small"), [(8, True), (500, False)])
def test_small_machines_have_the_chart_in_full_and_others_an_image(
    n_nodes: int, small: bool
) -> None:
    made = run("sfsj", machine(n_nodes, (6, 10), (1, 5), (2, 8)), fails(0, 3, 6))
    ledgers = {"sfsj": made.ledger, "_again$": made.ledger}
    figure = runs.gantt_figure(ledgers, n_nodes)
    assert [bool(axis.images) for axis in figure.axes] == [not small] * 2
    assert runs.worth_drawing(made.ledger, n_nodes) is small
    assert figure.axes[-1].get_xlim()[1] > 10
    for one in (figure, runs.utilisation_figure(runs.timelines_of(ledgers, n_nodes))):
        assert imread(BytesIO(content_of(one))).std() > 0.01


@pytest.mark.parametrize("n_nodes", [8, 500])
def test_a_window_is_what_is_shown(n_nodes: int) -> None:
    made = run("sfsj", machine(n_nodes, (6, 10), (1, 5), (2, 8)), fails(0, 3, 6))
    figure = runs.gantt_figure({"sfsj": made.ledger}, n_nodes, (2_000_000, 4_000_000))
    assert figure.axes[-1].get_xlim() == pytest.approx((2, 4))


def test_a_run_without_attempts_can_be_drawn() -> None:
    nothing = {"none": Ledger()}
    assert content_of(runs.gantt_figure(nothing, 500))
    assert content_of(runs.utilisation_figure(runs.timelines_of(nothing, 500)))
