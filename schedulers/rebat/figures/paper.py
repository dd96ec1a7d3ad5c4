# SPDX-License-Identifier: Apache-2.0
"""Figures at the size of a column of a paper, with text of 8 points.

A figure for the screen is about 10 inches wide. `fit` gives a copy of it another width. The panels
of a row that would be too narrow move to further rows. Titles, legends and tick labels that do not
fit are broken into lines or thinned out. The paper includes the figure without scaling.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import deepcopy
from itertools import pairwise
from math import ceil
from typing import Any

from rebat.core.errors import InputError
from rebat.figures.labels import broken, legend

COLUMN_IN = {1: 3.5, 2: 7.16}
"""Width of one and of two columns of a usual two-column paper (IEEE, ACM), in inches."""

NARROWEST_IN, WIDEST_IN = 2.5, 20.0

POINTS = 8.0
"""Size of all text."""

SHRINK = 0.5
"""A panel becomes narrower than this share of its width on the screen only if it is alone."""

LOWEST = 0.6
"""A panel does not become lower than this share of its height on the screen."""

LOWEST_IN = 0.45
HIGHEST_IN = 9.0
"""Height of a page. Panels of a higher figure become lower, down to `LOWEST_IN`."""

NAMES_SHARE = 0.4
"""Share of the width of a figure that names at the ticks of its y axes may fill."""

_CHARACTER_IN, _LINE_IN = 0.06, 0.14
"""Mean width of a character and height of a line, in inches."""

_ROUNDS = 3
"""Number of times that the height of a figure is adjusted to the heights of its panels."""


def inches(width: float, where: str) -> float:
    """Return a width in inches: 1 and 2 are numbers of columns, other values are inches."""
    if width in COLUMN_IN:
        return COLUMN_IN[int(width)]
    if not NARROWEST_IN <= width <= WIDEST_IN:
        expected = f"1 or 2 (columns), or {NARROWEST_IN:g} to {WIDEST_IN:g} (inches)"
        raise InputError(f"is {width:g}", where, expected)
    return float(width)


def fit(figure: Any, width: float) -> Any:
    """Return a copy of a figure with this width in inches and text of `POINTS`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _fitted(deepcopy(figure), width)


def _fitted(figure: Any, width: float) -> Any:
    figure.draw_without_rendering()
    panels = [axes for axes in figure.axes if axes.get_subplotspec() is not None]
    before = [_size(axes) for axes in panels]
    old_width, height = figure.get_size_inches()
    figure.set_size_inches(width, height)
    _set_texts(figure)
    rows = _rearrange(figure, panels, old_width, width)
    height = height * max(1.0, rows) + 1.0  # enough for all texts; the height is reduced below
    figure.set_size_inches(width, height)
    figure.draw_without_rendering()
    _legends(figure)
    _wrap_labels(figure)
    _set_height(figure, panels, before)
    _thin_ticks(figure)
    return figure


def _set_height(figure: Any, panels: Sequence[Any], before: Sequence[tuple[float, float]]) -> None:
    """Set the height of the figure from the heights of its panels on the screen (``before``)."""
    figure.draw_without_rendering()
    rows: dict[int, float] = {}
    for axes, (old_wide, old_high) in zip(panels, before, strict=True):
        high = old_high * min(max(_size(axes)[0] / old_wide, LOWEST), 1.0)
        row = axes.get_subplotspec().rowspan.start
        rows[row] = max(rows.get(row, 0.0), high, _least(axes))
    for _ in range(_ROUNDS):
        figure.draw_without_rendering()
        width, height = figure.get_size_inches()
        now = {axes.get_subplotspec().rowspan.start: _size(axes)[1] for axes in panels}
        around = height - sum(now.values())
        room = max(HIGHEST_IN - around, LOWEST_IN * len(rows))
        figure.set_size_inches(width, around + min(sum(rows.values()), room))
    figure.draw_without_rendering()


def _least(axes: Any) -> float:
    """Return the height in inches that names at the ticks of the y axis need."""
    lines = [text.get_text().count("\n") + 1 for text in axes.get_yticklabels()]
    return len(lines) * max(lines) * _LINE_IN if max(lines, default=1) > 1 else 0.0


def _size(axes: Any) -> tuple[float, float]:
    """Return the width and the height of a panel without its labels, in inches."""
    box, dpi = axes.get_window_extent(), axes.get_figure().dpi
    return box.width / dpi, box.height / dpi


def _set_texts(figure: Any) -> None:
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_fontsize(POINTS)
    for axes in figure.axes:
        axes.tick_params(labelsize=POINTS)
        for axis in (axes.xaxis, axes.yaxis):
            axis.offsetText.set_fontsize(POINTS)


