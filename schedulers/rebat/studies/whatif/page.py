# SPDX-License-Identifier: Apache-2.0
"""The page: controls, the answer as words and figures, and the map.

The server keeps a copy of the page's models (Bokeh). When a control changes, the page starts a
new question. A timer shows the current answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib import resources
from typing import Any

import msgspec

from rebat.core.errors import RebatError
from rebat.core.numbers import duration, spread
from rebat.figures.canvas import policy_colours, time_unit
from rebat.figures.winner_map import opacity
from rebat.policies.presets import PRESETS
from rebat.results.catalogue import USUAL, VERDICT, metric
from rebat.results.comparison import MOST_SENTENCES, MetricRow, Runs, change_text, rows, verdict
from rebat.results.intervals import Interval
from rebat.results.metric import Name
from rebat.studies.whatif.answers import MOST_SEEDS, Answer, Answers, MapPlan
from rebat.studies.whatif.question import CONTROLS, Control, Question

REFRESH_MS = 250
"""Time between two updates of the page, in milliseconds."""

MAP_X, MAP_Y = 12, 8
"""Maximum numbers of columns and rows of the map."""

CHANGES: tuple[Name, ...] = (
    ("useful_utilisation", None),
    ("flow_mean_s", "all"),
    ("flow_max_s", "all"),
    ("flow_weighted_mean_s", "all"),
)
"""Metrics of the figure of changes, from top to bottom."""

TOO_LONG = (
    "One run takes {time}, which is too long for live answers. There is no map, and the answer has "
    "few seeds. Use <b>Save as campaign</b> below: you can interrupt a campaign and continue it "
    "later."
)

GONE = (
    "The server has stopped, so the page does not answer any more. Start 'rebat whatif' again, and "
    "open the address that it prints."
)

MOVED = "This page was opened a second time. Reload it to continue here."

WRAPPING = {"flex-wrap": "wrap"}

_TABLE = """
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
td, th { padding: 2px 10px; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap }
td:first-child, th:first-child, td:nth-child(2), th:nth-child(2) { text-align: left }
"""

MAP_NOTE = (
    "The colour of a cell is the policy that is best there. The stronger the colour, the larger "
    "the lead over the second best policy. Hatched cells are not decided. Click a cell to set both "
    "controls to its values."
)

_LEGEND = """
:host { display: block; min-height: 1.5em; margin: 2px 0 }
span { margin-right: 1.4em; white-space: nowrap; font-weight: 600 }
i { display: inline-block; width: 1em; height: .8em; margin-right: .4em }
"""

_PRE = """
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #f5f5f5; padding: 6px; margin: 0 }
"""

_FOCUS = ":focus-visible { outline: 3px solid #005fcc !important; outline-offset: 2px }"
"""Style of the control that has the keyboard. Bokeh hides the outlines of some."""

MOST_POLICIES = 6

SIMULATING = '<p class="note">Simulating ...</p>'

_VERDICT = """
:host { display: block; min-height: calc(var(--sentences) * 4.8rem + 1.8rem) }
@media (max-width: 1150px) { :host { min-height: calc(var(--sentences) * 6.4rem + 1.8rem) } }
@media (max-width: 600px) { :host { min-height: calc(var(--sentences) * 9rem + 2.6rem) } }
p { margin: 0 0 .35em; font-size: 1.06rem } .note { color: #555; font-size: .9rem }
.error { color: #a40000; font-weight: 600 } .old { opacity: .45 }
"""


def asset(name: str) -> str:
    """Return the content of a file of the page."""
    return resources.files("rebat.studies.whatif").joinpath(name).read_text(encoding="utf-8")


class Page:
    """A page in a browser, with its question and its answer.

    Parameters
    ----------
    question : Question
        The question at the start.
    answers : Answers
        The simulations. They stop when the page is closed.
    document : bokeh.document.Document
        The document that receives the page.
    key : str
        Name of the page in the addresses of its downloads.
    """

    def __init__(self, question: Question, answers: Answers, document: Any, key: str) -> None:
        import jinja2
        from bokeh.layouts import column

        self.question = question
        self._answers, self._document, self._shown = answers, document, -1
        self._words = ""
        self._state: Any = None
        self._controls = [c for c in CONTROLS if len(c.offered(question)) > 1]
        self._values = {c.name: [*c.offered(question)] for c in self._controls}
        self._widgets = {c.name: self._widget(c) for c in self._controls}
        self._axes = self._axis_choices()
        self._figures()
        self._map_figure()
        self._take(key)
        document.title = f"what if: {question.name}"
        document.template = jinja2.Environment().from_string(asset("page.html"))
        document.template_variables.update(
            title=document.title, style=asset("whatif.css"),
            about="Change a setting, and the answer follows. It gets more precise with each seed.",
        )  # fmt: skip
        parts = [part for c in self._controls for part in self._widgets[c.name]]
        chooser = self._chooser()
        controls = column(chooser, *parts, name="controls", sizing_mode="stretch_width")
        for root in (controls, self.verdict, self.legend, self.differences, self.flows, self.use,
                     self.numbers, self.map, self.take):  # fmt: skip
            document.add_root(root)
        _on_lost(document, GONE)
        sliders = [self._widgets[c.name][0] for c in self._controls if not c.choice]
        plots = [self.differences, self.flows, self.use, self.plot]
        _for_keyboards(document, chooser, sliders, plots)
        self._timer = document.add_periodic_callback(self.refresh, REFRESH_MS)
        document.on_session_destroyed(lambda context: answers.close())
        self.ask()

    # ---- controls

    def _chooser(self) -> Any:
        """Return the choice of policies."""
        from bokeh.models import MultiChoice

        names = [*dict.fromkeys((*self.question.policies, *PRESETS))]
        chooser = MultiChoice(
            title="Policies (two or more; the first is the reference)", options=names,
            value=[*self.question.policies], max_items=MOST_POLICIES, name="policies",
            placeholder="Add a policy", sizing_mode="stretch_width", stylesheets=[_FOCUS],
        )  # fmt: skip

        def chosen(attr: str, old: list[str], new: list[str]) -> None:
            if len(new) >= 2:
                self.question = msgspec.structs.replace(self.question, policies=tuple(new))
                self.ask()

        chooser.on_change("value", chosen)
        return chooser

    def _widget(self, control: Control) -> list[Any]:
        """Return the models of a control: a slider or a choice, and its help."""
        from bokeh.models import CategoricalSlider, Div, Select

        values, value = self._values[control.name], self.question.value(control.name)
        texts = [control.text(each) for each in values]
        kind = Select if control.choice else CategoricalSlider
        listed = {"options": texts} if control.choice else {"categories": texts}
        widget = kind(
            title=control.title, value=control.text(value), name=control.name,
            sizing_mode="stretch_width", stylesheets=[_FOCUS], **listed,
        )  # fmt: skip
        widget.on_change("value", lambda attr, old, new: self._set(control, texts.index(new)))
        note = Div(
            text=escape(control.help), sizing_mode="stretch_width",
            styles={"color": "#555", "font-size": ".82rem", "margin": "0 5px .5rem"},
        )  # fmt: skip
        return [widget, note]

    def _set(self, control: Control, place: int) -> None:
        self.question = self.question.with_value(control.name, self._values[control.name][place])
        self.ask()

    def ask(self) -> None:
        """Ask the current question."""
        for control in self._controls:
            widget = self._widgets[control.name][0]
            if widget.disabled == control.needs(self.question):
                widget.disabled = not control.needs(self.question)
        sentences = min(len(self.question.policies) - 1, MOST_SENTENCES)
        self.verdict.styles = {"--sentences": str(sentences)}
        self.numbers.text = self.numbers.text.replace("data-seeds", "data-old-seeds")
        if self._words:
            self.verdict.text = f'<div class="old">{self._words}</div>{SIMULATING}'
        try:
            self._answers.ask(self.question, self.plan)
            self.legend.text = "".join(
                f'<span><i style="background:{colour}"></i>{escape(policy)}</span>'
                for policy, colour in self._colours().items()
            )
        except RebatError as error:
            self.verdict.text = f'<p class="error">{escape(str(error))}</p>'
        self._texts()

    # ---- the answer

    def _figures(self) -> None:
        from bokeh.models import (
            ColumnDataSource,
            Div,
            FactorRange,
            NumeralTickFormatter,
            Range1d,
            Span,
            Whisker,
        )
        from bokeh.plotting import figure

        look = {
            "toolbar_location": None, "sizing_mode": "stretch_width", "tools": "",
            "output_backend": "canvas",
        }  # fmt: skip
        self.verdict = Div(
            text=SIMULATING, name="verdict", sizing_mode="stretch_width",
            stylesheets=[_VERDICT], html_attributes={"role": "status", "aria-live": "polite"},
        )  # fmt: skip
        self.legend = Div(name="legend", sizing_mode="stretch_width", stylesheets=[_LEGEND])
        self._changes = ColumnDataSource({"y": [], "x": [], "low": [], "high": [], "colour": []})
        plot = figure(
            name="differences",
            height=270,
            x_range=Range1d(-0.1, 0.1),
            y_range=FactorRange(),
            **look,
        )
        plot.segment("low", "y", "high", "y", source=self._changes, color="colour", line_width=3)
        plot.scatter("x", "y", source=self._changes, color="colour", size=9)
        plot.add_layout(Span(location=0, dimension="height", line_color="black"))
        plot.xaxis.formatter = NumeralTickFormatter(format="+0.[00] %")
        plot.ygrid.grid_line_color = None
        self.differences = plot
        self._flows = ColumnDataSource({"x": [], "top": [], "low": [], "high": [], "colour": []})
        empty = [("", policy) for policy in self.question.policies]  # two levels from the beginning
        plot = figure(
            name="flows", height=270, x_range=FactorRange(factors=empty), y_range=Range1d(0, 1),
            **look,
        )  # fmt: skip
        plot.vbar("x", top="top", width=0.9, source=self._flows, color="colour")
        plot.add_layout(
            Whisker(base="x", lower="low", upper="high", source=self._flows, line_color="#555")
        )
        plot.xaxis.major_label_text_font_size = "0px"
        plot.xaxis.major_tick_line_color = None
        plot.xaxis.group_label_orientation = 0.6
        plot.xaxis.group_text_font_size = "10px"
        plot.xgrid.grid_line_color = None
        self.flows = plot
        plot = figure(
            name="use", height=200, x_axis_type="timedelta", x_range=Range1d(0, 1000),
            y_range=Range1d(0, 1.02), **look,
        )  # fmt: skip
        self._lines = ColumnDataSource({"xs": [], "ys": [], "colour": []})
        plot.multi_line("xs", "ys", source=self._lines, line_color="colour", alpha=0.85)
        plot.yaxis.formatter = NumeralTickFormatter(format="0 %")
        self.use = plot
        self.numbers = Div(
            text="", name="numbers", stylesheets=[_TABLE], sizing_mode="stretch_width",
            styles={"overflow-x": "auto"},
        )  # fmt: skip

    def refresh(self) -> None:
        """Show the current answer if it changed."""
        if self._answers.version == self._shown or (answer := self._answers.answer) is None:
            return
        self._shown = answer.version
        self._show_map(answer)
        state = (answer.question, answer.n_seeds, answer.complete, answer.error)
        if state == self._state:
            return
        self._state = state
        if answer.error:
            self.verdict.text = f'<p class="error">{escape(answer.error)}</p>'
        if not answer.n_seeds:
            return
        names = [*dict.fromkeys((*CHANGES, *VERDICT, *USUAL))]
        table = [row for row in rows(answer.runs, names) if row.metric in names]
        self._show_verdict(answer, table)
        self._show_changes(table, answer.runs.policies)
        self._show_flows(answer.runs)
        self.numbers.text = _numbers(table, answer.n_seeds)
        self._show_use(answer)
        self._texts(answer.n_seeds)

    def _show_verdict(self, answer: Answer, table: Sequence[MetricRow]) -> None:
        lines = verdict(table, answer.runs).splitlines()
        parts = ["".join(f"<p>{escape(line)}</p>" for line in lines)]
        n = answer.n_seeds
        if answer.error:
            parts.append(f'<p class="error">{escape(answer.error)}</p>')
        if answer.too_long:
            text = TOO_LONG.format(time=duration(answer.run_s))
            parts.append(f'<p class="error">{text}</p>')
        elif not answer.question.random:
            parts.append('<p class="note">Nothing is random: one run per policy is exact.</p>')
        else:
            state = "complete" if answer.complete else f"{n} of {MOST_SEEDS} seeds"
            parts.append(f'<p class="note">{state}; the command below prints the same numbers.</p>')
        self._words = parts[0]
        self.verdict.text = "".join(parts)

    def _show_use(self, answer: Answer) -> None:
        """Show the nodes in use of the first seed as step lines."""
        data: dict[str, list[Any]] = {"xs": [], "ys": [], "colour": []}
        for policy, (x, y) in answer.use.items():
            at_ms = [1000.0 * each for each in x for _ in range(2)]
            data["xs"].append([*at_ms[1:], at_ms[-1]])
            data["ys"].append([share for share in y for _ in range(2)])
            data["colour"].append(self._colours()[policy])
        if self._lines.data != data:
            self.use.x_range.end = max((xs[-1] for xs in data["xs"]), default=1000.0)
            self._lines.data = data

    def _show_changes(self, table: Sequence[MetricRow], policies: Sequence[str]) -> None:
        names = {
            (name, policy): metric(name[0]).title.strip() + (f", {policy}" if policies[2:] else "")
            for name in CHANGES
            for policy in policies[1:]
        }
        data: dict[str, list[Any]] = {"y": [], "x": [], "low": [], "high": [], "colour": []}
        for row in table:
            if row.ratio is None or row.metric not in CHANGES:
                continue
            change = row.ratio.minus(1.0)
            data["y"].append(names[row.metric, row.policy])
            data["x"].append(change.mean)
            data["low"].append(_end(change, change.low))
            data["high"].append(_end(change, change.high))
            data["colour"].append(self._colours()[row.policy])
        factors = [*names.values()][::-1]
        if self.differences.y_range.factors != factors:
            self._changes.data = {key: [] for key in data}
            self.differences.y_range.factors = factors
        low, high = min([0.0, *data["low"]]), max([0.0, *data["high"]])
        room = max(0.06 * (high - low), 0.005)
        self.differences.x_range.start = low - room
        self.differences.x_range.end = high + room
        self._changes.data = data

    def _show_flows(self, runs: Runs[str]) -> None:
        classes = [of for name, of in runs.metrics if name == "flow_mean_s" and of]
        cells = [(of, policy) for of in classes for policy in runs.policies]
        means = {
            (row.metric[1], row.policy): row.value
            for row in rows(runs, [("flow_mean_s", of) for of in classes])
        }
        shown = [(cell, means[cell]) for cell in cells if cell in means]
        unit, size = time_unit([mean.mean for _, mean in shown])
        if self.flows.x_range.factors != cells:
            self._flows.data = {key: [] for key in self._flows.data}
            self.flows.x_range.factors = cells
        self.flows.yaxis.axis_label = f"mean flow ({unit})"
        data = {
            "x": [cell for cell, _ in shown],
            "top": [mean.mean / size for _, mean in shown],
            "low": [_end(mean, mean.low) / size for _, mean in shown],
            "high": [_end(mean, mean.high) / size for _, mean in shown],
            "colour": [self._colours()[policy] for (_, policy), _ in shown],
        }
        self.flows.y_range.end = 1.04 * max(
            (_end(mean, mean.high) / size for _, mean in shown), default=1.0
        )
        self._flows.data = data

    def _colours(self) -> dict[str, Any]:
        """Return the colour of each policy."""
        return policy_colours(self.question.policies)

    # ---- the map

    def _axis_choices(self) -> dict[str, Control]:
        return {c.title: c for c in self._controls if not c.choice}

    def _map_figure(self) -> None:
        from bokeh.layouts import column, row
        from bokeh.models import ColumnDataSource, Div, FactorRange, HoverTool, Select, TapTool
        from bokeh.plotting import figure

        titles = [*self._axes]
        self.x, self.y = (
            Select(
                title=text,
                options=titles,
                value=titles[min(k, len(titles) - 1)],
                width=230,
                stylesheets=[_FOCUS],
            )
            for k, text in enumerate(("Horizontal axis", "Vertical axis"))
        )
        ranked = {metric(name[0]).title.strip(): name for name in CHANGES}
        self._by = Select(
            title="Metric of the map", options=[*ranked], value=next(iter(ranked)), width=230,
            stylesheets=[_FOCUS],
        )  # fmt: skip
        self._ranked = ranked
        keys = ("x", "y", "w", "h", "colour", "alpha", "hatch", "text", "at_x", "at_y")
        self._cells = ColumnDataSource({key: [] for key in keys})
        self._here = ColumnDataSource({"x": [], "y": []})
        plot = figure(
            name="mapped", height=420, sizing_mode="stretch_width", toolbar_location=None,
            x_range=FactorRange(), y_range=FactorRange(), tools="", output_backend="canvas",
        )  # fmt: skip
        cells = plot.rect(
            "x", "y", "w", "h", source=self._cells, fill_color="colour", fill_alpha="alpha",
            line_color="white", hatch_pattern="hatch", hatch_color="white", hatch_alpha=0.9,
            hatch_scale=9, nonselection_fill_alpha="alpha",
        )  # fmt: skip
        plot.rect("x", "y", 1, 1, source=self._here, fill_alpha=0, line_color="#d00", line_width=3)
        tips = [("", "@text")]
        plot.add_tools(TapTool(renderers=[cells]), HoverTool(renderers=[cells], tooltips=tips))
        plot.grid.grid_line_color = None
        plot.xaxis.major_label_orientation = 0.6
        self.plot = plot
        note = Div(text=MAP_NOTE, sizing_mode="stretch_width", stylesheets=[_LEGEND])
        self.map = column(
            row(self.x, self.y, self._by, sizing_mode="stretch_width", styles=WRAPPING),
            note, plot, name="map", sizing_mode="stretch_width",
        )  # fmt: skip
        self._cells.selected.on_change("indices", lambda attr, old, new: self._go(new))
        for select in (self.x, self.y, self._by):
            select.on_change("value", lambda attr, old, new: self.ask())

    @property
    def plan(self) -> MapPlan | None:
        x, y = self._axes.get(self.x.value), self._axes.get(self.y.value)
        if x is None or y is None or x is y or not all(c.needs(self.question) for c in (x, y)):
            return None
        return MapPlan(
            x.name, y.name, _thinned(self._values[x.name], MAP_X),
            _thinned(self._values[y.name], MAP_Y), self._ranked[self._by.value],
        )  # fmt: skip

    def _show_map(self, answer: Answer) -> None:
        plan = answer.plan
        data: dict[str, list[Any]] = {key: [] for key in self._cells.data}
        if plan is None:
            self._cells.data, self._here.data = data, {"x": [], "y": []}
            return
        x, y = (self._axes[select.value] for select in (self.x, self.y))
        across, up = [x.text(v) for v in plan.x_values], [y.text(v) for v in plan.y_values]
        if self.plot.x_range.factors != across or self.plot.y_range.factors != up:
            self.plot.x_range.factors, self.plot.y_range.factors = across, up
            self.plot.xaxis.axis_label, self.plot.yaxis.axis_label = x.title, y.title
        largest = max((cell.winner.lead.mean for cell in answer.cells.values()), default=0.0)
        for (column, row), width in _blocks(answer, len(across), len(up)):
            cell = answer.cells[_of_block(answer, column, row)]
            best = cell.winner
            data["x"].append(across[column])
            data["y"].append(up[row])
            data["w"].append(1)
            data["h"].append(1)
            data["colour"].append(self._colours()[best.policy])
            data["alpha"].append(opacity(best, largest))
            data["hatch"].append(" " if best.decided else "/")
            data["at_x"].append(column)
            data["at_y"].append(row)
            lead = change_text(best.lead.minus(-1.0))
            data["text"].append(
                f"lead of {best.policy} over {best.second}: {lead}"
                + (" (block of cells)" if width > 1 else "")
            )
        self._cells.data = data
        here = self.question.value(plan.x), self.question.value(plan.y)
        self._here.data = (
            {"x": [x.text(here[0])], "y": [y.text(here[1])]}
            if (here[0] in plan.x_values and here[1] in plan.y_values)
            else {"x": [], "y": []}
        )

    def _go(self, indices: Sequence[int]) -> None:
        """Set both controls to the values of a cell."""
        plan = self.plan
        if not indices or plan is None:
            return
        at = {
            plan.x: plan.x_values[self._cells.data["at_x"][indices[0]]],
            plan.y: plan.y_values[self._cells.data["at_y"][indices[0]]],
        }
        self._cells.selected.indices = []
        for control in self._controls:
            if control.name in at:
                self._widgets[control.name][0].value = control.text(at[control.name])

    # ---- take it with you

    def _take(self, key: str) -> None:
        from bokeh.layouts import column, row
        from bokeh.models import Button, CustomJS, Div, PreText

        self._command, self._python = (
            PreText(text="", stylesheets=[_PRE], sizing_mode="stretch_width") for _ in range(2)
        )
        buttons = []
        for text, source in (("Copy as command", self._command), ("Copy as Python", self._python)):
            button = Button(label=text, width=150, stylesheets=[_FOCUS])
            copied = "navigator.clipboard.writeText(source.text); const b = cb_obj.origin; " \
                "b.label = 'Copied'; setTimeout(() => { b.label = label }, 1500)"  # fmt: skip
            button.js_on_click(CustomJS(args={"source": source, "label": text}, code=copied))
            buttons.append(button)
        links = Div(
            text=f'<a href="saved?page={key}" download="whatif.html">Save page</a> &nbsp; '
            f'<a href="campaign?page={key}" download="whatif.toml">Save as campaign</a>',
            styles={"align-self": "center", "font-size": "1rem"}, stylesheets=[_FOCUS],
        )  # fmt: skip
        self.take = column(
            row(*buttons, links, sizing_mode="stretch_width", styles=WRAPPING),
            self._command, self._python, name="take", sizing_mode="stretch_width",
        )  # fmt: skip

    def _texts(self, n_seeds: int = MOST_SEEDS) -> None:
        self._command.text = self.question.command(max(n_seeds, 2))
        self._python.text = self.question.python(max(n_seeds, 2))

    @property
    def answer(self) -> Answer | None:
        """The current answer."""
        return self._answers.answer

    def close(self) -> None:
        """Stop all simulations of the page."""
        self._answers.close()

    def retire(self) -> None:
        """Stop, because the page was opened again."""

        def show() -> None:
            self._document.remove_periodic_callback(self._timer)
            self.verdict.text = f'<p class="error">{escape(MOVED)}</p>'

        self._answers.close()
        self._document.add_next_tick_callback(show)


def _end(mean: Interval, end: float | None) -> float:
    return mean.mean if end is None else end


def _numbers(table: Sequence[MetricRow], n_seeds: int) -> str:
    """Return the main numbers as a table. The title of a cell is the complete number."""
    lines = ["<tr><th>metric</th><th>policy</th><th>mean</th><th>change</th></tr>"]
    for row in table:
        about = metric(row.metric[0])
        change = "" if row.ratio is None else change_text(row.ratio)
        exact = "" if row.ratio is None else f"{row.ratio.mean!r}"
        lines.append(
            f'<tr data-metric="{escape(row.metric[0])}" data-policy="{escape(row.policy)}">'
            f"<td>{escape(about.title.strip())}</td><td>{escape(row.policy)}</td>"
            f'<td title="{row.value.mean!r}">{escape(spread(row.value, about.form))}</td>'
            f'<td title="{exact}">{escape(change)}</td></tr>'
        )
    return f'<table data-seeds="{n_seeds}">{"".join(lines)}</table>'


def _thinned(values: Sequence[Any], most: int) -> tuple[Any, ...]:
    """Return at most ``most`` of the values, evenly, with both ends."""
    if len(values) <= most:
        return tuple(values)
    return tuple(values[round(k * (len(values) - 1) / (most - 1))] for k in range(most))


def _blocks(answer: Answer, n_x: int, n_y: int) -> list[tuple[tuple[int, int], int]]:
    """Return all cells that are known, or lie in the block of a known cell, with its width."""
    return [
        ((column, row), answer.cells[at].width)
        for column in range(n_x)
        for row in range(n_y)
        if (at := _of_block(answer, column, row)) is not None
    ]


def _of_block(answer: Answer, column: int, row: int) -> Any:
    """Return the known cell that represents a cell: itself, or that of the finest block."""
    if (column, row) in answer.cells:
        return column, row
    for width in (2, 4):
        middle = (width - 1) // 2
        at = column // width * width + middle, row // width * width + middle
        if at in answer.cells:
            return at
    return None


def _on_lost(document: Any, text: str) -> None:
    """Show a text if the connection to the server is lost."""
    from bokeh.models import CustomJS

    code = (
        "const p = document.createElement('p'); p.textContent = text; p.id = 'lost'; "
        "p.setAttribute('role', 'alert'); p.style = 'position:fixed;bottom:0;left:0;right:0;"
        "margin:0;padding:.8rem;background:#a40000;color:#fff;z-index:9'; "
        "if (!document.getElementById('lost')) document.body.append(p)"
    )
    document.js_on_event("connection_lost", CustomJS(args={"text": text}, code=code))


def _for_keyboards(
    document: Any, chooser: Any, sliders: Sequence[Any], plots: Sequence[Any]
) -> None:
    """Make all controls usable by keyboard and screen reader. Bokeh has no options for this.

    - The list of policies is no stop of Tab. A browser stops at a list that scrolls. The list
      closes then, and the focus is lost.
    - Plots are no stops of Tab, because no key has an effect there.
    - The handles of sliders have names.
    """
    from bokeh.models import CustomJS

    code = """
    const root = (model) => Bokeh.index.find_one(model).shadow_el;
    const skip = (node, stops) =>
      node.querySelectorAll(stops).forEach((stop) => { stop.tabIndex = -1 });
    const lists = root(chooser);
    lists.addEventListener("focusin", () => skip(lists, ".choices__list .choices__list"));
    for (const slider of sliders) {
      const handle = root(slider).querySelector("[role=slider]");
      handle.setAttribute("aria-label", slider.title);
      const show = () => handle.setAttribute("aria-disabled", String(slider.disabled));
      slider.properties.disabled.change.connect(show);
      show();
    }
    const hosts = (node) => [...node.querySelectorAll("*")].filter((each) => each.shadowRoot);
    const within = (node) => [node, ...hosts(node).flatMap((host) => within(host.shadowRoot))];
    plots.flatMap((plot) => within(root(plot))).forEach((node) => skip(node, "[tabindex]"));
    """
    args = {"chooser": chooser, "sliders": [*sliders], "plots": [*plots]}
    document.js_on_event("document_ready", CustomJS(args=args, code=code))
