# SPDX-License-Identifier: Apache-2.0
"""``rebat failures models``: failure laws of real machines by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rebat.cli.json_output import json_option, print_json
from rebat.cli.types import MACHINE
from rebat.core.units import format_duration

if TYPE_CHECKING:
    from rebat.models.failures.laws import Prefab


@click.command()
@click.option(
    "--nodes",
    type=MACHINE,
    help="Print the MTBF of a machine with this number of nodes (default: the recorded machine).",
)
@json_option
def models(nodes: int | None, as_json: bool) -> None:
    """List failure laws of real machines by name.

    Use a name with --law, for example --law lanl-20. On a machine of another size, the failure rate
    of a node stays the same. To change a parameter, append it: --law lanl-20:repair=1h. 'rebat run
    --help' explains the parameters.

    \b
    Example:
      rebat run mira-like-june-2017 --law lanl-20 --checkpoint young-daly -p baseline -p sfsj
    """
    from rebat.models.failures.laws import prefabs

    records = [_record(name, prefab, nodes) for name, prefab in prefabs().items()]
    if as_json:
        print_json({"models": records})
    else:
        click.echo(_table(records, nodes), nl=False)


def _record(name: str, prefab: Prefab, nodes: int | None) -> dict[str, Any]:
    from rebat.models.failures.laws import make_law

    law = make_law(name, {})
    return {
        "name": name,
        "machine": prefab.title,
        "nodes": prefab.nodes,
        "failures": prefab.failures,
        "days": prefab.days,
        "mtbf_s": law.mtbf_on(nodes or prefab.nodes),
        "law": prefab.law,
        "parameters": prefab.parameters,
        "source": prefab.source,
    }


def _table(records: list[dict[str, Any]], nodes: int | None) -> str:
    from rebat.console.tables import Sheet

    mtbf = "MTBF" if nodes is None else f"MTBF of {nodes} nodes"
    rows = [
        [
            row["name"],
            row["machine"],
            str(row["nodes"]),
            _count(row["failures"]),
            _text(row["mtbf_s"]),
        ]
        for row in records
    ]
    sources = "\n".join(dict.fromkeys(f"Source: {row['source']}." for row in records))
    columns = ["name", "machine", "nodes", "failures", mtbf]
    return Sheet("Failure laws of real machines (--law NAME)", sources, columns, rows, 2).text()


def _count(number: int | None) -> str:
    return "" if number is None else str(number)


def _text(seconds: float | None) -> str:
    return "" if seconds is None else format_duration(seconds)
