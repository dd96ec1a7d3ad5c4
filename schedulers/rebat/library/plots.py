# SPDX-License-Identifier: Apache-2.0
"""A figure that notebooks show by themselves."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

from rebat.figures.canvas import png_of, save


class Plot:
    """A figure: shown by notebooks, saved with `save`, changed through ``figure`` (matplotlib's).

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    about : str
        What it shows, for those who cannot see it.
    """

    def __init__(self, figure: Any, about: str) -> None:
        self.figure, self.about = figure, about

    def save(self, path: str | Path) -> None:
        """Write it as PNG."""
        save(self.figure, Path(path))

    def html(self) -> str:
        """An image element that needs no other file."""
        data = b64encode(png_of(self.figure)).decode()
        return f'<img alt="{self.about}" src="data:image/png;base64,{data}">'

    def _repr_png_(self) -> bytes:
        return png_of(self.figure)

    def __repr__(self) -> str:
        return f"<plot: {self.about}>"
