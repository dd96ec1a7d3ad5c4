# SPDX-License-Identifier: Apache-2.0
"""``rebat advise``: six questions of an operator, answered by simulations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rebat.cli.completing import complete_policy
from rebat.cli.effects import used_options
from rebat.cli.scenario_options import LawCommand, scenario_options
from rebat.cli.types import FOLDER, NODES, WORKLOAD, FiniteRange
from rebat.console.output import print_result

SCENARIO = (
    "failures",
    "law",
    "mtbf",
    "downtime",
    "cores_per_node",
    "nodes",
    "checkpoint_cost",
    "recovery_cost",
)


@click.command(cls=LawCommand)
@click.argument("workload", type=WORKLOAD)
@scenario_options(
    *SCENARIO,
    failures="Event file with the recorded failures of the cluster, as written by 'rebat failures import'. Each seed starts at a different time of the record.",
)
@click.option(
    "-p",
    "--policy",
    default="easy",
    show_default=True,
    shell_complete=complete_policy,
    help="Policy that is most similar to the cluster's current scheduler.",
)
@click.option(
    "--past",
    type=FOLDER,
    help="Recorded schedule of these jobs, written by 'rebat workload import --schedule'. The work that failures destroyed is computed from it.",
)
@click.option(
    "--checkpoints",
    default="none",
    show_default=True,
    metavar="none|young-daly|FILE",
    help="Checkpoints that the jobs write today. none: no job. young-daly: all jobs, at their Young/Daly periods. FILE: a CSV file with the columns user, queue or job, and period, cost, recovery; jobs without a row write no checkpoints.",
)
@click.option(
    "--minutes",
    type=FiniteRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    help=(
        "Maximum time for simulations. Seeds are added until the intervals are narrow, or until "
        "this time is over."
    ),
)
@click.option(
    "--seeds",
    "most_seeds",
    type=NODES,
    default=30,
    show_default=True,
    help="Maximum number of seeds.",
)
@click.option("--workers", type=NODES, help="Number of workers (default: one per core).")
@click.option("--json", "as_json", is_flag=True, help="Print advice.json instead of sentences.")
@click.option(
    "--out",
    type=FOLDER,
    required=True,
    help="Folder for the page (advice.html, advice.md), the numbers (advice.json) and all runs. To continue after an interruption, run the same command again.",
)
def advise(
    workload: Path,
    policy: str,
    past: Path | None,
    checkpoints: str,
    minutes: float,
    most_seeds: int,
    workers: int | None,
    as_json: bool,
    out: Path,
    **scenario: Any,
) -> None:
    """Answer six questions about a cluster, from its jobs and its failures.

    What do failures cost today? What would checkpoints of all jobs save? Which job sizes, users and
    queues bear the cost? Which scheduler rule would reduce it, and which jobs would then wait
    longer? How many spare nodes should the cluster have? How often should jobs checkpoint? With
    --past, the first answer begins with the recorded losses. All other numbers are simulated, with
    95 % intervals. If fewer than five seeds complete, they are missing.

    \b
    Example:
      rebat advise jobs.json --past past --failures site.events --minutes 10 --out advice
    """
    from rebat.library.advise import RECORD, advised
    from rebat.library.checks import check_options
    from rebat.library.workloads import load_workload
    from rebat.runs.scenario import ScenarioOptions

    options = ScenarioOptions(**scenario, checkpoint="young-daly")
    check_options(options, used_options())
    advice = advised(
        load_workload(workload),
        options,
        policy=policy,
        past=past,
        checkpoints=checkpoints,
        minutes=minutes,
        most_seeds=most_seeds,
        workers=workers,
        out=out,
    )
    text = (out / RECORD).read_text() if as_json else f"{advice.text}\n\npage: {advice.page}"
    print_result(text, saved=f"the page is {advice.page}")
