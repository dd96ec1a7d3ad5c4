# SPDX-License-Identifier: Apache-2.0
"""``rebat toy``: a small example that needs no files."""

from __future__ import annotations

from pathlib import Path

import click

from rebat.cli.json_output import json_option, print_json
from rebat.cli.types import FOLDER
from rebat.console.output import print_result


@click.command()
@click.option(
    "--out",
    type=FOLDER,
    default=Path("out/toy"),
    show_default=True,
    help="Folder for the results; an earlier result is replaced.",
)
@json_option
def toy(out: Path, as_json: bool) -> None:
    """Run the toy example of Du et al. 2024 (section 3): eight nodes, five jobs, one failure.

    Under Baseline the large job restarts when another job ends. Under SFSJ the large job takes a
    node from a small job and restarts immediately. The Gantt chart OUT/gantt.png shows both
    schedules.

    \b
    Example:
      rebat toy
    """
    from rebat.library.failures import failures
    from rebat.library.records import comparison_record
    from rebat.library.run import run

    result = run("toy", ["baseline", "sfsj"], failures=failures(file="toy"))
    result.write(out, figures=True, force=True)
    saved = f"the results are in {out}"
    if as_json:
        print_json(comparison_record(result, (), out), saved)
    else:
        print_result(f"{result!r}Gantt chart: {out / 'gantt.png'}", saved)
