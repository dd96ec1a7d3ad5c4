# SPDX-License-Identifier: Apache-2.0
"""``rebat run``: simulate policies on a workload with the embedded engine."""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import Any

import click

from rebat.cli.command_line import RecordedCommand, arguments_of, given_options
from rebat.cli.completing import complete_metric, complete_metrics, complete_policy
from rebat.cli.effects import used_options
from rebat.cli.engine_option import engine_option
from rebat.cli.json_output import json_option, print_json, reject_with_json
from rebat.cli.scenario_options import LAW, PREPARATION, RUN, scenario_options, with_options
from rebat.cli.types import (
    FOLDER,
    NODES,
    WORKLOAD,
    FiniteRange,
)
from rebat.console.output import print_line, print_remarks, print_result
from rebat.core.errors import InputError
from rebat.core.folders import atomic_folder

SEED_OPTIONS = (
    click.option(
        "--seeds",
        type=click.IntRange(min=2),
        help="Number of seeds, starting at --seed. For each seed, all policies have the same failures; results are means with 95 % intervals. With --until-width: the initial number of seeds (default: 10).",
    ),
    click.option(
        "--until-width",
        type=FiniteRange(min=0, min_open=True),
        help=(
            "Add seeds (up to 1,000) until the relative width of the confidence interval is at "
            "most this value, like 0.02. With several policies, rebat checks the intervals of the "
            "ratios to the first policy. With one policy, rebat checks the interval of the mean."
        ),
    ),
    click.option(
        "--until-metric",
        shell_complete=complete_metric,
        help=(
            "With --until-width: metric whose interval must reach this width (default: "
            "useful_utilisation). Use a name from comparison.csv, like flow_mean_s:all."
        ),
    ),
    click.option(
        "--workers",
        type=NODES,
        help="With --seeds: number of workers (default: one per core).",
    ),
)


