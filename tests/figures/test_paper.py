# SPDX-License-Identifier: Apache-2.0
"""Figures for papers have the width of a column, text of 8 points, and nothing that is cut."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread
from matplotlib.text import Text

from rebat.api.result import Plot
from rebat.core.errors import InputError
from rebat.figures import charts, runs
from rebat.figures.canvas import FileForms, content_of, drawing
from rebat.figures.compare import FailurePanel, failures_figure
from rebat.figures.flagship import flagship_figure
from rebat.figures.paper import COLUMN_IN, POINTS, fit, inches
from rebat.figures.winner_map import Axis, winner_map
from rebat.results.comparison import Runs, Winner, rows
from rebat.results.intervals import Interval
from tests.support.scenarios import fails, machine, run

LONG = "baseline:depth=easy,react=replacement,spares=2,order=size"
NAMES = ["baseline", "sfsj", "easy-sfsj", LONG]
RUN = run("baseline", machine(4, (2, 10), (4, 10), (1, 5)), fails(0, 3, 6))
LEDGERS = dict.fromkeys(NAMES, RUN.ledger)


def seeds() -> Runs[str]:
    made = Runs(NAMES)
    for number, name in enumerate(NAMES):
        for seed in range(6):
            for metric, base in (
                ("flow_max_s", 9e4),
                ("flow_mean_s", 7e3),
                ("flow_weighted_mean_s", 8e3),
            ):
                value = base * (1 + 0.07 * number * (1 + 0.3 * seed))
                made.add(seed, name, [(metric, "all", value)])
            made.add(seed, name, [("useful_utilisation", None, 0.8 - 0.001 * number * seed)])
    return made


def lines() -> Any:
    values = [(600.0 * 3**k, Interval(0.5 + 0.01 * k, 0.5, 0.6, 6)) for k in range(6)]
    of = dict.fromkeys(NAMES, values)
    flows = {name: [(x, Interval(y.mean * 1e5)) for x, y in line] for name, line in of.items()}
    panels = [charts.Panel("useful_utilisation", of, "downtime 10 min, checkpoints: young-daly")]
    panels += [charts.Panel("flow_mean_s", flows), charts.Panel("flow_max_s", flows)]
    return charts.lines_figure(panels, "MTBF", True)


def winners() -> Any:
    x = Axis.of("MTBF", [1200.0 * 2**k for k in range(12)], True)
    y = Axis.of("downtime", [600.0 * 2**k for k in range(5)], True)
    cells = {
        (a, b): Winner(NAMES[int(a + b) % 4], NAMES[0], Interval(0.123, 0.1, 0.2, 9), a > b)
        for a in x.values
        for b in y.values
    }
    return winner_map(cells, x, y, NAMES, "best policy by useful utilisation, lead over the second")


def failures() -> Any:
    times = np.geomspace(1, 1e6, 40)
    laws = {"weibull": np.linspace(1, 0, 40), "exponential": np.linspace(0.9, 0, 40)}
    panels = [
        FailurePanel(title, times, np.linspace(1, 0, 40), laws)
        for title in ("between failures of the machine", "uptimes of nodes", "repair times")
    ]
    return failures_figure(panels, times, "events of a machine, 512 nodes")


def svg_source(draw: Callable[[], object]) -> Any:
    """Return the figure that a function draws as SVG."""
    caught = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(charts, "svg_of", caught.append)
        draw()
    return caught[0]


def stacked() -> Any:
    parts = {f"part {k}, a long name of a use of node time": 0.1 for k in range(8)}
    return svg_source(lambda: charts.stacks(dict.fromkeys(NAMES, parts), "share of node time"))


def boxed() -> Any:
    groups = {f"[{2**k}, {2**k * 2})": [1.0, 2.0, 4.0] for k in range(8)}
    panel = ("largest flow (h)", dict.fromkeys(NAMES, groups), {"all": 1.0})
    return svg_source(lambda: charts.boxes([panel, panel]))


def printed() -> Any:
    values = {"rebat": dict.fromkeys(NAMES, Interval(1.2, 1.1, 1.3, 9))}
    panels = [charts.PrintedPanel(f"metric {k} (h)", {LONG: 1.1}, values) for k in range(3)]
    return svg_source(lambda: charts.printed_svg(NAMES, panels))


FIGURES: dict[str, Callable[[], Any]] = {
    "flows": lambda: runs.flows_figure(dict.fromkeys(NAMES, RUN.summary)),
    "named gantt": lambda: runs.named_gantt(LEDGERS, 4),
    "binned gantt": lambda: runs.binned_gantt(runs.timelines_of(LEDGERS, 4)),
    "utilisation": lambda: runs.utilisation_figure(runs.timelines_of(LEDGERS, 4)),
    "flagship": lambda: flagship_figure(LEDGERS, "1"),
    "ratios": lambda: charts.ratios_figure(list(rows(seeds()))),
    "lines": lines,
    "winners": winners,
    "failures": failures,
    "stacks": stacked,
    "boxes": boxed,
    "published values": printed,
}


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("name", FIGURES)
def test_figures_fit_the_column(name: str, width: int) -> None:
    figure = fit(FIGURES[name](), COLUMN_IN[width])
    wide, high = figure.get_size_inches()
    assert wide == COLUMN_IN[width] and 1 < high < 10
    box = figure.get_tightbbox()
    assert box.x0 >= -0.02 and box.x1 <= wide + 0.02, "cut at the left or right"
    assert box.y0 >= -0.02 and box.y1 <= high + 0.02, "cut at the top or bottom"
    texts = [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]
    assert {text.get_fontsize() for text in texts} == {POINTS}
    assert min(axes.get_window_extent().width for axes in figure.axes) > 0.8 * figure.dpi


@pytest.mark.parametrize("name", FIGURES)
def test_figures_for_the_screen_are_not_cut(name: str) -> None:
    figure = FIGURES[name]()
    figure.draw_without_rendering()
    wide, high = figure.get_size_inches()
    box = figure.get_tightbbox()
    assert box.x0 >= -0.02 and box.x1 <= wide + 0.02
    assert box.y0 >= -0.02 and box.y1 <= high + 0.02


def plot() -> Plot:
    return Plot(FIGURES["ratios"](), "ratios")


def test_a_plot_can_be_saved_at_several_widths(tmp_path: Path) -> None:
    shown, again = plot(), plot()
    size = tuple(shown.figure.get_size_inches())
    for number, width in enumerate((1, 2, 5.0, 1)):
        shown.save(tmp_path / f"{number}.png", width)
    pixels = [imread(tmp_path / f"{number}.png").shape[1] for number in range(4)]
    assert pixels == [1050, 2148, 1500, 1050]  # 300 dpi
    assert (tmp_path / "0.png").read_bytes() == (tmp_path / "3.png").read_bytes()
    assert tuple(shown.figure.get_size_inches()) == size
    assert content_of(shown.figure) == content_of(again.figure)


@pytest.mark.parametrize("width", [0, 1.5, 2.4, 21, float("nan")])
def test_other_widths_are_refused(width: float, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"width: is .* \(expected 1 or 2 \(columns\), or 2.5 to 20"
    ):
        plot().save(tmp_path / "x.pdf", width)
    assert not list(tmp_path.iterdir())


def test_a_width_is_a_number_of_columns_or_of_inches() -> None:
    assert [inches(width, "") for width in (1, 2, 2.5, 5)] == [3.5, 7.16, 2.5, 5.0]


@pytest.mark.parametrize("width", [None, 3.5])
def test_fonts_are_truetype(width: float | None) -> None:
    figure = FIGURES["ratios"]()
    pdf, eps = content_of(figure, "pdf", width), content_of(figure, "eps", width)
    assert b"/FontFile2" in pdf and b"/CIDFontType2" in pdf and b"/Type3" not in pdf
    assert b"/FontType 42 def" in eps and b"/FontType 3 def" not in eps


def test_a_pdf_has_the_width_of_the_column() -> None:
    content = content_of(FIGURES["ratios"](), "pdf", 3.5)
    box = re.search(rb"/MediaBox \[ 0 0 ([0-9.]+) ([0-9.]+) \]", content)
    assert box is not None and float(box[1]) == pytest.approx(72 * 3.5, abs=0.01)


def test_figures_of_reports_have_the_chosen_formats() -> None:
    with drawing(FileForms(("svg", "pdf"), 3.5)) as drawn:
        svg = charts.stacks({"easy": {"a": 1.0}}, "share")
    assert drawn.files.keys() == {svg}
    files = drawn.files[svg]
    assert list(files) == ["svg", "pdf"]
    assert b'width="252pt"' in files["svg"] and files["pdf"].startswith(b"%PDF")
    with drawing(FileForms(("svg",))) as drawn:
        assert charts.stacks({"easy": {"a": 1.0}}, "share") == svg
    assert drawn.files == {svg: {"svg": svg.encode()}}


def test_a_number_that_does_not_fit_its_cell_is_omitted() -> None:
    """A winner map with wide cells shows the leads; the same map in a column does not."""
    figure = FIGURES["winners"]()
    wide, narrow = (content_of(figure, "svg", width) for width in (14.0, 2.5))
    assert wide.count(b"<!-- 12.3 -->") == 60
    assert narrow.count(b"<!-- 12.3 -->") == 0
