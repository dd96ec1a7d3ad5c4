# SPDX-License-Identifier: Apache-2.0
"""``rebat platform``: SimGrid platform files for Batsim."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rebat.cli.json_output import json_option, print_json
from rebat.cli.output_file import output_file
from rebat.cli.types import PLATFORM
from rebat.core.formatting import counted
from rebat.core.units import format_duration

if TYPE_CHECKING:
    from rebat.platforms.simgrid_read import PlatformFacts


@click.group()
def platform() -> None:
    """Generate and describe platforms (SimGrid XML files for Batsim's --platform)."""


@platform.command()
@click.argument("spec")
@click.option(
    "--zero-latency",
    is_flag=True,
    help="Set all network latencies to 0, so that Batsim's times equal the times of 'rebat run'.",
)
@click.option("--speed", help="Speed of a node in SimGrid's units (default: 1Gf).")
@click.option("--bandwidth", help="Bandwidth of a link (default: 2GBps).")
@click.option("--latency", help="Latency of a link (default: 1us).")
@output_file("File to write (.xml).")
def generate(spec: str, zero_latency: bool, out: Path, **hardware: str | None) -> None:
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

    if zero_latency and hardware["latency"] is not None:
        raise InputError(
            "--latency contradicts --zero-latency", expected="only one of the two options"
        )
    chosen = {name: value for name, value in hardware.items() if value is not None}
    base = ZERO_LATENCY if zero_latency else Hardware()
    parsed = parse_spec(spec)
    write_platform(parsed, out, msgspec.convert(msgspec.structs.asdict(base) | chosen, Hardware))
    shape = f", torus {parsed.torus}" if parsed.torus else ""
    click.echo(f"{out}: {counted(parsed.n_nodes, 'node')}{shape}")


@platform.command()
@click.argument("file", type=PLATFORM)
@json_option
def describe(file: Path, as_json: bool) -> None:
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
    lines = [f"{facts.n_hosts} compute hosts"]
    if facts.n_other:
        lines.append(f"other hosts       {facts.n_other} with another role, such as storage")
    flops = facts.speed_flops
    speed = "the hosts have different speeds" if flops is None else f"{flops / 1e9:g} Gf"
    lines.append(f"speed             {speed}")
    if facts.torus is not None:
        lines.append(f"torus             {facts.torus}, diameter {facts.torus.diameter} hops")
    exact = ": exact times" if facts.latency_s == 0 else ""
    lines.append(f"largest latency   {format_duration(facts.latency_s)}{exact}")
    order = "follows" if facts.in_order else "does NOT follow"
    lines.append(f"numbering         Batsim's (by host name) {order} the order in the file")
    return lines
