# SPDX-License-Identifier: Apache-2.0
"""Texts of figures: names, legends that fit, and texts in boxes."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Any


def label(name: str) -> str:
    """Escape a name, so that matplotlib neither hides it nor shows it as a formula.

    A long name is broken into lines.
    """
    text = broken(name.replace("$", r"\$"), _LONG)
    return f" {text}" if text.startswith("_") else text


_LONG = 36
"""Maximum number of characters in a line of a name."""


def broken(text: str, most: int) -> str:
    """Return a text with line breaks, at spaces and after colons and commas.

    A line has more than ``most`` characters only if it cannot be broken.

    >>> broken("baseline:depth=easy,react=replacement", 20)
    'baseline:depth=easy,\\nreact=replacement'
    """
    lines = [""]
    for part in re.findall(r"\n|[^ \n:,]*[:,]+ ?|[^ \n:,]+ ?| ", text):
        if part == "\n" or (lines[-1].strip() and len(lines[-1] + part.rstrip(" ")) > most):
            lines.append("")
        lines[-1] += part.strip("\n")
    return "\n".join(line.rstrip(" ") if lines[1:] else line for line in lines)


def legend(
    figure: Any,
    handles: Sequence[Any],
    texts: Sequence[str],
    loc: str,
    most: int,
    fontsize: float | None = None,
) -> None:
    """Draw the legend of a figure with at most ``most`` columns, as many as fit its width.

    If a single column does not fit, the texts are broken into lines.
    """
    look = {"loc": loc, "frameon": False, "fontsize": fontsize}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for columns in range(max(1, min(most, len(texts))), 0, -1):
            drawn = figure.legend(handles, texts, ncols=columns, **look)
            width = drawn.get_window_extent().width
            if width <= figure.bbox.width:
                return
            figure.legends.remove(drawn)
    longest = max(len(line) for text in texts for line in text.split("\n"))
    fitting = int(0.9 * longest * figure.bbox.width / width)
    figure.legend(handles, [broken(text, fitting) for text in texts], **look)


def text_in_box(
    axes: Any, text: str, at: tuple[float, float], size: tuple[float, float], **look: Any
) -> None:
    """Write a text at the centre of a box. The text is omitted if the drawn box is too small.

    ``at`` is the corner of the box and ``size`` its width and height, in units of the axes.
    """
    (x, y), (width, height) = at, size
    centre = {"ha": "center", "va": "center", "clip_on": True, "parse_math": False}
    axes.add_artist(
        _box_text()(x + width / 2, y + height / 2, text, transform=axes.transData, **centre, **look)
    ).box = (at, (x + width, y + height))


@lru_cache
def _box_text() -> type[Any]:
    from matplotlib.text import Text

    class BoxText(Text):
        """A text that is drawn only if its box is large enough for its digits."""

        box: Any

        def draw(self, renderer: Any) -> None:
            (left, top), (right, bottom) = self.get_transform().transform(self.box)
            own = self.get_window_extent(renderer)
            if own.width <= abs(right - left) and DIGIT_SHARE * own.height <= abs(bottom - top):
                super().draw(renderer)

    return BoxText


DIGIT_SHARE = 0.75
"""Height of a digit, as a share of the height of a line of text."""
