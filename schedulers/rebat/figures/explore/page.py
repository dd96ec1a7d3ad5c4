# SPDX-License-Identifier: Apache-2.0
"""The explorer page: Bokeh figures with linked axes, and a script that draws into them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rebat.core.attempts import Cause
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.figures.canvas import policy_colours
from rebat.figures.explore.data import first_difference, packed, page_data
from rebat.figures.runs import CAUSE_COLOURS, HELD_COLOUR, legend_text
from rebat.results.measures.timeline import CAUSES, Timeline
from rebat.workloads.machine import origin_of

if TYPE_CHECKING:
    from bokeh.plotting import figure

SERIES = (
    ("busy", "Nodes in use"),
    ("queued", "Attempts waiting"),
    ("free", "Nodes up and free"),
)
"""Series and their titles, from top to bottom."""

SCRIPTS = ("data.js", "canvas.js", "run.js", "explore.js")

MOST_TOGETHER = 6
"""The largest number of runs on a page."""


def explorer_page(
    timelines: Sequence[Timeline],
    title: str,
    window_us: tuple[int, int] | None = None,
    node_names: Sequence[str] = (),
    stories: Sequence[Mapping[str, str] | None] = (),
    place: RecordedPlace | None = None,
    verdicts: Sequence[str] = (),
) -> str:
    """Return an interactive page of runs. It needs no other file and no network.

    Parameters
    ----------
    timelines : sequence of Timeline
        At most ``MOST_TOGETHER`` runs, from top to bottom.
    window_us : (int, int), optional
        Time window that is shown first, in microseconds (default: the entire run).
    node_names : sequence of str
        The name of each node (default: nodes have numbers only).
    stories : sequence of mappings, optional
        For each run, the stories of jobs by id (see `results.explain`). If a run did not record its
        plans, its entry is None.
    place : RecordedPlace, optional
        Dates and partitions of the machine.
    verdicts : sequence of str
        Sentences below the title.
    """
    import jinja2
    from bokeh.embed import components
    from bokeh.resources import Resources

    difference = first_difference(timelines)
    data = page_data(timelines, window_us)
    data |= {"nodeNames": list(node_names), "difference": difference}
    if place is not None and place.origin_s is not None:
        data |= {"origin": round(place.origin_s * 1000), "zone": place.zone}
    for run, texts in zip(data["runs"], stories, strict=False):
        if texts is not None:
            run["stories"] = [texts[job] for job in run["jobs"]]
    colours = policy_colours([timeline.name for timeline in timelines])
    figures = _figures(data)
    if place is not None:
        _place(figures, place)
    script, places = _settled(*components(figures))
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    page: str = environment.from_string(_asset("page.html")).render(
        title=title,
        compares=difference is not None,
        verdicts=verdicts,
        runs=[
            (
                run["name"],
                colours[run["name"]],
                places[f"gantt{k}"],
                f"gantt{k}" in _with_axis(data),
            )
            for k, run in enumerate(data["runs"])
        ],
        series=[(heading, places[name], name in _with_axis(data)) for name, heading in SERIES],
        causes=_causes(timelines),
        legend={str(cause): legend_text(cause) for cause in CAUSE_COLOURS},
        shown=_shown(data),
        held=HELD_COLOUR,
        style=_asset("explore.css"),
        bokeh=Resources(mode="inline", components=["bokeh"]).render(),
        figures=script,
        data=packed(data),
        code="\n".join(map(_asset, SCRIPTS)),
    )
    return page


class RecordedPlace(NamedTuple):
    """Time 0 (seconds since 1970, or None), the time zone, and the nodes of each partition."""

    origin_s: float | None
    zone: str
    partitions: dict[str, NodeSet]


def place_of(machine: Mapping[str, Any]) -> RecordedPlace | None:
    """Return the place that a result recorded (see `workloads.machine.machine_facts`)."""
    zone, rows = machine.get("time_zone"), machine.get("partitions")
    try:
        ZoneInfo(str(zone or "UTC"))
        partitions = {str(n): NodeSet.parse(str(text)) for n, text in (rows or {}).items()}
    except (InputError, ValueError, AttributeError, ZoneInfoNotFoundError):
        return None
    begin_s = origin_of(machine)
    if begin_s is None and not partitions:
        return None
    return RecordedPlace(begin_s, str(zone or "UTC"), partitions)


def _place(figures: Mapping[str, Any], place: RecordedPlace) -> None:
    """Write dates on the axes of time, and lines between partitions."""
    from bokeh.models import CustomJSTickFormatter, Label, Span

    for name, plot in figures.items():
        if place.origin_s is not None:
            plot.xaxis.formatter = CustomJSTickFormatter(
                args={"origin": place.origin_s * 1000, "zone": place.zone}, code=_DATES
            )
        if not name.startswith("gantt"):
            continue
        for partition, nodes in place.partitions.items():
            for first, _ in nodes.intervals.tolist():
                line = {"line_color": "#222222", "line_alpha": 0.5, "line_dash": "dotted"}
                plot.add_layout(Span(location=first - 0.5, dimension="width", **line))
            plot.add_layout(
                Label(
                    x=4,
                    x_units="screen",
                    y=float(nodes.lowest),
                    text=partition,
                    text_font_size="10px",
                    text_baseline="top",
                    background_fill_color="white",
                    background_fill_alpha=0.7,
                )
            )


_DATES = """
const date = new Date(origin + tick), time = { timeZone: zone, hour: "2-digit", minute: "2-digit" };
const day = { timeZone: zone, year: "numeric", month: "2-digit", day: "2-digit" };
const clock = date.toLocaleTimeString("en-GB", time);
return date.toLocaleDateString("sv-SE", day) + (clock === "00:00" ? "" : " " + clock);
"""
"""Formatter of dates on axes."""


_IDS = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\bp\d{4,}\b")
"""Pattern of Bokeh's names of documents, positions and models. They differ in every call."""


