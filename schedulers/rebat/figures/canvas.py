"""A figure on a file: no display, the same bytes for the same data."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from rebat.core.files import atomic_path

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
"""Paul Tol's bright scheme: told apart by the colour-blind too."""

_MANY = 20
"""So many more or less distinct colours matplotlib has in a scheme."""


def colours(n: int) -> list[Any]:
    """So many colours, no two the same; the bright scheme as far as it goes."""
    import matplotlib as mpl

    if n <= len(COLOURS):
        return list(COLOURS[:n])
    if n <= _MANY:
        strong_then_pale = [*range(0, _MANY, 2), *range(1, _MANY, 2)]
        return [mpl.colormaps["tab20"](place) for place in strong_then_pale[:n]]
    return [mpl.colormaps["turbo"](place / (n - 1)) for place in range(n)]


def new_figure(width: float, height: float) -> Any:
    """An empty figure, sizes in inches."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Any, path: Path) -> None:
    """Write a figure as PNG, whole or not at all."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
    with atomic_path(path) as temporary:
        temporary.write_bytes(buffer.getvalue())
