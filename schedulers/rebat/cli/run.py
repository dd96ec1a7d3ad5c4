"""``rebat run``: policies on a workload, on the embedded engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from rebat.campaign.comparing import run_each, write_comparison
from rebat.campaign.options import ScenarioOptions
from rebat.campaign.scenario import Stage, prepared, staged
from rebat.campaign.single import Runnable, RunResult
from rebat.campaign.spec import Scenario
from rebat.cli.comparison_table import table_of
from rebat.cli.effects import check_options, given_by, tell_of_input, tell_of_results
from rebat.cli.many_seeds import SEED_OPTIONS, SeedOptions, run_many
from rebat.cli.output import say, tell
from rebat.cli.progress import compiling_notice, simulation_bar
from rebat.cli.scenario_options import (
    LawCommand,
    law_options,
    preparation_options,
    with_options,
)
from rebat.cli.types import DURATION, FILE, FOLDER, NODES, SEED
from rebat.core.files import atomic_folder, file_hash
from rebat.metrics.summary import parse_selection, parse_window
from rebat.models.failures.laws import name_of
from rebat.policies.presets import schedulers


@click.command(cls=LawCommand)
@click.argument("workload", type=FILE)
@click.option("-p", "--policy", "policies", multiple=True, required=True, help="Scheduler by name, see 'rebat policies', FILE.py:CLASS, or NAME:AXIS=CHOICE,...; may be repeated: all see the same failures.")  # fmt: skip
@click.option("--failures", type=FILE, help="Event file with the node failures (Batsim's --events); --mtbf is then for the checkpoint period only.")  # fmt: skip
@law_options
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the failures and silent errors; with --seeds the first one.")  # fmt: skip
@with_options(SEED_OPTIONS)
@click.option("--horizon", type=DURATION, help="Draw no failure after this date (default: as far as the simulation goes).")  # fmt: skip
@click.option("--begin", type=DURATION, help="Begin at this date of the law or the event file: what failed before is history, and gives the nodes their uptimes (default: at its date 0).")  # fmt: skip
@preparation_options
@click.option("--operations", type=FILE, help="What an administrator asks for, a JSON object a line: nodes to drain and undrain, jobs to migrate (see 'rebat operations').")  # fmt: skip
@click.option("--nodes", type=NODES, help="Nodes of the machine (default: the workload's).")  # fmt: skip
@click.option("--window", default="auto", show_default=True, help="Measure platform time in START:END, like 10d:30d; auto: the paper's for months, else all.")  # fmt: skip
@click.option("--select", default="auto", show_default=True, help="Measure the flow of these jobs: all, 0.2:0.8:count (the paper), 0.2:0.8:time (its program), auto.")  # fmt: skip
@click.option("--walltime-kills", type=click.Choice(["wasted", "useful"]), default="wasted", show_default=True, help="What the work of jobs is that are killed at their walltimes.")  # fmt: skip
@click.option("--out", type=FOLDER, required=True, help="Results: a folder per policy, comparison.csv.")  # fmt: skip
@click.option("--figures", is_flag=True, help="Draw them too: flows.png, utilisation.png, gantt.png; ratios.png of many seeds.")  # fmt: skip
@click.option("--force", is_flag=True, help="Replace the earlier result that --out holds, as a whole.")  # fmt: skip
def run(
    workload: Path, policies: tuple[str, ...], nodes: int | None, window: str, select: str,
    out: Path, figures: bool, force: bool, seeds: int | None, until_width: float | None,
    until_metric: str | None, workers: int | None, **given: Any,
) -> None:  # fmt: skip
    """Simulate one or more policies on WORKLOAD and compare them.

    WORKLOAD is a Batsim workload (.json), or a trace (.swf, ALCF's .csv), plain or .gz. With
    neither failures nor checkpoints it runs as it is. Results are written before anything is
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
    from rebat.workloads.load import load_workload

    options = ScenarioOptions(**given)
    many = SeedOptions(
        seeds=seeds, until_width=until_width, until_metric=until_metric, workers=workers
    )
    many.check()
    check_options(options)
    with given_by("--policy"):
        presets = schedulers(policies)
    scenario = options.scenario(nodes, window, select)
    _check_measures(scenario)
    jobs = load_workload(workload)
    stage = staged(prepared(jobs, scenario), scenario)
    tell_of_input(stage.workload, options, stage.n_nodes)
    notes = {"notes": stage.workload.notes} if stage.workload.notes else {}
    provenance = {
        "workload": {
            "file": workload.name,
            "sha256": file_hash(workload),
            "jobs": len(stage.workload.jobs),
            **notes,
        },
        "options": {"nodes": stage.n_nodes, "window": window, "select": select, **_plain(options)},
    }
    if many.many:
        names = list(dict.fromkeys(policies))
        with atomic_folder(out, force) as folder:
            table = run_many(
                workload, names, options, many, nodes, window, select, folder, provenance, figures
            )
        say(f"{table}results in {out}", kept=f"the results are in {out}")
        return
    with atomic_folder(out, force) as folder, compiling_notice():
        done = run_each(presets, lambda policy: _run_one(stage, policy))
        write_comparison(folder, done, provenance, figures)
    tell_of_results(done.results)
    for failure in done.failures:
        tell(f"rebat: error: {failure}")
    say(f"{table_of(done.results)}results in {out}", kept=f"the results are in {out}")
    if done.failures:
        raise SystemExit(2)


def _check_measures(scenario: Scenario) -> None:
    """Before the workload is read."""
    with given_by("--window"):
        parse_window(scenario.window)
    with given_by("--select"):
        parse_selection(scenario.select)


def _run_one(stage: Stage, policy: Runnable) -> RunResult:
    with simulation_bar(policy.name, len(stage.workload.jobs)) as on_progress:
        return stage.run(policy, on_progress)


def _plain(options: ScenarioOptions) -> dict[str, Any]:
    values = msgspec.structs.asdict(options)
    law = values.pop("law")
    if law is not None:
        values["law"] = {"name": name_of(law), **law.identity()}
    for name in ("failures", "operations"):
        if values[name] is not None:
            values[name] = {"file": values[name].name, "sha256": file_hash(values[name])}
    return values
