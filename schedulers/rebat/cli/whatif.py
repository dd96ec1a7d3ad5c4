# SPDX-License-Identifier: Apache-2.0
"""``rebat whatif``: a page that answers while the user changes settings."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated

import click
import msgspec

from rebat.cli.command import Values, command, given_options
from rebat.cli.options import WorkloadFile
from rebat.cli.scenario_options import LAW, PREPARATION, RUN, given_in, laws, scenario_options
from rebat.core.declared import Count, extra


@command(laws)
def whatif(
    workload: WorkloadFile,
    *,
    policies: Annotated[
        tuple[str, ...],
        "-p",
        "--policy",
        "Policy to simulate, as in 'rebat run'; repeat the option. Default: baseline and sfsj.",
        extra(values="policy"),
    ] = (),
    scenario: Annotated[Values, scenario_options("failures", *LAW)],
    others: Annotated[Values, scenario_options("horizon", "begin", *PREPARATION, *RUN)],
    port: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=65535)], "Port of the page (0: any free port)."
    ] = 0,
    pages: Annotated[
        Count, "Number of pages that can be open at a time. A further page replaces the oldest."
    ] = 1,
    workers: Annotated[
        Count | None, "Number of threads that simulate for a page (default: one per core)."
    ] = None,
    no_browser: Annotated[bool, "Only print the address; do not open a browser."] = False,
) -> None:
    """Open a page that answers immediately when you change MTBF, checkpoints, load, spare nodes, ...

    The page compares policies on WORKLOAD. Sliders start at the values of the options. After each change, a new answer appears within a second (for a month of jobs). It gets more precise
    with more seeds. Below the answer, a map shows the best policy over two settings. You can copy the
    command or Python statements, and save a campaign file or the answer as a page.

    The page is only for this machine: its server listens on 127.0.0.1, and the address contains a
    secret. Ctrl-C stops the server.

    \b
    Example:
      rebat whatif mira-like-june-2017 -p baseline -p sfsj --mtbf 1h --downtime 1h \\
          --checkpoint young-daly
    """
    from rebat.api.cases import single_options, site_in, with_failures_of
    from rebat.api.workloads import load_workload
    from rebat.cli.installation import warm
    from rebat.console.output import print_line
    from rebat.runs.case import case_of
    from rebat.studies.whatif.question import started, with_stealing
    from rebat.studies.whatif.saved import campaign_file, static_page
    from rebat.studies.whatif.server import Server

    site = site_in(workload)
    given, door = given_in(scenario | others)
    options = single_options(case_of(with_failures_of(site, given, True), (), door))
    jobs = load_workload(workload)
    usual = ("baseline", "sfsj") if site is None else with_stealing(site.scheduler.policy)
    name = given_options()["WORKLOAD"][0]
    question = started(jobs, name, options, policies or usual)
    warm(question.policies)
    server = Server(
        question, port, pages, workers,
        {"saved": ("text/html", static_page), "campaign": ("application/toml", campaign_file)},
    )  # fmt: skip
    click.echo(server.url)
    print_line("rebat: the page is open until you press Ctrl-C")
    with nullcontext() if no_browser else server.open_in_browser():
        server.run()
