# SPDX-License-Identifier: Apache-2.0
"""``rebat platform`` and ``rebat operations``: files about the machine for Batsim and rebat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import click

from rebat.cli.command import command, group
from rebat.cli.options import Json, NewFile, OutFile, Platform, print_json
from rebat.core.declared import Count, Machine, Seconds
from rebat.core.numbers import counted, duration, number

if TYPE_CHECKING:
    from rebat.platforms.simgrid_read import PlatformFacts


@command()
def generate(
    spec: str,
    *,
    zero_latency: Annotated[
        bool,
        "Set all network latencies to 0, so that Batsim's times equal the times of 'rebat run'.",
    ] = False,
    speed: Annotated[str | None, "Speed of a node in SimGrid's units (default: 1Gf)."] = None,
    bandwidth: Annotated[str | None, "Bandwidth of a link (default: 2GBps)."] = None,
    latency: Annotated[str | None, "Latency of a link (default: 1us)."] = None,
    out: Annotated[NewFile, "-o", "--out", "File to write (.xml)."],
) -> None:
    """Write a platform file.

    SPEC is mira, intrepid, torus:8,8,8,8 or flat:128.

    Node numbers follow SimGrid: the first dimension of a torus varies fastest. Batsim uses the
    same numbers.

    \b
    Example:
      rebat platform generate mira --zero-latency -o mira-zero-latency.xml
    """
    import msgspec

    from rebat.core.errors import InputError
    from rebat.platforms.simgrid_read import ZERO_LATENCY, Hardware, write_platform
    from rebat.platforms.specs import parse_spec

    if zero_latency and latency is not None:
        raise InputError(
            "--latency contradicts --zero-latency", expected="only one of the two options"
        )
    hardware = {"speed": speed, "bandwidth": bandwidth, "latency": latency}
    chosen = {name: value for name, value in hardware.items() if value is not None}
    base = ZERO_LATENCY if zero_latency else Hardware()
    parsed = parse_spec(spec)
    write_platform(parsed, out, msgspec.convert(msgspec.structs.asdict(base) | chosen, Hardware))
    shape = f", torus {parsed.torus}" if parsed.torus else ""
    click.echo(f"{out}: {counted(parsed.n_nodes, 'node')}{shape}")


@command()
def describe(
    file: Platform,
    *,
    as_json: Json = False,
) -> None:
    """Describe a platform: nodes, torus, latency and numbering.

    \b
    Example:
      rebat platform describe mira-zero-latency.xml
    """
    from rebat.platforms.simgrid_read import read_platform

    facts = read_platform(file)
    if as_json:
        print_json(_record(facts))
        return
    for line in _lines(facts):
        click.echo(line)


def _record(facts: PlatformFacts) -> dict[str, Any]:
    torus = facts.torus
    return {
        "hosts": facts.n_hosts,
        "other_hosts": facts.n_other,
        "speed_flops": facts.speed_flops,
        "torus": None if torus is None else torus.sizes,
        "diameter_hops": None if torus is None else torus.diameter,
        "latency_s": facts.latency_s,
        "numbered_in_order": facts.in_order,
    }


def _lines(facts: PlatformFacts) -> list[str]:
    lines = [counted(facts.n_hosts, "compute host")]
    if facts.n_other:
        lines.append(f"other hosts       {facts.n_other} with another role, such as storage")
    flops = facts.speed_flops
    speed = "the hosts have different speeds" if flops is None else number.in_unit("Gf", 1e9)(flops)
    lines.append(f"speed             {speed}")
    if facts.torus is not None:
        lines.append(f"torus             {facts.torus}, diameter {facts.torus.diameter} hops")
    exact = ": exact times" if facts.latency_s == 0 else ""
    lines.append(f"largest latency   {duration(facts.latency_s)}{exact}")
    order = "follows" if facts.in_order else "does NOT follow"
    lines.append(f"numbering         Batsim's (by host name) {order} the order in the file")
    return lines


@command()
def operations(
    *,
    length_s: Annotated[
        Seconds,
        "--rolling-maintenance",
        "Drain all nodes, one group after another. Each group is drained for this duration.",
    ],
    nodes_at_once: Annotated[Count, "Number of nodes drained at the same time."] = 1,
    n_nodes: Annotated[Machine, "--nodes", "Number of nodes of the machine (nodes, not cores)."],
    begin_s: Annotated[
        Seconds | None, "--begin", "Start of the maintenance (default: time 0)."
    ] = None,
    announced_s: Annotated[
        Seconds | None,
        "--announced",
        "Announce each drain this duration before its start. No job starts that would still run then.",
    ] = None,
    out: OutFile,
) -> None:
    """Write a file of operations that drain nodes for maintenance and undrain them.

    The file has one JSON object per line, in order of time. Pass it to 'rebat run --operations'. For
    Batsim, pass it with a second --events (a file with operations and failures can lead to a
    deadlock, because Batsim does not keep the order of lines with the same time), and with
    --forward-unknown-events:

    \b
      {"timestamp": 3600, "type": "drain", "nodes": "0-3", "announced": 0}
      {"timestamp": 7200, "type": "undrain", "nodes": "0-3"}
      {"timestamp": 7200, "type": "migrate", "job": "17", "nodes": "5"}

    The drain of a group of nodes begins one second after the end of the previous drain. If both
    were at the same time, Batsim might report them in separate messages.

    By default, a drain stops the jobs on the node immediately. They write a checkpoint and return
    to the head of the queue. The node stays in service if one of its jobs cannot write a
    checkpoint. It also stays in service if the operation contains "spanning": false and one of its
    jobs runs on several nodes. With the policy axis drain=wait, the jobs on a drained node continue
    until they end. If a drain is announced, no job starts that would still run at the drain. For
    Batsim, write each announcement as a line of its own:

    \b
      {"timestamp": 0, "type": "announce", "nodes": "0-3", "begin": 3600, "end": 7200}

    \b
    Example (8 nodes, two at a time for four hours):
      rebat operations --rolling-maintenance 4h --nodes-at-once 2 --nodes 8 -o rolling.jsonl
      rebat run day.json -p cluster -p cluster:drain=wait --cores-per-node 16 \\
          --operations rolling.jsonl --out out
    """
    from rebat.models.operations import rolling_maintenance, write_operations

    lines = list(rolling_maintenance(n_nodes, length_s, nodes_at_once, begin_s or 0.0, announced_s))
    write_operations(lines, out)
    click.echo(f"{out}: {counted(len(lines), 'operation')}, up to {lines[-1]['timestamp']:g} s")


platform = group(
    "platform",
    "Generate and describe platforms (SimGrid XML files for Batsim's --platform).",
    generate,
    describe,
)
