# SPDX-License-Identifier: Apache-2.0
"""``rebat platform``: SimGrid platform files for Batsim."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rebat.cli.output_file import output_file
from rebat.cli.types import PLATFORM
from rebat.core.units import format_duration

if TYPE_CHECKING:
    from rebat.platforms.simgrid_xml import PlatformFacts


@click.group()
def platform() -> None:
    """Generate and describe platforms (SimGrid's XML, Batsim's --platform files)."""


@platform.command()
@click.argument("spec")
@click.option("--zero-latency", is_flag=True, help="No network latency: exact times, as on the embedded engine.")  # fmt: skip
@click.option("--speed", help="Speed of a node in SimGrid's units, like 1Gf (the default).")
@click.option("--bandwidth", help="Bandwidth of a link, like 2GBps (the default).")
@click.option("--latency", help="Latency of a link, like 1us (the default).")
@output_file("File to write (.xml).")
def generate(spec: str, zero_latency: bool, out: Path, **given: str | None) -> None:
    """Write the platform SPEC: mira, intrepid, torus:8,8,8,8, flat:128.

    Nodes are numbered as SimGrid numbers a torus (the first dimension varies fastest), and Batsim
    uses the same numbers.

    \b
    Example:
      rebat platform generate mira --zero-latency -o mira-zero-latency.xml
    """
    import msgspec

    from rebat.core.errors import InputError
    from rebat.platforms.simgrid_xml import ZERO_LATENCY, Hardware, write_platform
    from rebat.platforms.specs import parse_spec

    if zero_latency and given["latency"] is not None:
        raise InputError("--latency contradicts --zero-latency", expected="one of them")
    chosen = {name: value for name, value in given.items() if value is not None}
    base = ZERO_LATENCY if zero_latency else Hardware()
    made = parse_spec(spec)
    write_platform(made, out, msgspec.convert(msgspec.structs.asdict(base) | chosen, Hardware))
    shape = f", torus {made.torus}" if made.torus else ""
    click.echo(f"{out}: {made.n_nodes} nodes{shape}")


@platform.command()
@click.argument("file", type=PLATFORM)
def describe(file: Path) -> None:
    """Say what a platform FILE holds: nodes, torus, latency, numbering."""
    from rebat.platforms.simgrid_xml import read_platform

    for line in _lines(read_platform(file)):
        click.echo(line)


def _lines(facts: PlatformFacts) -> list[str]:
    lines = [f"{facts.n_hosts} compute hosts"]
    if facts.torus is not None:
        lines.append(f"torus             {facts.torus}, diameter {facts.torus.diameter} hops")
    exact = ": exact times" if facts.latency_s == 0 else ""
    lines.append(f"largest latency   {format_duration(facts.latency_s)}{exact}")
    order = "follows" if facts.in_order else "does NOT follow"
    lines.append(f"numbering         Batsim's (by host name) {order} the order in the file")
    return lines
