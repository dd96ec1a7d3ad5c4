"""The comparison of policies as a table for people."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rebat.campaign.single import RunResult
from rebat.core.units import format_duration
from rebat.report.comparison import comparison, ratio, text_of

WIDTH = 10_000
"""Where the table is not printed on a terminal it is as wide as it has to be."""


def table_of(results: Sequence[RunResult]) -> str:
    """Metrics, a column per policy and the ratios to the first; as text, coloured on a terminal."""
    from rich.console import Console
    from rich.table import Table

    summaries = {result.policy: result.summary for result in results}
    first = results[0].summary
    base, *others = summaries
    low, high = first.window_s
    table = Table(
        title=f"{first.jobs} jobs, {first.n_nodes} nodes",
        caption=(
            f"node time and counts from {format_duration(low)} to {format_duration(high)}; "
            f"flow of {first.selected_jobs} jobs; ratios to {base}"
        ),
    )
    table.add_column("metric")
    for name in summaries:
        table.add_column(name, justify="right")
    for name in others:
        table.add_column(f"{name}/{base}", justify="right")
    for line in comparison(summaries):
        ratios = [ratio(line, name, base) for name in others]
        table.add_row(
            line.metric,
            *(text_of(line.kind, line.values[name]) for name in summaries),
            *("-" if value is None else f"{value:.3f}" for value in ratios),
        )
    out = Console()
    text = io.StringIO()
    Console(
        file=text, force_terminal=out.is_terminal, width=out.width if out.is_terminal else WIDTH
    ).print(table)
    return text.getvalue()
