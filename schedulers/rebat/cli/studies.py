# SPDX-License-Identifier: Apache-2.0
"""``rebat advise`` and ``rebat calibrate``: answers about a cluster, from its records."""

from __future__ import annotations

import shlex
from typing import Annotated

from rebat.cli.command import Values, command, given_options, options_of
from rebat.cli.options import Folder, ForceFolder, Json, WorkloadFile
from rebat.cli.scenario_options import given_in, laws, scenario_options
from rebat.console.output import print_result
from rebat.studies.advise import advice_of
from rebat.studies.advise import advise as advised_site
from rebat.studies.calibrate import calibrate as calibrated_site
from rebat.studies.calibrate import calibration_of


@command(laws)
def advise(
    workload: WorkloadFile,
    *,
    scenario: Annotated[
        Values,
        scenario_options(
            *("failures", "law", "mtbf", "downtime", "cores_per_node", "nodes"),
            *("checkpoint_cost", "recovery_cost"),
            failures="Event file with the recorded failures of the cluster, as written by 'rebat failures import'. Each seed starts at a different time of the record.",
        ),
    ],
    choices: Annotated[
        Values,
        options_of(
            advised_site,
            "policy",
            "past",
            "checkpoints",
            "minutes",
            "most_seeds",
            "workers",
            "anonymous",
        ),
    ],
    as_json: Annotated[bool, "--json", "Print advice.json instead of sentences."] = False,
    out: Annotated[
        Folder,
        "Folder for the page (advice.html, advice.md), one page for decisions (summary.html, summary.pdf), the numbers (advice.json) and all runs. To continue after an interruption, run the same command again.",
    ],
) -> None:
    """Answer six questions about a cluster, from its jobs and its failures.

    WORKLOAD contains the recorded jobs, or is a site.toml, which also states the other inputs.

    What do failures cost today? What would checkpoints of all jobs save? Which job sizes, users and
    queues bear the cost? Which scheduler rule would reduce it, and which jobs would then wait
    longer? How many spare nodes should the cluster have? How often should jobs checkpoint? With
    --past, the first answer begins with the recorded losses. All other numbers are simulated, with
    95 % intervals. If fewer than five seeds complete, they are missing.

    \b
    Example:
      rebat advise calibration/site.toml --out advice
      rebat advise jobs.json --past past --failures site.events --minutes 10 --out advice
    """
    from rebat.studies.advice.advised import RECORD, SUMMARY, SUMMARY_PDF

    given, door = given_in(scenario)
    advice = advice_of(workload, given, door, out, **choices)
    pages = f"page: {advice.page}\npage for decisions: {out / SUMMARY}, {out / SUMMARY_PDF}"
    pages += f"\nnext: rebat whatif {shlex.quote(given_options()['WORKLOAD'][0])}"
    text = (out / RECORD).read_text() if as_json else f"{advice.text}\n\n{pages}"
    print_result(text, saved=f"the page is {advice.page}")


@command(laws)
def calibrate(
    workload: WorkloadFile,
    past: Folder,
    *,
    chosen: Annotated[Values, options_of(calibrated_site, "policies")],
    scenario: Annotated[
        Values,
        scenario_options(
            "failures",
            "nodes",
            "cores_per_node",
            "max_attempts",
            failures="Event file with the recorded failures of the cluster, as written by 'rebat failures import'.",
        ),
    ],
    others: Annotated[Values, options_of(calibrated_site, "checkpoints", "workers")],
    as_json: Json = False,
    out: Annotated[
        Folder | None,
        "Also write a page (calibration.html, calibration.md), the numbers (calibration.json), and the site with the nearest configuration (site.toml) to this folder.",
    ] = None,
    force: ForceFolder = False,
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

    given, door = given_in(scenario)
    with atomic_folder(out, force) if out else nullcontext() as folder:
        result = calibration_of(workload, past, chosen["policies"], given, door, **others)
        if folder:
            result.write(folder, out)
    page = ""
    if out and not as_json:
        site = f"{out}/site.toml"
        page = f"\n\nresults in {out}\nnext: rebat site check {site}"
    print_result((result.json if as_json else result.text) + page, saved=f"the page is in {out}")
