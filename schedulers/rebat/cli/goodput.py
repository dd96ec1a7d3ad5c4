# SPDX-License-Identifier: Apache-2.0
"""``rebat goodput``: effective training time of one job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rebat.cli.json_output import json_option
from rebat.cli.output_file import output_file
from rebat.cli.types import MACHINE, NODES, SEED, FiniteRange
from rebat.console.output import print_result

_RANDOM = "a duration like 30s, random, or by cause (see 'Training clusters' in the documentation)"


@click.command()
@click.option("--nodes", type=MACHINE, required=True, help="Number of nodes of the job.")
@click.option(
    "--rate", type=FiniteRange(min=0, min_open=True), help="Failures per 1,000 node-days."
)
@click.option(
    "--model",
    help="Use the failure rate of this training cluster instead of --rate, for example rsc-1 "
    "('rebat failures models' lists the names).",
)
@click.option("--interval", help="Work between two checkpoints (default: the best interval).")
@click.option(
    "--write",
    default="0",
    show_default=True,
    help="Time for which the job stops while it writes a checkpoint.",
)
@click.option(
    "--load",
    default="0",
    show_default=True,
    help="Time to load a checkpoint. If a node fails during this time, the loading starts again.",
)
@click.option(
    "--detect", default="0", show_default=True, help=f"Time until a failure is detected: {_RANDOM}."
)
@click.option(
    "--diagnose",
    default="0",
    show_default=True,
    help="Time after the detection until it is known which nodes have failed.",
)
@click.option(
    "--reschedule",
    default="0",
    show_default=True,
    help="Time after the diagnosis until the scheduler starts the job again.",
)
@click.option(
    "--init",
    default="0",
    show_default=True,
    help="Time until the job has started again, before it loads its checkpoint.",
)
@click.option(
    "--spares",
    type=click.IntRange(min=0),
    help="Simulate this number of spare nodes (default: unlimited).",
)
@click.option(
    "--failing",
    type=click.Choice(("all", "job")),
    default="all",
    show_default=True,
    help="With --spares, the nodes that can fail. all: all nodes that are up, including spare nodes and the nodes of a waiting job. job: only the nodes on which the job runs.",
)
@click.option(
    "--tiers",
    help="Tiers of checkpoints instead of --interval, --write and --load: auto, or TIER=WRITE/LOAD[@INTERVAL] joined by +, like peer=1s/30s+remote=30s/2min.",
)
@click.option(
    "--repair",
    help="Repair time of a node, a random duration (default: 90 % take 1 to 3 h, 10 % take 1 to 3 d).",
)
@click.option(
    "--target",
    type=FiniteRange(min=0, max=1, min_open=True, max_open=True),
    default=0.99,
    show_default=True,
    help="Share of the time in which the recommended number of spares suffices.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="First seed of the failures.")
@click.option(
    "--runs",
    type=click.IntRange(min=5),
    default=20,
    show_default=True,
    help="Number of simulations.",
)
@click.option(
    "--failures",
    type=NODES,
    default=200,
    show_default=True,
    help="Expected number of failures of each simulation.",
)
@json_option
@output_file(
    "Also simulate other intervals and numbers of spare nodes, and write a page (HTML).",
    required=False,
)
def goodput(as_json: bool, out: Path | None, **options: Any) -> None:
    """Compute the effective training time (ETTR) of one job on many nodes.

    ETTR is the productive time divided by the wall-clock time. The command computes it with a
    formula, and also simulates it on the engine, with a 95 % interval. While a failure is being
    detected, the job does not run, so no other failure can hit it. While the job writes or loads a
    checkpoint, a failure can hit it.

    \b
    Examples:
      rebat goodput --nodes 128 --rate 6.5 --detect 5min --load 10min --interval 1h --write 30s
      rebat goodput --nodes 2048 --model llama3 --detect 2min --load 6min --write 10s --spares 16
    """
    from rebat.library.goodput import goodput as computed

    result = computed(**options)
    page = ""
    if out is not None:
        result.write(out)
        page = "" if as_json else f"\n\npage in {out}"
    print_result((result.json if as_json else result.text) + page, saved=f"the page is in {out}")
