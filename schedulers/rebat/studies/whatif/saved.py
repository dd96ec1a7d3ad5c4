# SPDX-License-Identifier: Apache-2.0
"""Downloads of the page: a page without a server, and a campaign file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from rebat.api.provenance import versions
from rebat.api.sweep import SEEDS
from rebat.core.numbers import counted, spread
from rebat.figures.canvas import svg_of
from rebat.figures.charts import ratios_figure
from rebat.figures.winner_map import Axis, winner_map
from rebat.report.parts import Picture, Report
from rebat.report.parts import html as page_of
from rebat.report.table import Table
from rebat.results.catalogue import USUAL, VERDICT, metric
from rebat.results.comparison import change_text, rows, verdict
from rebat.runs.case import texts_of
from rebat.runs.scenario import FILES, OPTIONS
from rebat.studies.whatif.answers import Answer
from rebat.studies.whatif.page import Page
from rebat.studies.whatif.question import CONTROLS, Question


def static_page(page: Page) -> str:
    """Return the current answer as an HTML page without scripts, with inputs and provenance."""
    answer = page.answer
    if answer is None or not answer.n_seeds:
        return "<!DOCTYPE html><title>rebat</title><p>There is no answer yet.</p>"
    question, names = answer.question, [*dict.fromkeys((*VERDICT, *USUAL))]
    table = list(rows(answer.runs, names))
    pictures = []
    if (figure := ratios_figure(table)) is not None:
        pictures.append(Picture("", "Ratios to the first policy", svg_of(figure), intervals=True))
    if answer.cells and answer.plan:
        pictures.append(_map(answer))
    numbers = [
        [
            metric(row.metric[0]).title.strip(),
            row.policy,
            spread(row.value, metric(row.metric[0]).form),
            "" if row.ratio is None else change_text(row.ratio),
        ]
        for row in table
    ]
    settings = [
        [control.title, control.text(question.value(control.name))]
        for control in CONTROLS
        if control.needs(question) and question.value(control.name) is not None
    ]
    command = question.command(max(answer.n_seeds, 2))
    return page_of(
        Report(
            title=f"What if: {question.name}",
            lead=f"{counted(answer.n_seeds, 'run')} of each policy, simulated with rebat.",
            judgements=(),
            tables=[
                Table("", "Main numbers", ["metric", "policy", "mean", "change"], numbers),
                Table("", "Settings", ["setting", "value"], settings),
            ],
            pictures=pictures,
            provenance=[
                f"The same numbers: {command}",
                f"workload: {question.name}, sha256 {question.sha256}",
                ", ".join(f"{name} {version}" for name, version in versions().items()),
            ],
            figures_note="",
            claims=False,
            findings=verdict(table, answer.runs).splitlines(),
        )
    )


def _map(answer: Answer) -> Picture:
    plan = answer.plan
    assert plan is not None
    controls = {control.name: control for control in CONTROLS}
    cells = {at: cell.winner for at, cell in answer.cells.items() if cell.width == 1}
    axes = [
        Axis(controls[name].title, range(len(values)), [*map(controls[name].text, values)])
        for name, values in ((plan.x, plan.x_values), (plan.y, plan.y_values))
    ]
    title = f"best policy by {metric(plan.metric[0]).title.strip()}, lead over the second in %"
    figure = winner_map(cells, axes[0], axes[1], answer.question.policies, title)
    return Picture("", "Best policy over two settings", svg_of(figure))


def campaign_file(page: Page) -> str:
    """Return a campaign file (TOML) with the current question and the map's values."""
    question, plan = page.question, page.plan
    over: dict[str, list[Any]] = {}
    if plan is not None:
        over = {
            name: [value for value in values if value is not None]
            for name, values in ((plan.x, plan.x_values), (plan.y, plan.y_values))
        }
    return toml(tables_of(question, over), "A campaign of 'rebat whatif'. Run it with:\n"
                "rebat campaign run whatif.toml\nrebat campaign report whatif.toml")  # fmt: skip


def tables_of(question: Question, over: Mapping[str, list[Any]]) -> dict[str, Any]:
    """Return the tables of the campaign of a question and of other values of its options.

    Paths are absolute, because the file can be saved anywhere.
    """
    policies = [*question.cases.values()]
    if "spares" in over:
        policies = [*question.with_value("spares", "{spares}").cases.values()]
    used = question.used
    for name in FILES:
        if (path := getattr(used, name)) is not None:
            used = replace(used, **{name: path.absolute()})
    if used.law is not None:
        files = {name: getattr(used.law, name) for name in used.law.paths}
        absolute = {name: str(Path(file).absolute()) for name, file in files.items() if file}
        used = replace(used, law=replace(used.law, **absolute))
    options: dict[str, Any] = {
        name: getattr(used, name)
        if OPTIONS[name].kind in (int, float) and not OPTIONS[name].is_duration
        else text
        for name, text in texts_of(used).items()
    }
    grid = {
        "name": "whatif",
        "workloads": ["workload"],
        "policies": policies,
        **({"seeds": SEEDS} if question.random else {}),
        **options,
        **{name: values for name, values in over.items() if name != "spares"},
    }
    if "spares" in over:
        grid["sweep"] = {"spares": over["spares"]}
    source = question.source
    return {"workloads": {"workload": {"file": source.file, **source.options}}, "grid": [grid]}


def toml(tables: Mapping[str, Any], about: str) -> str:
    """Return tables as TOML. Strings, numbers and lists of JSON are also TOML."""
    lines = [f"# {line}" for line in about.splitlines()]

    def write(table: Mapping[str, Any], path: str) -> None:
        plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
        for key, value in plain.items():
            if not (isinstance(value, list) and value and isinstance(value[0], dict)):
                lines.append(f"{key} = {json.dumps(value, ensure_ascii=False)}")
        for key, value in table.items():
            name = f"{path}.{key}" if path else key
            if isinstance(value, dict) and value:
                lines.extend(["", f"[{name}]"] if set(map(type, value.values())) != {dict} else [])
                write(value, name)
            elif isinstance(value, list) and value and isinstance(value[0], dict):
                for row in value:
                    lines.extend(["", f"[[{name}]]"])
                    write(row, name)

    write(tables, "")
    return "\n".join(lines) + "\n"
