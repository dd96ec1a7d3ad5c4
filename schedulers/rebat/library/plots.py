# SPDX-License-Identifier: Apache-2.0
"""Figures for notebooks and files."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

from rebat.figures.canvas import content_of, save


class Plot:
    """A figure that notebooks display.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The figure, which can be changed with the methods of matplotlib.
    about : str
        Description of the figure, used as alternative text.
    """

    def __init__(self, figure: Any, about: str) -> None:
        self.figure, self.about = figure, about

    def save(self, path: str | Path) -> None:
        """Write the figure. The suffix of the file name sets the format.

        Raises
        ------
        InputError
            If the suffix is not .png, .svg, .pdf or .eps.
        """
        save(self.figure, Path(path))

    def html(self) -> str:
        """Return an HTML image element that contains the figure."""
        data = b64encode(content_of(self.figure)).decode()
        return f'<img alt="{self.about}" src="data:image/png;base64,{data}">'

    def _repr_png_(self) -> bytes:
        return content_of(self.figure)

    def __repr__(self) -> str:
        return f"<plot: {self.about}>"
