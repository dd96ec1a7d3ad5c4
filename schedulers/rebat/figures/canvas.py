# SPDX-License-Identifier: Apache-2.0
"""Figures in files, without a display. Equal data result in equal bytes."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any, NamedTuple

from rebat.core.errors import InputError, short
from rebat.core.files import atomic_path
from rebat.core.numbers import number
from rebat.figures.paper import fit
from rebat.results.intervals import Interval

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
"""Paul Tol's bright scheme, which is suitable for colour-blind readers."""

_MANY = 20
"""Number of colours in matplotlib's largest scheme of distinct colours."""


_POLICIES = {
    "baseline": "#222222",
    "slurm-linear": "#222222",
    "sa": "#222222",
    "cluster": "#222222",
    "sfsj": "#cc6611",
    "h111": "#cc6611",
    "faps": "#cc6611",
    "dbes": "#cc6611",
    "easy": "#117733",
    "rps": "#117733",
    "pra": "#117733",
    "compaction": "#117733",
    "easy-sfsj": "#332288",
    "pwa": "#332288",
    "greedy": "#882255",
    "greedy-sfsj": "#44aa99",
}
"""Colours of policies that are often compared. No colour is also used for ends of attempts."""

_OTHERS = ("#222222", "#cc6611", "#117733", "#332288", "#882255", "#44aa99", "#33bbee", "#ddcc77")


def policy_colours(names: Iterable[str]) -> dict[str, Any]:
    """Return a distinct colour per policy. Policies in `_POLICIES` have fixed colours.

    >>> policy_colours(["mine", "baseline"])
    {'mine': '#cc6611', 'baseline': '#222222'}
    """
    unique = list(dict.fromkeys(names))
    chosen: dict[str, Any] = {}
    for name in unique:
        colour = _POLICIES.get(name.lower())
        if colour is not None and colour not in chosen.values():
            chosen[name] = colour
    others = [name for name in unique if name not in chosen]
    free = [colour for colour in _OTHERS if colour not in chosen.values()]
    available = free if len(others) <= len(free) else colours(len(others))
    chosen |= dict(zip(others, available, strict=False))
    return {name: chosen[name] for name in unique}


def colours(n: int) -> list[Any]:
    """Return n distinct colours, from the bright scheme if it has enough."""
    import matplotlib as mpl

    if n <= len(COLOURS):
        return list(COLOURS[:n])
    if n <= _MANY:
        strong_then_pale = [*range(0, _MANY, 2), *range(1, _MANY, 2)]
        return [mpl.colormaps["tab20"](place) for place in strong_then_pale[:n]]
    return [mpl.colormaps["turbo"](place / (n - 1)) for place in range(n)]


_UNITS = (("days", 86_400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0))


def time_unit(values_s: Iterable[float]) -> tuple[str, float]:
    """Return the name and the length (s) of the largest unit in which a value is at least 1."""
    largest = max(map(abs, values_s), default=0.0)
    return next(((name, size) for name, size in _UNITS if largest >= size), _UNITS[-1])


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure, with sizes in inches."""
    import logging

    import matplotlib

    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # suppress messages on fonts and caches
    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def logarithmic(axes: Any, extent: float) -> None:
    """Make the x axis logarithmic, and label it with a few plain numbers.

    ``extent`` is the largest value divided by the smallest value.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if extent < 1e4 else (1,), numticks=12))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())


NARROWEST_AXIS = 0.02
"""Minimum range of an axis of ratios or of differences of shares: 2 % or 2 points."""


def at_least(axes: Any, extent: float, direction: str) -> None:
    """Extend the axis ``x`` or ``y`` around its centre, so that it covers at least ``extent``.

    Otherwise, tiny differences fill an entire panel.
    """
    limits = getattr(axes, f"get_{direction}lim")()
    low, high = sorted(limits)
    if high - low < extent:
        middle = (low + high) / 2
        getattr(axes, f"set_{direction}lim")(middle - extent / 2, middle + extent / 2)


def written(figure: Any, sink: IO[Any], **options: Any) -> None:
    """Draw a figure into a file. Print no warnings, and write the complete numbers at ticks."""
    for axes in figure.axes:
        for formatter in (axes.xaxis.get_major_formatter(), axes.yaxis.get_major_formatter()):
            if hasattr(formatter, "set_useOffset"):
                formatter.set_useOffset(False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        figure.savefig(sink, **options)


METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "eps": {},
}
"""Formats of figures. Without these entries, files of equal figures would differ."""


