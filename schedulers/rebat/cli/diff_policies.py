# SPDX-License-Identifier: Apache-2.0
"""``rebat diff-policies``: the first decision at which two policies differ."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rebat.cli.json_output import json_option, print_json
from rebat.console.output import print_result
from rebat.core.errors import InputError
from rebat.core.units import to_s

if TYPE_CHECKING:
    from rebat.results.compare.parting import Ends, JobOutcome, Parting
    from rebat.results.measures.timeline import Timeline


@click.command("diff-policies")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("a", required=False)
@click.argument("b", required=False)
@click.option(
    "--nodes",
    is_flag=True,
    help="Also report a difference if both policies start a job at the same time on different nodes.",
)
@json_option
def diff_policies(out: Path, a: str | None, b: str | None, nodes: bool, as_json: bool) -> None:
    """Find the first decision at which the policies A and B differ.

    OUT is a folder of 'rebat run --out'. The default of A and B are the first two policies of the
    folder. Before this decision, both runs are equal. The command prints the decision of each
    policy, the state before it, and how the jobs of the decision ended under each policy.

    \b
    Example:
      rebat run june.json.gz -p baseline -p sfsj --mtbf 1h --downtime 1h --out out/june
      rebat diff-policies out/june baseline sfsj
    """
    from rebat.results.compare.parting import ends, parting
    from rebat.results.files.run_folder import read_timeline, run_folders

    folders = run_folders(out, [name for name in (a, b) if name is not None])
    if len(folders) != 2:
        raise InputError("contains only one policy", str(out), "two policies to compare")
    first, second = map(read_timeline, folders)
    parted = parting(first, second, nodes)
    if as_json:
        print_json(_record(first.name, second.name, parted, ends(first, second)))
    else:
        print_result(_text(first, second, parted, ends(first, second), out), "nothing is saved")


def _text(
    first: Timeline, second: Timeline, parted: Parting | None, result: Ends, out: Path
) -> str:
    from rebat.results.compare.parting import SAME, around_us, difference_text

    if parted is None:
        return SAME.format(first.name, second.name)
    names = (first.name, second.name)
    decisions, knowledge, end = difference_text(names, parted, result)
    lines = [
        *decisions,
        "",
        knowledge,
        end,
        "",
        _table(names, parted),
        f"explore this time: {_command(out, names, parted.at_us, around_us(first, second))}",
    ]
    return "\n".join(lines)


def _table(names: tuple[str, str], parted: Parting) -> str:
    from rebat.console.tables import Sheet

    columns = ["job", *(f"{time}, {name}" for time in ("first start", "end") for name in names)]
    rows = [
        [job, *map(_time, [x.first_start_us for x in pair] + [x.end_us for x in pair])]
        for job, pair in parted.outcomes.items()
    ]
    return Sheet(
        "The jobs of these decisions, in the end", "times in seconds", columns, rows
    ).text()


def _time(us: int | None) -> str:
    return "-" if us is None else f"{to_s(us):.6g}"


def _command(out: Path, names: tuple[str, str], at_us: int, around_us: float) -> str:
    first_s, last_s = (at_us - around_us) / 1e6, (at_us + around_us) / 1e6
    window = f"{max(0, math.floor(first_s))}s:{math.ceil(last_s)}s"
    policies = [word for name in names for word in ("-p", name)]
    return shlex.join(["rebat", "view", str(out), *policies, "--window", window])


def _record(a: str, b: str, parted: Parting | None, result: Ends) -> dict[str, Any]:
    record: dict[str, Any] = {"a": a, "b": b, "same": parted is None}
    if parted is None:
        return record
    return record | {
        "at_s": to_s(parted.at_us),
        "equal_decisions": parted.n_equal,
        "only_a": parted.only[0],
        "only_b": parted.only[1],
        "knew": parted.knew,
        "outcomes": {
            job: {"a": _outcome(first), "b": _outcome(second)}
            for job, (first, second) in parted.outcomes.items()
        },
        "ends_with_b": result,
    }


def _outcome(outcome: JobOutcome) -> dict[str, Any]:
    return {
        "first_start_s": None if outcome.first_start_us is None else to_s(outcome.first_start_us),
        "end_s": None if outcome.end_us is None else to_s(outcome.end_us),
        "attempts": outcome.attempts,
    }
