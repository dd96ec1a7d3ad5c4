# SPDX-License-Identifier: Apache-2.0
"""``rebat calibrate``: compare simulations of a cluster's past with its recorded schedule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rebat.cli.effects import used_options
from rebat.cli.json_output import json_option
from rebat.cli.scenario_options import LawCommand, scenario_options
from rebat.cli.types import FOLDER, NODES, WORKLOAD
from rebat.console.output import print_result


@click.command(cls=LawCommand)
@click.argument("workload", type=WORKLOAD)
@click.argument("past", type=FOLDER)
@click.option(
    "-p",
    "--policy",
    "policies",
    multiple=True,
    help=(
        "Policy to simulate; may be repeated (default: seven policies, with different "
        "backfilling and queue orders)."
    ),
)
@scenario_options(
    "failures",
    "nodes",
    "cores_per_node",
    failures="Event file with the recorded failures of the cluster, as written by 'rebat failures import'.",
)
@click.option("--workers", type=NODES, help="Number of workers (default: one per core).")
@json_option
@click.option(
    "--out",
    type=FOLDER,
    help="Also write a page (calibration.html, calibration.md) and the numbers (calibration.json) to this folder.",
)
@click.option("--force", is_flag=True, help="Replace an earlier result in the folder --out.")
def calibrate(
    workload: Path,
    past: Path,
    policies: tuple[str, ...],
    workers: int | None,
    as_json: bool,
    out: Path | None,
    force: bool,
    **scenario: Any,
) -> None:
    """Simulate recorded jobs, and compare simulated with recorded waiting times.

    WORKLOAD contains the recorded jobs. PAST is the folder with the recorded schedule of these
    jobs. Create both with a single 'rebat workload import' command.

    rebat simulates several policies. It selects the four policies whose waiting times are nearest
    to the recorded waiting times. It also simulates these four policies with 80 to 95 % of the
    nodes, because nodes of the real machine can be down, drained or reserved. The output contains
    the nearest policy and number of nodes, their distance from the recorded waiting times, and the
    waiting times by job size and queue.

    \b
    Example:
      rebat workload import jobs.txt --format sacct -o jobs.json --schedule past
      rebat calibrate jobs.json past --out calibration
    """
    from contextlib import nullcontext

    from rebat.core.folders import atomic_folder
    from rebat.library.calibrate import calibrated
    from rebat.library.calibration.design import POLICIES
    from rebat.library.checks import check_options
    from rebat.library.workloads import load_workload
    from rebat.runs.scenario import ScenarioOptions

    options = ScenarioOptions(**scenario)
    check_options(options, used_options())
    with atomic_folder(out, force) if out else nullcontext() as folder:
        jobs = load_workload(workload)
        result = calibrated(jobs, past, policies or POLICIES, options, workers)
        if folder:
            result.write(folder)
    page = f"\n\nresults in {out}" if out and not as_json else ""
    print_result((result.json if as_json else result.text) + page, saved=f"the page is in {out}")