def formats_of(text: str) -> tuple[str, ...]:
    """Return the formats in a text like ``pdf,svg``.

    >>> formats_of("pdf,svg")
    ('pdf', 'svg')
    """
    formats = tuple(dict.fromkeys(part.strip().lower() for part in text.split(",")))
    if not set(formats) <= METADATA.keys():
        expected = f"formats separated by commas: {', '.join(METADATA)}"
        raise InputError(f"{short(text)} is not a list of formats", expected=expected)
    return formats


def save(figure: Any, path: Path, width: float | None = None) -> None:
    """Write a figure in the format of the file's suffix, atomically.

    ``width`` is a width for a paper (see `content_of`).
    """
    form = path.suffix.lower().removeprefix(".")
    if form not in METADATA:
        expected = f"a file name that ends in .{', .'.join(METADATA)}"
        raise InputError("is not the name of a figure", str(path), expected)
    data = content_of(figure, form, width)
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)


SCREEN_DPI, PAPER_DPI = 110, 300
"""Resolution of PNG files, and of images in other formats."""


def content_of(figure: Any, form: str = "png", width: float | None = None) -> bytes:
    """Return a figure as the content of a file in one of the formats of `METADATA`.

    Fonts in PDF and EPS files are TrueType. If ``width`` is set, the figure has this width in
    inches and text of 8 points (see `rebat.figures.paper`).
    """
    import matplotlib as mpl

    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "rebat", "pdf.fonttype": 42, "ps.fonttype": 42}):
        drawn = figure if width is None else fit(figure, width)
        dpi = SCREEN_DPI if width is None else PAPER_DPI
        written(drawn, buffer, format=form, dpi=dpi, metadata=METADATA[form])
    data = buffer.getvalue()
    return (
        re.sub(rb"^%%(CreationDate|Title): .*\n", b"", data, flags=re.M) if form == "eps" else data
    )


class FileForms(NamedTuple):
    """The files to draw from each figure: formats, and width in inches (None: for the screen)."""

    formats: tuple[str, ...]
    width: float | None = None


class Drawn(NamedTuple):
    """The files of the figures in a block of `drawing`, by SVG element and format."""

    forms: FileForms
    files: dict[str, dict[str, bytes]]


_DRAWN: ContextVar[Drawn | None] = ContextVar("_DRAWN", default=None)


@contextmanager
def drawing(forms: FileForms) -> Iterator[Drawn]:
    """Draw each figure of `svg_of` in the block as files as well."""
    drawn = Drawn(forms, {})
    token = _DRAWN.set(drawn)
    try:
        yield drawn
    finally:
        _DRAWN.reset(token)


def svg_of(figure: Any) -> str:
    """Return a figure as an SVG element. It contains no date, and equal data have equal ids."""
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "rebat", "svg.fonttype": "none"}):
        written(figure, buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = re.sub(r'width="[^"]*pt" height="[^"]*pt"', "", text[text.index("<svg") :], count=1)
    svg = _short(text)
    if (drawn := _DRAWN.get()) is not None:
        formats, width = drawn.forms
        drawn.files[svg] = {
            form: svg.encode()
            if form == "svg" and width is None
            else content_of(figure, form, width)
            for form in formats
        }
    return svg


def _short(svg: str) -> str:
    """Remove metadata, substitute fonts, and decimals below 1/100 pt from an SVG."""
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"(font-family: 'DejaVu Sans')[^;\"]*(, sans-serif)", r"\1\2", svg)
    svg = re.sub(r' transform="rotate\(-0 [^"]*"', "", svg)
    svg = re.sub(
        r' (?:d|x|y|transform)="[^"]*"',
        lambda match: re.sub(r"(\.\d\d)\d+", r"\1", match[0]).replace("\n", ""),
        svg,
    )
    return re.sub(r"\n\s*", "\n", svg)


def whiskers(estimates: Sequence[Interval], unit: float = 1.0) -> list[list[float]]:
    """Return the lengths of the whiskers below and above bars, 0 where there is no interval."""
    ends = [(e.mean, e.low, e.high) for e in estimates]
    return [
        [0.0 if low is None else (mean - low) / unit for mean, low, _ in ends],
        [0.0 if high is None else (high - mean) / unit for mean, _, high in ends],
    ]
