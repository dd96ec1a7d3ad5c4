"""``rebat run --seeds``: the same policies under many seeds, with intervals."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from rebat.cli.comparison_table import WIDTH
from rebat.cli.progress import compiling_notice, counting_bar
from rebat.cli.types import NODES, FiniteRange
from rebat.core.errors import InputError

if TYPE_CHECKING:
    from rebat.campaign.options import ScenarioOptions
    from rebat.campaign.seeds import Narrow
    from rebat.campaign.spec import Scenario
    from rebat.metrics.seeded import Row, Seeds

DEFAULT_SEEDS = 10
"""How many there are at first where only a width is asked for."""


class SeedOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says of seeds; without any there is one run a policy."""

    seeds: int | None = None
    until_width: float | None = None
    until_metric: str | None = None
    workers: int | None = None

    @property
    def many(self) -> bool:
        """Whether there are to be several runs a policy."""
        return self.seeds is not None or self.until_width is not None

    def check(self) -> None:
        """InputError for what has no effect."""
        if self.workers is not None and not self.many:
            raise InputError("has no effect", "--workers", "--seeds beside it")
        if self.until_metric is not None and self.until_width is None:
            raise InputError("has no effect", "--until-metric", "--until-width beside it")

    def narrow(self) -> Narrow | None:
        """Until when seeds are added; None: there are as many as asked for."""
        from rebat.campaign.seeds import Narrow, metric_of

        if self.until_width is None:
            return None
        metric = metric_of(self.until_metric or "useful_utilisation")
        return Narrow(self.until_width, metric)


SEED_OPTIONS = (
    click.option("--seeds", type=click.IntRange(min=2), help="Run every policy under so many seeds, from --seed on, each policy seeing the same failures per seed, and give means with 95 % intervals."),
    click.option("--until-width", type=FiniteRange(min=0, min_open=True), help="Add seeds (up to 1,000) until the interval of a metric's ratio to the first policy, or of the one policy's value, is no wider than this share of it, like 0.02."),
    click.option("--until-metric", help="With --until-width: which metric, like useful_utilisation (default) or flow_mean_s:all, as seeds.csv names it."),
    click.option("--workers", type=NODES, help="With --seeds: worker processes (default: one per core)."),
)  # fmt: skip


def run_many(
    workload: Path, policies: Sequence[str], options: ScenarioOptions, asked: SeedOptions,
    nodes: int | None, window: str, select: str, folder: Path, provenance: dict[str, Any],
    figures: bool,
) -> str:  # fmt: skip
    """Run, write seeds.csv, comparison.csv and run.json; gives the table for people."""
    import os

    from rebat.campaign.seeds import Asked, run_seeds
    from rebat.campaign.spec import Source
    from rebat.core.files import write_text
    from rebat.metrics.seeded import intervals_csv, rows, seeds_csv

    def scenario_of(seed: int) -> Scenario:
        return msgspec.structs.replace(options, seed=seed).scenario(nodes, window, select)

    _check_drawn(scenario_of(options.seed))
    n_seeds = asked.seeds or DEFAULT_SEEDS
    what = Asked(
        Source(file=str(workload.resolve())), list(policies), scenario_of, options.seed, n_seeds,
        asked.workers or len(os.sched_getaffinity(0)), asked.narrow(),
    )  # fmt: skip
    with compiling_notice(), counting_bar("runs", n_seeds * len(policies)) as on_progress:
        seeds = run_seeds(what, on_progress)
    found = list(rows(seeds))
    write_text(folder / "seeds.csv", seeds_csv(seeds))
    write_text(folder / "comparison.csv", intervals_csv(found))
    known = {**provenance, "policies": list(policies), "seeds": seeds.seeds}
    text = msgspec.json.format(msgspec.json.encode(known), indent=2).decode()
    write_text(folder / "run.json", text + "\n")
    if figures and len(seeds.policies) > 1:
        from rebat.figures.ratios import draw_ratios

        draw_ratios(found, folder / "ratios.png")
    return table_of(found, seeds)


def _check_drawn(scenario: Scenario) -> None:
    failures = scenario.failures
    if not (failures and failures.law.drawn) and scenario.silent_errors is None:
        raise InputError(
            "has no effect: nothing is drawn", "--seeds", "--mtbf, a --law or --silent-errors"
        )


SHOWN = (
    ("useful utilisation", "useful_utilisation", "share"),
    ("some node idle, share of time", "platform_idle_share", "share"),
    ("failures under a job", "failures_hit", "count"),
    ("steals decided", "steals", "count"),
    ("max flow", "flow_max_s", "time"),
    ("mean flow", "flow_mean_s", "time"),
    ("weighted mean flow", "flow_weighted_mean_s", "time"),
)
"""Title, metric, and how it is printed; flows are of all jobs measured."""


def table_of(found: Sequence[Row], seeds: Seeds) -> str:
    """The main metrics: a row per metric and policy, means and ratios with their intervals."""
    from rich.console import Console
    from rich.table import Table

    base, n = seeds.policies[0], len(seeds.seeds)
    table = Table(
        title=f"{n} seeds, {len(seeds.policies)} policies",
        caption=(
            f"mean [95 % interval]; ratios to {base}, paired by seed; "
            "= where 1 is within the interval; other metrics in comparison.csv"
        ),
    )
    table.add_column("metric")
    table.add_column("policy")
    table.add_column("mean", justify="right")
    table.add_column("ratio", justify="right")
    by = {(row.metric, row.policy): row for row in found}
    for title, name, kind in SHOWN:
        metric = (name, "all" if name.startswith("flow") else None)
        for policy in seeds.policies:
            row = by.get((metric, policy))
            if row and any(by[metric, p].value.mean for p in seeds.policies if (metric, p) in by):
                table.add_row(title if policy == base else "", policy, *_cells(row, kind))
    out, text = Console(), io.StringIO()
    width = out.width if out.is_terminal else WIDTH
    Console(file=text, force_terminal=out.is_terminal, width=width).print(table)
    return text.getvalue()


def _cells(row: Row, kind: str) -> tuple[str, str]:
    from rebat.report.comparison import text_of
    from rebat.reports.parts import marked, spread

    value = spread(row.value, partial(text_of, kind))
    ratio = "" if row.ratio is None or row.ratio.low is None else marked(row.ratio)
    return value.replace("[", r"\["), ratio.replace("[", r"\[")
