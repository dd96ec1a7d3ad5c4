# SPDX-License-Identifier: Apache-2.0
"""``rebat failures``: node failures as Batsim event files, and failure laws of nodes as tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rebat.cli.completing import complete_law
from rebat.cli.failure_describe import describe
from rebat.cli.failure_models import models
from rebat.cli.failure_records import export, import_, map_
from rebat.cli.output_file import output_file
from rebat.cli.scenario_options import LAW, LawCommand, scenario_options
from rebat.cli.types import DURATION, FILE, MACHINE, SEED
from rebat.core.errors import InputError
from rebat.core.formatting import counted
from rebat.core.units import format_duration

if TYPE_CHECKING:
    from rebat.models.failures.fitting import Fit

FAMILIES = ("weibull", "gamma", "lognormal", "exponential")


@click.group()
def failures() -> None:
    """Generate, import and describe node failures (event files of Batsim), and fit failure laws."""


@failures.command(cls=LawCommand)
@click.option("--nodes", type=MACHINE, required=True, help="Number of nodes of the machine.")
@scenario_options(*LAW)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the failures.")
@click.option(
    "--horizon",
    type=DURATION,
    default="5000000",
    show_default=True,
    help="Draw no failure after this time.",
)
@output_file()
def generate(nodes: int, out: Path, **options: Any) -> None:
    """Draw failures and write an event file.

    Pass the file to 'rebat run --failures', or to Batsim with --events.

    \b
    Example (the first scenario of the node-stealing paper, on Mira):
      rebat failures generate --nodes 49152 --mtbf 1h --downtime 1h --seed 0 -o f0.events
    """
    from rebat.cli.effects import used_options
    from rebat.library.checks import check_options
    from rebat.models.failures.events import write_events
    from rebat.models.failures.law import generate_events
    from rebat.runs.scenario import ScenarioOptions

    scenario = ScenarioOptions(**options)
    check_options(scenario, used_options())
    law = scenario.failure_law()
    if law is None or not law.drawn:
        raise InputError("no failure law is given", expected="--law or --mtbf")
    events = generate_events(
        law,
        nodes,
        horizon_s=options["horizon"],
        seed=scenario.seed,
        cores_per_node=scenario.cores_per_node,
    )
    write_events(events, out, cores_per_node=scenario.cores_per_node)
    count = sum(not event.available for event in events)
    click.echo(f"{out}: {counted(count, 'failure')} in {format_duration(options['horizon'])}")


@failures.command()
@click.argument("law", shell_complete=complete_law)
@click.option(
    "--nodes", "n_nodes", type=MACHINE, required=True, help="Number of nodes of the machine."
)
@click.option(
    "--seed",
    type=SEED,
    default=0,
    show_default=True,
    help="Seed from which the failure parameters of the nodes are drawn. Use the same seed as 'rebat failures generate' or the run.",
)
@output_file("Table to write (.gz: compressed).")
def nodes(law: str, n_nodes: int, seed: int, out: Path) -> None:
    """Write the parameters of each node under a law.

    LAW states how the parameters of each node are drawn. The uptimes in the table are 0.

    \b
    Example (nodes of the first trace of the torus paper):
      rebat failures nodes weibull:scale=5800h,shape=8 --nodes 4096 --seed 0 -o nodes.csv
    """
    import numpy as np

    from rebat.models.failures.laws import parse_law
    from rebat.models.failures.node_table import NodeTable, write_nodes
    from rebat.models.failures.per_node_laws import PerNodeLaw

    per_node = parse_law(law)
    if not isinstance(per_node, PerNodeLaw):
        raise InputError("the law has no parameters per node", law, " or ".join(FAMILIES))
    table = NodeTable(per_node.nodes(n_nodes, seed), np.zeros(n_nodes))
    write_nodes(out, table)
    click.echo(f"{out}: {counted(n_nodes, 'node')}, {table.laws.family}")


@failures.command()
@click.argument("events", type=FILE)
@click.option(
    "--nodes",
    "n_nodes",
    type=MACHINE,
    help="Number of nodes of the machine (default: up to the largest node that fails).",
)
@click.option(
    "--law",
    type=click.Choice(FAMILIES),
    default="weibull",
    show_default=True,
    help="Distribution of the times to failure.",
)
@click.option(
    "--pool",
    type=click.IntRange(min=2),
    default=10,
    show_default=True,
    help=(
        "Fit a separate shape parameter to each node with at least this number of failures. All "
        "other nodes use the shape parameter fitted to the uptimes of all nodes."
    ),
)
@click.option(
    "--until",
    "until_s",
    type=DURATION,
    help="End of the record, later events are ignored (default: the last event).",
)
@output_file("Table to write (.gz: compressed).")
def fit(events: Path, n_nodes: int | None, out: Path, **options: Any) -> None:
    """Fit a failure law to each node of an event file.

    The fit uses maximum likelihood. The table has the parameters of each node, and its uptime at
    the end of the record.

    \b
    Example:
      rebat failures fit f.events --nodes 4096 --until 20000h -o nodes.csv
    """
    from rebat.console.progress import counting_bar
    from rebat.models.failures.events import read_events
    from rebat.models.failures.fitting import fit_nodes
    from rebat.models.failures.node_table import write_nodes

    recorded = read_events(events)
    largest = max((int(event.nodes.intervals[-1, 1]) for event in recorded), default=0)
    count = n_nodes or largest + 1
    try:
        with counting_bar("nodes fitted", count) as on_progress:
            fitted = fit_nodes(recorded, count, on_progress=on_progress, **options)
    except InputError as error:
        raise error.at(str(events)) from None
    write_nodes(out, fitted.table)
    for line in _fit_lines(fitted):
        click.echo(line)


def _fit_lines(fit: Fit) -> list[str]:
    n_shared = len(fit.table) - fit.n_own
    scale, shape = format_duration(fit.pooled.scale_s), f"{fit.pooled.shape:.4g}"
    return [
        f"{counted(fit.n_failures, 'failure')} of {counted(len(fit.table), 'node')} in "
        f"{format_duration(fit.until_s)}",
        f"nodes with an individual shape {fit.n_own}; with the common shape: {n_shared}",
        f"{fit.table.laws.family} of all uptimes".ljust(31) + f"scale {scale}, shape {shape}",
        f"log-likelihood (seconds)       {fit.log_likelihood:.10g}",
    ]


for command in (describe, import_, map_, export, models):
    failures.add_command(command)