def _rearrange(figure: Any, panels: Sequence[Any], old_width: float, width: float) -> float:
    """Move the panels to fewer columns if they would be too narrow.

    Return the new number of rows, as a multiple of the previous one.
    """
    from matplotlib.gridspec import GridSpec

    if not panels:
        return 1.0
    spec = panels[0].get_gridspec()
    most = max(1, int(width / (old_width / spec.ncols * SHRINK)))
    if most >= spec.ncols:
        return 1.0
    columns = ceil(spec.ncols / ceil(spec.ncols / most))
    places: list[tuple[int, int, bool]] = []
    row, column = 0, 0
    for axes in panels:
        spans = len(axes.get_subplotspec().colspan) > 1
        if column and (spans or column == columns):
            row, column = row + 1, 0
        places.append((row, column, spans))
        row, column = (row + 1, 0) if spans else (row, column + 1)
    n_rows = places[-1][0] + 1
    ratios = spec.get_height_ratios()
    heights = [0.0] * n_rows
    for axes, (at, _, _) in zip(panels, places, strict=True):
        heights[at] = max(heights[at], ratios[axes.get_subplotspec().rowspan.start])
    grid = GridSpec(n_rows, columns, figure=figure, height_ratios=heights)
    for axes, (at, across, spans) in zip(panels, places, strict=True):
        axes.set_subplotspec(grid[at, :] if spans else grid[at, across])
        if len(axes.get_shared_y_axes().get_siblings(axes)) > 1:
            axes.tick_params(axis="y", labelleft=across == 0)
    return n_rows / float(spec.nrows)


def _legends(figure: Any) -> None:
    """Draw the legends again with the columns that fit. A single legend moves out of its panel."""
    owners = [axes for axes in figure.axes if axes.get_legend() is not None]
    for old in list(figure.legends):
        texts = [text.get_text() for text in old.get_texts()]
        where = f"outside {old._outside_loc} {_SIDES[old._loc]}"
        handles = list(old.legend_handles)
        figure.legends.remove(old)  # the method remove of a copied artist fails
        legend(figure, handles, texts, where, len(texts), POINTS)
    if len(owners) == 1 and not figure.legends:
        old = owners[0].get_legend()
        texts = [text.get_text() for text in old.get_texts()]
        handles = list(old.legend_handles)
        owners[0].legend_ = None
        legend(figure, handles, texts, "outside upper center", len(texts), POINTS)


_SIDES = {1: "right", 2: "left", 8: "center", 9: "center"}


def _wrap_labels(figure: Any) -> None:
    """Break labels and titles that are wider than their part of the figure into lines."""
    figure.draw_without_rendering()
    whole = figure.bbox.width
    for text in (figure._suptitle, figure._supxlabel):
        if text is not None:
            _wrap(text, whole)
    for axes in figure.axes:
        for name in ("x", "y"):
            axis = getattr(axes, f"{name}axis")
            _wrap_names(axis, int(NAMES_SHARE * figure.get_size_inches()[0] / _CHARACTER_IN))
        spec = axes.get_subplotspec()
        room = whole / spec.get_gridspec().ncols * len(spec.colspan) if spec else whole
        for text in (axes.title, axes._left_title, axes._right_title, axes.xaxis.label):
            _wrap(text, min(room, axes.get_window_extent().width))
        _wrap(axes.yaxis.label, axes.get_window_extent().height * 1.1, upright=True)


def _wrap(text: Any, room: float, upright: bool = False) -> None:
    content = text.get_text()
    box = text.get_window_extent()
    length = box.height if upright else box.width
    if not content or length <= room or "$" in content.replace(r"\$", ""):
        return
    longest = max(map(len, content.split("\n")))
    text.set_text(broken(content, int(longest * room / length)))


def _wrap_names(axis: Any, most: int) -> None:
    """Break names at ticks into lines of ``most`` characters."""
    from matplotlib.ticker import FixedLocator

    texts = [text.get_text() for text in axis.get_ticklabels()]
    names = [broken(text, most) for text in texts]
    if names != texts and isinstance(axis.get_major_locator(), FixedLocator):
        axis.set_ticklabels(names)


def _thin_ticks(figure: Any) -> None:
    """Draw fewer ticks on the axes whose tick labels overlap."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    for axes in figure.axes:
        locator = axes.xaxis.get_major_locator()
        if isinstance(locator, MaxNLocator):
            for n in (4, 3, 2, 1):
                if not _overlap(axes):
                    break
                axes.xaxis.set_major_locator(MaxNLocator(n))
                figure.draw_without_rendering()
        elif isinstance(locator, LogLocator) and _overlap(axes):
            axes.xaxis.set_major_locator(LogLocator(subs=(1,)))
            figure.draw_without_rendering()


def _overlap(axes: Any) -> bool:
    """Return whether labels of the x axis touch each other."""
    low, high = sorted(axes.get_xlim())
    boxes = sorted(
        (box.x0, box.x1)
        for tick in axes.xaxis.get_major_ticks()
        if low <= tick.get_loc() <= high and tick.label1.get_text() and tick.label1.get_visible()
        for box in [tick.label1.get_window_extent()]
    )
    return any(end > begin - 3 for (_, end), (begin, _) in pairwise(boxes))
