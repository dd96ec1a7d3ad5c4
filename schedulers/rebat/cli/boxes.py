# SPDX-License-Identifier: Apache-2.0
"""``rebat boxes``: the boxes of a torus, and the free one that is least likely to fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rebat.cli.types import DURATION, FILE, NODES
from rebat.core.errors import InputError
from rebat.core.units import format_duration
from rebat.library.checks import given_by

if TYPE_CHECKING:
    from rebat.models.box_list import BoxList, SafestBox

LISTS = ("16", "aligned", "all")


@click.command()
@click.option("--torus", required=True, help="Extents, like 8x8x8x8, or mira, intrepid.")
@click.option("--size", type=NODES, required=True, help="Nodes that a job asks for.")
@click.option("--boxes", "which", type=click.Choice(LISTS), help="Which boxes: all (the default); aligned, with origins at multiples of the extents; 16, the aligned ones of the most cubic shapes.")  # fmt: skip
@click.option("--aligned", is_flag=True, help="Short for --boxes aligned.")
@click.option("--block", "--unit", "block", help="Extents of a block, the nodes that are allocated together, like 4x4x4x4x2 (default: single nodes).")  # fmt: skip
@click.option("--law", type=FILE, help="Table with the law and uptime of every node, as of 'rebat failures fit' (node,scale_s,shape,uptime_s): tell the free box least likely to fail.")  # fmt: skip
@click.option("--duration", type=DURATION, help="With --law: for how long the job runs.")
@click.option("--busy", help="With --law: nodes that are not free, like '0-3 5'.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def boxes(
    torus: str, size: int, which: str | None, aligned: bool, block: str | None, as_json: bool,
    **asked: Any,
) -> None:  # fmt: skip
    """List the boxes of a SIZE on a torus, wrapping around.

    Node i of a torus a x b x c has the coordinates i % a, i // a % b, i // a // b: the first
    extent varies fastest. With --law, a job's box is the free one whose nodes are least
    likely to fail while it runs, given for how long each has been up (Vardas et al. 2022, FAPS).

    \b
    Examples:
      rebat boxes --torus 8x8x8x8 --size 256
      rebat boxes --torus mira --size 3000 --block 4x4x4x4x2 \\
          --law nodes.csv --duration 24h --busy '0-2047 4096'
    """
    from rebat.models.box_list import BoxList
    from rebat.models.topology import parse_extents, parse_torus

    if aligned and which not in (None, "aligned"):
        raise InputError(f"contradicts --boxes {which}", "--aligned", "one of them")
    with given_by("--torus"):
        of_nodes = parse_torus(torus)
    with given_by("--block"):
        unit_extents = parse_extents(block) if block is not None else None
    found = BoxList(of_nodes, size, "aligned" if aligned else which or "all", unit_extents)
    best = _best(found, **asked)
    if as_json:
        click.echo(_json(found, best))
        return
    for line in _lines(found, best, asked["duration"]):
        click.echo(line)


def _best(
    found: BoxList, law: Path | None, duration: float | None, busy: str | None
) -> SafestBox | None:
    """The box asked for, if any is."""
    from rebat.core.nodes import NodeSet
    from rebat.models.failures.node_table import read_nodes

    if law is None:
        for name, value in (("--duration", duration), ("--busy", busy)):
            if value is not None:
                raise InputError("has no effect", name, "--law beside it")
        return None
    if duration is None:
        raise InputError("is missing", "--duration", "with --law how long the job runs, like 24h")
    with given_by("--busy"):
        taken = NodeSet.parse(busy or "")
    return found.best(read_nodes(law, found.units.of_nodes.n_nodes), duration, taken)


def _json(found: BoxList, best: SafestBox | None) -> str:
    import msgspec

    told: dict[str, Any] = {
        "torus": found.units.of_nodes.sizes,
        "size": found.size,
        "box_nodes": found.box_nodes,
        "waste": found.waste,
        "shapes": [{"shape": shape, "placements": count} for shape, count in found.shapes],
        "placements": len(found.boxes),
    }
    if best is not None:
        told["best"] = {
            "shape": best.shape,
            "origin": best.origin,
            "nodes": list(best.nodes),
            "failure_probability": best.failure_probability,
        }
    return msgspec.json.format(msgspec.json.encode(told), indent=2).decode()


def _lines(found: BoxList, best: SafestBox | None, duration_s: float | None) -> Iterator[str]:
    nodes = found.units.of_nodes
    units = f" in blocks of {found.units.size}" if found.units.size > 1 else ""
    yield f"{nodes}: {nodes.n_nodes} nodes{units}"
    yield f"{found.size} nodes: boxes of {found.box_nodes}, {found.waste} left over"
    yield f"{len(found.shapes)} shapes, {len(found.boxes)} boxes"
    for shape, count in found.shapes:
        yield f"  {_text(shape):<20} {count:>8}"
    if best is not None and duration_s is not None:
        yield f"least likely to fail in {format_duration(duration_s)}, of the free ones:"
        yield f"  shape                {_text(best.shape)}"
        yield f"  origin               {','.join(map(str, best.origin))}"
        yield f"  failure probability  {best.failure_probability:.6g}"
        yield f"  nodes                {best.nodes}"


def _text(extents: tuple[int, ...]) -> str:
    return "x".join(map(str, extents))
