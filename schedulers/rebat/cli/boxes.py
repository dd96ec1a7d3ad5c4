# SPDX-License-Identifier: Apache-2.0
"""``rebat boxes``: list the boxes of a torus, and the free box with the lowest failure probability."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rebat.cli.json_output import json_option, print_json
from rebat.cli.types import DURATION, FILE, NODES
from rebat.core.errors import InputError
from rebat.core.units import format_duration
from rebat.library.checks import error_at

if TYPE_CHECKING:
    from rebat.models.boxes import BoxList, SafestBox

LISTS = ("16", "aligned", "all")


@click.command()
@click.option(
    "--torus",
    required=True,
    help=(
        "Size of the torus in each dimension, like 8x8x8x8, or the name of a machine: mira, "
        "intrepid."
    ),
)
@click.option("--size", type=NODES, required=True, help="Number of nodes that a job requests.")
@click.option(
    "--boxes",
    "which",
    type=click.Choice(LISTS),
    help=(
        "Boxes to list. all: every box (default). aligned: boxes whose first corner is a "
        "multiple of their size in each dimension. 16: the aligned boxes with the smallest "
        "surface, such as the 16 boxes of 4x4x4x4 on 8x8x8x8."
    ),
)
@click.option("--aligned", is_flag=True, help="Short form of --boxes aligned.")
@click.option(
    "--block",
    "--unit",
    "block",
    help=(
        "Size of a block in each dimension, like 4x4x4x4x2 (default: single nodes). A block is "
        "a group of nodes that is allocated as a whole."
    ),
)
@click.option(
    "--law",
    type=FILE,
    help=(
        "Table with the failure law and the uptime of every node (node,scale_s,shape,uptime_s), "
        "as written by 'rebat failures fit'. With this option the command prints the free box "
        "with the lowest failure probability."
    ),
)
@click.option("--duration", type=DURATION, help="With --law: run time of the job.")
@click.option("--busy", help="With --law: busy nodes, like '0-3 5' (default: none).")
@json_option
def boxes(
    torus: str,
    size: int,
    which: str | None,
    aligned: bool,
    block: str | None,
    as_json: bool,
    **job: Any,
) -> None:
    """List the boxes of --size nodes on a torus. Boxes may wrap around.

    Node i of a torus a x b x c has the coordinates i % a, i // a % b, i // a // b, so the first
    coordinate varies fastest. With --law, print the free box that is least likely to fail while the
    job runs. The probability depends on the uptime of each node (FAPS of Vardas et al. 2022).

    \b
    Examples:
      rebat boxes --torus 8x8x8x8 --size 256
      rebat boxes --torus mira --size 3000 --block 4x4x4x4x2 \\
          --law nodes.csv --duration 24h --busy '0-2047 4096'
    """
    from rebat.models.boxes import BoxList
    from rebat.models.topology import parse_extents, parse_torus

    if aligned and which not in (None, "aligned"):
        raise InputError(f"contradicts --boxes {which}", "--aligned", "only one of the two options")
    with error_at("--torus"):
        of_nodes = parse_torus(torus)
    with error_at("--block"):
        block_extents = parse_extents(block) if block is not None else None
    listed = BoxList(of_nodes, size, "aligned" if aligned else which or "all", block_extents)
    best = _best(listed, **job)
    if as_json:
        print_json(_record(listed, best))
        return
    for line in _lines(listed, best, job["duration"]):
        click.echo(line)


def _best(
    listed: BoxList, law: Path | None, duration: float | None, busy: str | None
) -> SafestBox | None:
    """Return the free box with the lowest failure probability. If there is no law, return None."""
    from rebat.core.nodes import NodeSet
    from rebat.models.failures.node_table import read_nodes

    if law is None:
        for name, value in (("--duration", duration), ("--busy", busy)):
            if value is not None:
                raise InputError("has no effect", name, "--law as well")
        return None
    if duration is None:
        raise InputError("is missing", "--duration", "the run time of the job, like 24h")
    with error_at("--busy"):
        taken = NodeSet.parse(busy or "")
    return listed.best(read_nodes(law, listed.blocks.of_nodes.n_nodes), duration, taken)


def _record(listed: BoxList, best: SafestBox | None) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "torus": listed.blocks.of_nodes.sizes,
        "size": listed.size,
        "box_nodes": listed.box_nodes,
        "waste": listed.waste,
        "shapes": [{"shape": shape, "placements": count} for shape, count in listed.shapes],
        "placements": len(listed.boxes),
    }
    if best is not None:
        facts["best"] = {
            "shape": best.shape,
            "origin": best.origin,
            "nodes": list(best.nodes),
            "failure_probability": best.failure_probability,
        }
    return facts


def _lines(listed: BoxList, best: SafestBox | None, duration_s: float | None) -> Iterator[str]:
    nodes = listed.blocks.of_nodes
    blocks = f" in blocks of {listed.blocks.size}" if listed.blocks.size > 1 else ""
    yield f"{nodes}: {nodes.n_nodes} nodes{blocks}"
    yield f"{listed.size} nodes: boxes of {listed.box_nodes}, {listed.waste} unused"
    yield f"{len(listed.boxes)} boxes, with {len(listed.shapes)} different dimensions:"
    for shape, count in listed.shapes:
        yield f"  {_text(shape):<20} {count:>8}"
    if best is not None and duration_s is not None:
        yield f"free box with the lowest failure probability within {format_duration(duration_s)}:"
        yield f"  dimensions           {_text(best.shape)}"
        yield f"  origin               {','.join(map(str, best.origin))}"
        yield f"  failure probability  {best.failure_probability:.6g}"
        yield f"  nodes                {best.nodes}"


def _text(extents: tuple[int, ...]) -> str:
    return "x".join(map(str, extents))
