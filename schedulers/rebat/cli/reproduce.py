# SPDX-License-Identifier: Apache-2.0
"""``rebat reproduce``: run a result again and compare all its files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rebat.cli.json_output import json_option, print_json
from rebat.cli.types import FOLDER
from rebat.console.output import print_result, warn

if TYPE_CHECKING:
    from rebat.library.reproduce import Reproduction


@click.command()
@click.argument("result", metavar="OUT", type=click.Path(path_type=Path))
@click.option(
    "--inputs",
    type=FOLDER,
    help=(
        "Folder with the input files under any names. If an input is missing or changed at its "
        "recorded path, rebat finds it here by its hash."
    ),
)
@click.option("--out", type=FOLDER, help="Keep the new result in this folder.")
@json_option
def reproduce(result: Path, inputs: Path | None, out: Path | None, as_json: bool) -> None:
    """Run a result again and compare all its files.

    OUT is a folder of 'rebat run --out'. Its file provenance.json contains the command, the
    versions and the hashes of the inputs. Relative paths of inputs start at the current folder. The
    command first prints the versions and inputs that have changed. Then it runs the recorded
    command, and prints a verdict and a row per file.

    A file is equal up to rounding if its texts are equal and its numbers have a relative difference
    of at most 1e-9. Other versions of Python and numpy cause such differences.

    Exit status 0: all files are equal, or equal up to rounding; 1: files differ; 2: an input is
    missing or unreadable.

    \b
    Example:
      rebat reproduce out/june
    """
    from rebat.library.reproduce import repetition

    ready = repetition(result, inputs)
    for change in ready.changes:
        warn(change)
    done = ready.run(out)
    saved = "nothing is saved" if out is None else f"the new result is in {out}"
    if as_json:
        print_json({**done.record, "out": out}, saved)
    else:
        print_result(f"{done.verdict}\n\n{_table(done)}", saved)
    if not done.reproduced:
        raise SystemExit(1)


_COLUMNS = ["file", "verdict", "line", "field", "before", "now"]


def _table(done: Reproduction) -> str:
    from rebat.console.tables import Sheet

    columns, caption = _COLUMNS[:2], ""
    if done.rounded or not done.reproduced:
        columns = _COLUMNS
        caption = "line: the first different line, or the line with the largest rounding difference"
    cells = [[getattr(row, name) for name in columns] for row in done.files]
    rows = [["" if cell is None else str(cell) for cell in row] for row in cells]
    return Sheet("Files", caption, columns, rows, words=len(columns)).text()
