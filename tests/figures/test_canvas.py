# SPDX-License-Identifier: Apache-2.0
"""Files of figures: the suffix of the name sets the format."""

from __future__ import annotations

from pathlib import Path

import pytest

from rebat.api.result import Plot
from rebat.core.errors import InputError
from rebat.figures.canvas import new_figure

BEGINS = {
    "png": b"\x89PNG\r\n",
    "svg": b"<?xml",
    "pdf": b"%PDF-",
    "eps": b"%!PS-Adobe-3.0 EPSF-3.0",
}


def plot() -> Plot:
    figure = new_figure(2, 2)
    figure.subplots().plot([1, 2], [3, 5])
    return Plot(figure, "two points")


@pytest.mark.parametrize("suffix", [*BEGINS, "PDF"])
def test_the_suffix_sets_the_format(suffix: str, tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.{suffix}" for name in "ab"]
    for file in files:
        plot().save(file)
    first, second = (file.read_bytes() for file in files)
    assert first.startswith(BEGINS[suffix.lower()])
    assert first == second


@pytest.mark.parametrize("name", ["fig", "fig.pgf", "fig.jpg", "fig.txt"])
def test_other_suffixes_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ends in \.png, \.svg, \.pdf, \.eps"):
        plot().save(tmp_path / name)
    assert not list(tmp_path.iterdir())
