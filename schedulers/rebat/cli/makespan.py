# SPDX-License-Identifier: Apache-2.0
"""``rebat makespan``: makespans of R-LIST and R-SHELF on job sets with explicit failures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rebat.cli.output_file import output_file
from rebat.cli.types import FILE, SEED
from rebat.console.progress import compiling_notice
from rebat.core.formatting import csv_line

if TYPE_CHECKING:
    from rebat.policies.makespans import MakespanRow

_CHUNK = 4096
"""Number of rows that are written in one step."""

_Ratios = dict[tuple[str, str], tuple[float, int]]
"""For each heuristic and rule: sum and number of the ratios of makespan to lower bound."""


@click.command()
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="FILE...")
@click.option(
    "-H",
    "--heuristic",
    "heuristics",
    multiple=True,
    help="Heuristic: R-LIST-0, R-LIST-1, R-LIST-<m>, R-LIST-Q, R-SHELF-B or R-SHELF-NB; may be repeated (default: the paper's five).",
)
@click.option(
    "-R",
    "--rule",
    "rules",
    multiple=True,
    help="Priority rule: LPT, SPT, HPA, LPA, LA, SA, LJF or RANDOM; may be repeated (default: the paper's six rules without RANDOM).",
)
@click.option(
    "--reservations",
    default="paper",
    show_default=True,
    help=(
        "How R-LIST reserves nodes. paper: as in Algorithm 1. easy_head: a job that starts "
        "immediately does not use up a reservation. stale: reservations are never cancelled."
    ),
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the rule RANDOM.")
@click.option(
    "--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Number of threads."
)
@output_file(
    "Output file, compressed if it ends in .gz (default: standard output).", required=False
)
def makespan(
    files: tuple[Path, ...],
    heuristics: tuple[str, ...],
    rules: tuple[str, ...],
    reservations: str,
    seed: int,
    threads: int,
    out: Path | None,
) -> None:
    """Compute makespans of resilient heuristics on job sets, as CSV.

    Each FILE is JSON with "P" (number of processors), "jobs" and "scenarios" (RR-9296, sections 3
    and 4). A job is an object with "p" (processors) and "t" (time). A scenario is an object with
    "f" (the number of failed attempts of each job). The columns of the output are set, scenario,
    heuristic, rule, makespan and lower_bound (equations 5 and 6), in the time unit of the file.
    With -o, the command prints which heuristic and rule have the lowest mean ratio of makespan to
    lower bound.

    \b
    Example:
      rebat makespan sets/*.json --heuristic R-LIST-0 --rule LPT --rule LA -o makespans.csv
    """
    from rebat.core.files import atomic_path, write_text
    from rebat.models.resilient import HEURISTICS
    from rebat.policies.makespans import PAPER_RULES, makespans

    ratios: _Ratios = {}
    computed = makespans(
        files,
        heuristics or HEURISTICS,
        rules or PAPER_RULES,
        reservations=reservations,
        seed=seed,
        threads=threads,
    )
    rows = _with_ratios(computed, ratios)
    with compiling_notice():
        if out is None:
            for text in _csv(rows):
                click.echo(text, nl=False)
        elif out.suffix == ".gz":
            write_text(out, "".join(_csv(rows)))
        else:
            with atomic_path(out) as temporary, temporary.open("w", encoding="utf-8") as file:
                file.writelines(_csv(rows))
    if out is not None:
        if ratios:
            click.echo(_verdict(ratios))
        click.echo(f"makespans in {out}")


def _with_ratios(rows: Iterable[MakespanRow], ratios: _Ratios) -> Iterator[MakespanRow]:
    """Yield the rows, and add the ratio of each row to ``ratios``."""
    for row in rows:
        if row.lower_bound:
            total, count = ratios.get((row.heuristic, row.rule), (0.0, 0))
            ratio = row.makespan / row.lower_bound
            ratios[row.heuristic, row.rule] = total + ratio, count + 1
        yield row


def _verdict(ratios: _Ratios) -> str:
    """Return a sentence on the heuristic and rule with the lowest mean ratio."""
    means = {pair: total / count for pair, (total, count) in ratios.items()}
    heuristic, rule = best = min(means, key=means.__getitem__)
    return (
        f"lowest mean makespan: {heuristic} with {rule}, {means[best]:.3f} times the lower bound "
        f"({ratios[best][1]} scenarios)"
    )


def _csv(rows: Iterable[MakespanRow]) -> Iterator[str]:
    """Yield the table in chunks of lines. The first chunk begins with the header."""
    from rebat.policies.makespans import MakespanRow

    lines = iter(rows)
    part: list[tuple[object, ...]] = [MakespanRow._fields, *islice(lines, _CHUNK)]
    while part:
        yield "".join(map(csv_line, part))
        part = list(islice(lines, _CHUNK))
