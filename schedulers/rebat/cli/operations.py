# SPDX-License-Identifier: Apache-2.0
"""``rebat operations``: write the operations of an administrator to a file."""

from __future__ import annotations

from pathlib import Path

import click

from rebat.cli.output_file import output_file
from rebat.cli.types import DURATION, MACHINE, NODES
from rebat.core.formatting import counted


@click.command()
@click.option(
    "--rolling-maintenance",
    "length_s",
    type=DURATION,
    required=True,
    help="Drain all nodes, one group after another. Each group is drained for this duration.",
)
@click.option(
    "--nodes-at-once",
    type=NODES,
    default=1,
    show_default=True,
    help="Number of nodes drained at the same time.",
)
@click.option(
    "--nodes",
    "n_nodes",
    type=MACHINE,
    required=True,
    help="Number of nodes of the machine (nodes, not cores).",
)
@click.option(
    "--begin", "begin_s", type=DURATION, help="Start of the maintenance (default: time 0)."
)
@output_file()
def operations(
    length_s: float,
    nodes_at_once: int,
    n_nodes: int,
    begin_s: float | None,
    out: Path,
) -> None:
    """Write a file of operations that drain nodes for maintenance and undrain them.

    The file has one JSON object per line, in order of time. Pass it to 'rebat run --operations'. For
    Batsim, pass it with a second --events (a file with operations and failures can lead to a
    deadlock, because Batsim does not keep the order of lines with the same time), and with
    --forward-unknown-events:

    \b
      {"timestamp": 3600, "type": "drain", "nodes": "0-3"}
      {"timestamp": 7200, "type": "undrain", "nodes": "0-3"}
      {"timestamp": 7200, "type": "migrate", "job": "17", "nodes": "5"}

    The drain of a group of nodes begins one second after the end of the previous drain. If both
    were at the same time, Batsim might report them in separate messages.

    By default, a drain stops the jobs on the node immediately. They write a checkpoint and return
    to the head of the queue. The node stays in service if one of its jobs cannot write a
    checkpoint. It also stays in service if the operation contains "spanning": false and one of its
    jobs runs on several nodes. With the policy axis drain=wait, the jobs on a drained node continue
    until they end.

    \b
    Example (8 nodes, two at a time for four hours):
      rebat operations --rolling-maintenance 4h --nodes-at-once 2 --nodes 8 -o rolling.jsonl
      rebat run day.json -p cluster -p cluster:drain=wait --cores-per-node 16 \\
          --operations rolling.jsonl --out out
    """
    from rebat.models.operations import rolling_maintenance, write_operations

    lines = list(rolling_maintenance(n_nodes, length_s, nodes_at_once, begin_s or 0.0))
    write_operations(lines, out)
    click.echo(f"{out}: {counted(len(lines), 'operation')}, up to {lines[-1]['timestamp']:g} s")
