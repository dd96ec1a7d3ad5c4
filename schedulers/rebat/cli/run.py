# SPDX-License-Identifier: Apache-2.0
"""``rebat run`` and ``rebat toy``: simulate policies on a workload with the embedded engine."""

from __future__ import annotations

import os
from pathlib import Path
from time import monotonic
from typing import Annotated, Literal

import click

from rebat.api.figure_files import FigureFiles
from rebat.api.many import SeedOptions
from rebat.cli.command import Values, arguments_of, command, given_options
from rebat.cli.options import Folder, ForceFolder, Json, WorkloadFile, print_json, reject_with_json
from rebat.cli.scenario_options import LAW, PREPARATION, RUN, given_in, laws, scenario_options
from rebat.console.output import print_line, print_remarks, print_result
from rebat.core.declared import extra
from rebat.core.errors import InputError
from rebat.core.folders import atomic_folder
from rebat.core.formatting import TableForm
from rebat.drive.choose import VARIABLE, How

Engine = Annotated[
    How | None,
    "How to simulate; all results are equal. compiled: the loop as machine code. interpreted: the loop as plain Python. The loop covers list scheduling, fifo and shelves of rigid jobs with requeueing or stealing. auto: if the loop does not cover the run, a policy is asked; otherwise compiled if machine code is ready or the workload has at least 500,000 jobs, otherwise interpreted. "
    f"[default: {VARIABLE}, or auto]",
]


@command(laws)
def run(
    workload: WorkloadFile,
    *,
    policies: Annotated[
        tuple[str, ...],
        "-p",
        "--policy",
        "Policy to simulate: NAME (see 'rebat policies'), NAME:AXIS=CHOICE,... or FILE.py:CLASS (default: the policy of the site). Repeat the option to compare policies under the same failures.",
        extra(values="policy"),
    ] = (),
    scenario: Annotated[Values, scenario_options("failures", *LAW, "seed")],
    seeds: SeedOptions,
    others: Annotated[
        Values,
        scenario_options(
            "horizon",
            "begin",
            *PREPARATION,
            *RUN,
        ),
    ],
    columns: Annotated[
        str | None,
        "Print a table with a row per policy (best first) and a column for each of these metrics. Separate names from comparison.csv by commas, like useful_utilisation,flow_max_s:all. Default for more than three policies: useful utilisation, mean flow and largest flow.",
        extra(values="metrics"),
    ] = None,
    all_metrics: Annotated[
        bool,
        "Print all metrics that are not 0, with all classes of job sizes. Default: the ten main metrics.",
    ] = False,
    table: Annotated[
        TableForm | None,
        "Print a table for a paper instead of the comparison, with a row per policy: LaTeX (package booktabs), Markdown or CSV. --columns selects the metrics. The verdict goes to standard error.",
    ] = None,
    as_json: Json = False,
    out: Annotated[Folder, "Folder for the results: comparison.csv and a folder per policy."],
    drawn: FigureFiles,
    form: Annotated[
        Literal["csv", "parquet"],
        "--format",
        "Format of the tables of jobs and attempts. Parquet files are smaller.",
    ] = "csv",
    explain: Annotated[
        bool, "Record the plans of the policies, for the command 'rebat explain'."
    ] = False,
    force: ForceFolder = False,
    engine: Engine = None,
) -> None:
    """Simulate one or more policies on WORKLOAD and compare them.

    WORKLOAD is a Batsim workload (.json), a trace (.swf, ALCF's .csv), a site (site.toml, see 'rebat
    site check'), or a workload included in rebat: llama3-16k, mira-like-june-2017, synthetic-small,
    toy. Workloads and traces can be .gz. Without failures and checkpoints the workload runs
    unchanged. If a policy fails, the results of the other policies are kept and the exit status is
    2.

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
    from rebat.api import remarks
    from rebat.api.cases import site_in
    from rebat.api.provenance import CommandLine
    from rebat.api.records import comparison_record
    from rebat.api.run import study
    from rebat.api.sheets import check_table
    from rebat.api.workloads import load_workload
    from rebat.results.files.tables import check_format
    from rebat.runs.single import failure_lines

    if engine:
        use_engine(engine)
    if as_json:
        reject_with_json("all_metrics", "table")
    if table and all_metrics:
        raise InputError("has no effect with --table", "--all-metrics", "--columns")
    chosen = columns.split(",") if columns else []
    check_table(chosen, all_metrics)
    single = not seeds.many
    drawn.check(single, "--", "--figures as well, and a single seed")
    check_format(form, "--format")
    if form != "csv" and not single:
        raise InputError("has no effect", "--format", "a single seed")
    given = given_options()
    comparison = study(
        lambda: load_workload(workload),
        policies,
        *given_in(scenario | others),
        seeds,
        CommandLine(
            arguments_of("run", given), {name: texts[0] for name, texts in given.items() if texts}
        ),
        explain,
        site_in(workload),
    )
    drawn.check_job(job.id for job in comparison.workload.jobs)
    print_remarks(comparison.remarks)
    with atomic_folder(out, force) as folder:
        started_s = monotonic()
        result = comparison.run()
        took_s = monotonic() - started_s
        result.write_into(folder, drawn, form)
    print_remarks([*remarks.of_results(result.runs), *comparison.of_waits(result)])
    if not explain:  # machine code records no plans
        print_remarks(remarks.of_engine(comparison.workload, comparison.policies, took_s))
    for failure in failure_lines(result.failed):
        print_line(f"rebat: error: {failure}")
    saved = f"the results are in {out}"
    try:
        if as_json:
            print_json(comparison_record(result, chosen, out), saved)
        elif table:
            print_line(f"{result.verdict}\nresults in {out}")
            print_result(result.table(table, chosen).rstrip("\n"), saved)
        else:
            print_result(f"{result.text(chosen, all_metrics)}results in {out}", saved)
    except InputError as error:
        raise InputError(f"{error}; {saved}") from None
    if result.failed:
        raise SystemExit(2)


def use_engine(engine: How) -> None:
    """Set the way to simulate for this command and the processes that it starts."""
    os.environ[VARIABLE] = engine
    click.get_current_context().call_on_close(lambda: os.environ.pop(VARIABLE, None))


@command()
def toy(
    *,
    out: Annotated[Folder, "Folder for the results; an earlier result is replaced."] = Path(
        "out/toy"
    ),
    as_json: Json = False,
) -> None:
    """Run the toy example of Du et al. 2024 (section 3): eight nodes, five jobs, one failure.

    Under Baseline the large job restarts when another job ends. Under SFSJ the large job takes a
    node from a small job and restarts immediately. The Gantt chart OUT/gantt.png shows both
    schedules.

    \b
    Example:
      rebat toy
    """
    from rebat.api.provenance import WORKLOAD, CommandLine
    from rebat.api.records import comparison_record
    from rebat.api.run import study
    from rebat.api.workloads import load_workload
    from rebat.runs.case import Door

    policies = ["baseline", "sfsj"]
    given = {WORKLOAD: ["toy"], "--policy": policies, "--failures": ["toy"], "--figures": []}
    result = study(
        lambda: load_workload("toy"),
        policies,
        {"failures": "toy"},
        Door(),
        SeedOptions(),
        CommandLine(arguments_of("run", given), {WORKLOAD: "toy", "--failures": "toy"}),
    ).run()
    result.write(out, figures=True, force=True)
    saved = f"the results are in {out}"
    if as_json:
        print_json(comparison_record(result, (), out), saved)
    else:
        print_result(f"{result!r}Gantt chart: {out / 'gantt.png'}", saved)