def _settled(script: str, places: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Replace Bokeh's names with numbers, so that equal pages have equal bytes."""
    names: dict[str, str] = {}

    def name(match: re.Match[str]) -> str:
        return names.setdefault(match[0], f"model-{len(names)}")

    return _IDS.sub(name, script), {key: _IDS.sub(name, text) for key, text in places.items()}


def _asset(name: str) -> str:
    return resources.files("rebat.figures.explore").joinpath(name).read_text(encoding="utf-8")


def _causes(timelines: Sequence[Timeline]) -> list[tuple[str, str]]:
    """Return the name and colour of each cause that occurs, for the legend."""
    seen = {int(number) for timeline in timelines for number in set(timeline.cause[timeline.ran])}
    return [
        (str(cause), colour)
        for cause, colour in CAUSE_COLOURS.items()
        if CAUSES.index(cause) in seen or cause == Cause.COMPLETED
    ]


def _shown(data: dict[str, Any]) -> set[str]:
    """Return the other entries of the legend (not causes) that occur in the data."""
    signs = {
        "tail": any((run["tail"] > 0).any() for run in data["runs"]),
        "checkpoints": any((run["period"] > 0).any() for run in data["runs"]),
        "held": any(len(run["heldFor"]) for run in data["runs"]),
        "failures": any(len(run["down"]) for run in data["runs"]),
    }
    return {name for name, there in signs.items() if there}


def _figures(data: dict[str, Any]) -> dict[str, figure]:
    """Return the figures by name: a Gantt chart per run, and the series. They share a time axis."""
    from bokeh.models import Range1d

    first, last = data["window"]
    x = Range1d(
        first,
        last,
        bounds=(0, data["end"]),
        min_interval=min(1000, data["end"]),
        reset_start=0,
        reset_end=data["end"],
        name="time",
    )
    top, bottom = -0.5, data["nodes"] - 0.5
    y = Range1d(bottom, top, bounds=(top, bottom), min_interval=1, name="nodes")
    figures = {f"gantt{k}": _gantt(x, y) for k in range(len(data["runs"]))}
    colours = policy_colours([run["name"] for run in data["runs"]])
    for name, _ in SERIES:
        most = max(int(run["series"][name]["value"].max(initial=1)) for run in data["runs"])
        figures[name] = _lines(x, max(most, 1), list(colours.values()))
    for name, plot in figures.items():
        plot.name = name
        plot.xaxis.visible = name in _with_axis(data)
    return figures


def _with_axis(data: dict[str, Any]) -> tuple[str, str]:
    """Return the lowest chart and the lowest series. They have a labelled time axis."""
    return f"gantt{len(data['runs']) - 1}", SERIES[-1][0]


_LOOK: dict[str, Any] = {
    "x_axis_type": "timedelta",
    "toolbar_location": None,
    "sizing_mode": "stretch_both",
    "min_border_left": 66,
    "min_border_right": 26,
    "output_backend": "canvas",
}


def _gantt(x: Any, y: Any) -> figure:
    from bokeh.models import ColumnDataSource, Span
    from bokeh.plotting import figure

    plot = figure(
        x_range=x, y_range=y, tools="pan,box_zoom,wheel_zoom", active_scroll="wheel_zoom", **_LOOK
    )
    image = ColumnDataSource({"image": [], "x": [], "y": [], "dw": [], "dh": []}, name="image")
    plot.image_rgba(
        "image", "x", "y", "dw", "dh", source=image, origin="bottom_left", anchor="top_left"
    )
    parting = Span(
        location=0, dimension="height", line_dash="dashed", visible=False, name="parting"
    )
    plot.add_layout(parting)
    names = ColumnDataSource({"x": [], "y": [], "text": []}, name="names")
    plot.text(
        "x",
        "y",
        "text",
        source=names,
        text_align="center",
        text_baseline="middle",
        text_font_size="11px",
        text_color="white",
        background_fill_color="#222222",
        background_fill_alpha=0.45,
        padding=1,
    )
    plot.yaxis.formatter.use_scientific = False
    _plain(plot)
    return plot


def _lines(x: Any, most: int, colours: Sequence[str]) -> figure:
    from bokeh.models import ColumnDataSource, Range1d
    from bokeh.plotting import figure

    y = Range1d(-0.03 * most, 1.08 * most)
    plot = figure(
        x_range=x, y_range=y, tools="xpan,xwheel_zoom", active_scroll="xwheel_zoom", **_LOOK
    )
    for k, colour in enumerate(colours):
        source = ColumnDataSource({"x": [], "y": []}, name=f"line{k}")
        plot.line("x", "y", source=source, line_color=colour, line_width=1.2, alpha=0.9)
    plot.yaxis.ticker.desired_num_ticks = 3
    plot.yaxis.formatter.use_scientific = False
    _plain(plot)
    return plot


def _plain(plot: Any) -> None:
    plot.grid.grid_line_alpha = 0.4
    plot.outline_line_color = "#cccccc"
    plot.axis.minor_tick_line_color = None
