# SPDX-License-Identifier: Apache-2.0
"""``rebat operations``: what an administrator asks for, written to a file."""

from __future__ import annotations

from pathlib import Path

import click

from rebat.cli.output_file import output_file
from rebat.cli.types import DURATION, MACHINE, NODES


@click.command()
@click.option("--rolling-maintenance", "length_s", type=DURATION, required=True, help="Drain every node in turn, each for this duration.")  # fmt: skip
@click.option("--nodes-at-once", type=NODES, default=1, show_default=True, help="Number of nodes that are drained at the same time.")  # fmt: skip
@click.option("--nodes", "n_nodes", type=MACHINE, required=True, help="Nodes of the machine: whole ones, where they have several cores.")  # fmt: skip
@click.option("--begin", "begin_s", type=DURATION, help="When it begins (default: at date 0).")  # fmt: skip
@output_file()
def operations(
    length_s: float,
    nodes_at_once: int,
    n_nodes: int,
    begin_s: float | None,
    out: Path,
) -> None:
    """Write a file of operations: nodes drained for maintenance, and taken back.

    Such a file has a JSON object a line, in order of date, for 'rebat run --operations', or for
    Batsim's --events beside --forward-unknown-events:

    \b
      {"timestamp": 3600, "type": "drain", "nodes": "0-3"}
      {"timestamp": 7200, "type": "undrain", "nodes": "0-3"}
      {"timestamp": 7200, "type": "migrate", "job": "17", "nodes": "5"}

    Maintenance of the next nodes begins a second after that of the last ones: Batsim may report
    operations at the same time in several messages.

    A drained node is emptied at once: its jobs are checkpointed and go first in the queue. Where a
    job cannot be checkpointed, or spans several nodes and "spanning" is false, the nodes stay in
    service. With the policy axis drain=wait nodes empty as their jobs end.

    \b
    Example, a machine of 8 nodes of which two at a time are serviced for four hours:
      rebat operations --rolling-maintenance 4h --nodes-at-once 2 --nodes 8 -o rolling.jsonl
      rebat run day.json -p cluster -p cluster:drain=wait --cores-per-node 16 \\
          --operations rolling.jsonl --out out
    """
    from rebat.models.operations import rolling_maintenance, write_operations

    lines = list(rolling_maintenance(n_nodes, length_s, nodes_at_once, begin_s or 0.0))
    write_operations(lines, out)
    click.echo(f"{out}: {len(lines)} operations, up to {lines[-1]['timestamp']:g} s")