@click.command(cls=RecordedCommand)
@click.argument("workload", type=WORKLOAD)
@click.option(
    "-p",
    "--policy",
    "policies",
    multiple=True,
    required=True,
    shell_complete=complete_policy,
    help=(
        "Policy to simulate: NAME (see 'rebat policies'), NAME:AXIS=CHOICE,... or "
        "FILE.py:CLASS. Repeat the option to compare policies under the same failures."
    ),
)
@scenario_options("failures", *LAW, "seed")
@with_options(SEED_OPTIONS)
@scenario_options(
    "horizon",
    "begin",
    *PREPARATION,
    *RUN,
)
@click.option(
    "--columns",
    shell_complete=complete_metrics,
    help=(
        "Print a table with a row per policy (best first) and a column for each of these "
        "metrics. Separate names from comparison.csv by commas, like "
        "useful_utilisation,flow_max_s:all. Default for more than three policies: useful "
        "utilisation, mean flow and largest flow."
    ),
)
@click.option(
    "--all-metrics",
    is_flag=True,
    help=(
        "Print all metrics that are not 0, with all classes of job sizes. Default: the ten main "
        "metrics."
    ),
)
@json_option
@click.option(
    "--out",
    type=FOLDER,
    required=True,
    help="Folder for the results: comparison.csv and a folder per policy.",
)
@click.option(
    "--figures",
    is_flag=True,
    help="Also draw flows.png, utilisation.png and gantt.png. If failures have causes or recoveries have stages, also draw flagship.png. With several seeds, draw only ratios.png, which compares the policies.",
)
@click.option(
    "--gantt",
    help="With --figures: time window of gantt.png as START:END, like 10d:12d (default: all).",
)
@click.option(
    "--flagship",
    metavar="JOB",
    help="With --figures: job of flagship.png, a time line of attempts, recoveries and effective training time (default: the job that used the most node time).",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "parquet"]),
    default="csv",
    show_default=True,
    help="Format of the tables of jobs and attempts. Parquet files are smaller.",
)
@click.option(
    "--explain",
    is_flag=True,
    help="Record the plans of the policies, for the command 'rebat explain'.",
)
@click.option("--force", is_flag=True, help="Replace an earlier result in the folder --out.")
@engine_option
def run(
    workload: Path,
    policies: tuple[str, ...],
    out: Path,
    figures: bool,
    gantt: str | None,
    flagship: str | None,
    form: str,
    explain: bool,
    force: bool,
    columns: str | None,
    all_metrics: bool,
    as_json: bool,
    seeds: int | None,
    until_width: float | None,
    until_metric: str | None,
    workers: int | None,
    **scenario: Any,
) -> None:
    """Simulate one or more policies on WORKLOAD and compare them.

    WORKLOAD is a Batsim workload (.json) or a trace (.swf, ALCF's .csv), plain or .gz, or a
    workload included in rebat: llama3-16k, mira-like-june-2017, synthetic-small, toy. Without
    failures and checkpoints the workload runs unchanged. If a policy fails, the results of the
    other policies are kept and the exit status is 2.

    With --seeds or --until-width, every policy runs with several seeds on all cores. OUT then
    contains seeds.csv (a row per seed, policy and metric) and comparison.csv (means, and ratios to
    the first policy, with 95 % intervals). It has no files of single runs.

    \b
    Example (a month of Mira with failures, with and without node stealing):
      rebat run june.json.gz -p baseline -p sfsj --mtbf 1h --downtime 1h \\
          --checkpoint young-daly --figures --out out/june
    Example with confidence intervals:
      rebat run june.json.gz -p baseline -p sfsj --mtbf 1h --downtime 1h \\
          --checkpoint young-daly --seeds 30 --out out/june-30
    """
    from rebat.library import remarks
    from rebat.library.figure_files import FigureFiles
    from rebat.library.many import SeedOptions
    from rebat.library.provenance import CommandLine
    from rebat.library.records import comparison_record
    from rebat.library.sheets import check_table
    from rebat.library.study import study
    from rebat.library.workloads import load_workload
    from rebat.results.files.tables import check_format
    from rebat.runs.scenario import ScenarioOptions
    from rebat.runs.single import failure_lines

    if as_json:
        reject_with_json("all_metrics")
    chosen = columns.split(",") if columns else []
    check_table(chosen, all_metrics)
    single = seeds is None and until_width is None
    drawn = FigureFiles(figures, gantt, flagship)
    drawn.check(single, "--", "--figures as well, and a single seed")
    check_format(form, "--format")
    if form != "csv" and not single:
        raise InputError("has no effect", "--format", "a single seed")
    given = given_options()
    comparison = study(
        lambda: load_workload(workload),
        policies,
        ScenarioOptions(**scenario),
        used_options(),
        SeedOptions(
            seeds=seeds, until_width=until_width, until_metric=until_metric, workers=workers
        ),
        CommandLine(
            arguments_of("run", given), {name: texts[0] for name, texts in given.items() if texts}
        ),
        explain,
    )
    drawn.check_job(job.id for job in comparison.workload.jobs)
    print_remarks(comparison.remarks)
    with atomic_folder(out, force) as folder:
        started_s = monotonic()
        result = comparison.run()
        took_s = monotonic() - started_s
        result.write_into(folder, drawn, form)
    print_remarks([*remarks.of_results(result.runs), *comparison.of_waits(result)])
    print_remarks(remarks.of_engine(comparison.workload, comparison.policies, took_s))
    for failure in failure_lines(result.failed):
        print_line(f"rebat: error: {failure}")
    saved = f"the results are in {out}"
    try:
        if as_json:
            print_json(comparison_record(result, chosen, out), saved)
        else:
            print_result(f"{result.text(chosen, all_metrics)}results in {out}", saved)
    except InputError as error:
        raise InputError(f"{error}; {saved}") from None
    if result.failed:
        raise SystemExit(2)
