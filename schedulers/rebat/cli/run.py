# SPDX-License-Identifier: Apache-2.0
"""``rebat run``: policies on a workload, on the embedded engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rebat.cli.effects import given_options, tell_all
from rebat.cli.scenario_options import LAW, PREPARATION, LawCommand, scenario_options, with_options
from rebat.cli.types import (
    FOLDER,
    NODES,
    WORKLOAD,
    FiniteRange,
)
from rebat.console.output import say, tell
from rebat.core.errors import InputError
from rebat.core.folders import atomic_folder

SEED_OPTIONS = (
    click.option("--seeds", type=click.IntRange(min=2), help="Run every policy under so many seeds, from --seed on, each policy seeing the same failures per seed, and give means with 95 % intervals."),
    click.option("--until-width", type=FiniteRange(min=0, min_open=True), help="Add seeds (up to 1,000) until the interval of a metric's ratio to the first policy, or of the one policy's value, is no wider than this share of it, like 0.02."),
    click.option("--until-metric", help="With --until-width: which metric, like useful_utilisation (default) or flow_mean_s:all, as comparison.csv names it."),
    click.option("--workers", type=NODES, help="With --seeds: worker processes (default: one per core)."),
)  # fmt: skip


@click.command(cls=LawCommand)
@click.argument("workload", type=WORKLOAD)
@click.option("-p", "--policy", "policies", multiple=True, required=True, help="Scheduler by name, see 'rebat policies', FILE.py:CLASS, or NAME:AXIS=CHOICE,...; may be repeated: all see the same failures.")  # fmt: skip
@scenario_options("failures", *LAW, "seed")
@with_options(SEED_OPTIONS)
@scenario_options(
    "horizon",
    "begin",
    *PREPARATION,
    "operations",
    "nodes",
    "window",
    "select",
    "walltime_kills",
    "max_attempts",
    "accounting",
)
@click.option("--columns", help="Print a row per policy, the best first, with these metrics of comparison.csv: useful_utilisation,flow_max_s:all (default with more than three policies: useful utilisation, mean and largest flow).")  # fmt: skip
@click.option("--all-metrics", is_flag=True, help="Print every metric that is not 0, with all size classes, instead of the main ten.")  # fmt: skip
@click.option("--out", type=FOLDER, required=True, help="Results: a folder per policy, comparison.csv.")  # fmt: skip
@click.option("--figures", is_flag=True, help="Draw them too: flows.png, utilisation.png, gantt.png; ratios.png of many seeds.")  # fmt: skip
@click.option("--gantt", help="With --figures: the stretch of time that gantt.png shows, START:END, like 10d:12d (default: all).")  # fmt: skip
@click.option("--force", is_flag=True, help="Replace the earlier result that --out holds, as a whole.")  # fmt: skip
def run(
    workload: Path, policies: tuple[str, ...], out: Path, figures: bool, gantt: str | None, force: bool,
    columns: str | None, all_metrics: bool, seeds: int | None,
    until_width: float | None, until_metric: str | None, workers: int | None, **given: Any,
) -> None:  # fmt: skip
    """Simulate one or more policies on WORKLOAD and compare them.

    WORKLOAD is a Batsim workload (.json), or a trace (.swf, ALCF's .csv), plain or .gz; or the name
    of one that comes with rebat: mira-like-june-2017, synthetic-small, toy. Without failures and checkpoints the workload runs unchanged. Results are written before anything is
    printed. Exit status 2 when a policy failed: what the others gave is kept.

    With --seeds or --until-width every policy runs under many seeds, on all cores, and OUT holds
    seeds.csv (a row per seed, policy and metric) and comparison.csv with 95 % bootstrap intervals of
    means and of ratios to the first policy; no run's own files.

    \b
    Example, a month of Mira under failures, with and without node stealing:
      rebat run june.json.gz -p baseline -p sfsj --mtbf 1h --downtime 1h \\
          --checkpoint young-daly --figures --out out/june
    and with confidence:
      rebat run june.json.gz -p baseline -p sfsj --mtbf 1h --downtime 1h \\
          --checkpoint young-daly --seeds 30 --out out/june-30
    """
    from rebat.library import remarks
    from rebat.library.many import SeedOptions
    from rebat.library.study import study
    from rebat.library.workloads import load_workload
    from rebat.runs.comparing import failure_lines
    from rebat.runs.options import ScenarioOptions

    _check_gantt(figures and seeds is None and until_width is None, gantt)
    asked = study(
        lambda: load_workload(workload),
        policies,
        ScenarioOptions(**given),
        given_options(),
        SeedOptions(
            seeds=seeds, until_width=until_width, until_metric=until_metric, workers=workers
        ),
    )
    tell_all(asked.remarks)
    with atomic_folder(out, force) as folder:
        result = asked.run()
        result.write_into(folder, figures, gantt)
    tell_all(remarks.of_results(result.runs))
    for failure in failure_lines(result.failed):
        tell(f"rebat: error: {failure}")
    kept = f"the results are in {out}"
    try:
        text = result.text(columns.split(",") if columns else (), all_metrics)
    except InputError as error:
        raise InputError(f"{error}; {kept}") from None
    say(f"{text}results in {out}", kept=kept)
    if result.failed:
        raise SystemExit(2)


def _check_gantt(drawn: bool, gantt: str | None) -> None:
    """Before anything runs."""
    from rebat.library.checks import given_by
    from rebat.results.measures.summary import parse_window

    if gantt is None:
        return
    if not drawn:
        raise InputError("has no effect", "--gantt", "--figures beside it, and one seed")
    with given_by("--gantt"):
        parse_window(gantt)
