# SPDX-License-Identifier: Apache-2.0
"""``rebat makespan``: R-LIST and R-SHELF on job sets with explicit failure scenarios."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rebat.cli.output_file import output_file
from rebat.cli.types import FILE, SEED
from rebat.console.progress import compiling_notice
from rebat.core.csv_text import csv_line

if TYPE_CHECKING:
    from rebat.papers.silent_errors.makespans import MakespanRow

_CHUNK = 4096
"""Rows written at once."""


@click.command()
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="FILE...")
@click.option("-H", "--heuristic", "heuristics", multiple=True, help="R-LIST-0, R-LIST-1, R-LIST-<m>, R-LIST-Q, R-SHELF-B, R-SHELF-NB; may be repeated (default: the paper's five).")  # fmt: skip
@click.option("-R", "--rule", "rules", multiple=True, help="LPT, SPT, HPA, LPA, LA, SA, LJF, RANDOM; may be repeated (default: the paper's six without RANDOM).")  # fmt: skip
@click.option("--reservations", default="paper", show_default=True, help="paper (Algorithm 1), easy_head (only jobs that cannot start use them up) or stale (never cancelled).")  # fmt: skip
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the rule RANDOM.")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True)
@output_file("File to write instead of standard output (.gz: compressed).", required=False)
def makespan(
    files: tuple[Path, ...], heuristics: tuple[str, ...], rules: tuple[str, ...],
    reservations: str, seed: int, threads: int, out: Path | None,
) -> None:  # fmt: skip
    """Makespans of resilient heuristics on job sets, as CSV.

    Each FILE is JSON: "P" processors, "jobs" with "p" and "t", "scenarios" with "f", the failed
    attempts per job (RR-9296, sections 3 and 4). The columns are set, scenario, heuristic, rule,
    makespan and lower_bound (equations 5 and 6), in the file's unit of time.

    \b
    Example:
      rebat makespan sets/*.json --heuristic R-LIST-0 --rule LPT --rule LA -o makespans.csv
    """
    from rebat.core.files import atomic_path, write_text
    from rebat.models.resilient import HEURISTICS
    from rebat.papers.silent_errors.makespans import PAPER_RULES, makespans

    rows = makespans(
        files, heuristics or HEURISTICS, rules or PAPER_RULES,
        reservations=reservations, seed=seed, threads=threads,
    )  # fmt: skip
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
        click.echo(f"makespans in {out}")


def _csv(rows: Iterable[MakespanRow]) -> Iterator[str]:
    """The table as texts of many lines each, the header with the first."""
    from rebat.papers.silent_errors.makespans import MakespanRow

    lines = iter(rows)
    part: list[tuple[object, ...]] = [MakespanRow._fields, *islice(lines, _CHUNK)]
    while part:
        yield "".join(map(csv_line, part))
        part = list(islice(lines, _CHUNK))
