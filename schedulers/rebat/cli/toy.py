# SPDX-License-Identifier: Apache-2.0
"""``rebat toy``: the first thing to try."""

from __future__ import annotations

from pathlib import Path

import click

from rebat.cli.types import FOLDER
from rebat.console.output import say


@click.command()
@click.option("--out", type=FOLDER, default=Path("out/toy"), show_default=True, help="Where its files go; an earlier result is replaced.")  # fmt: skip
def toy(out: Path) -> None:
    """Run the toy example of Du et al. 2024 (section 3): eight nodes, five jobs, one failure.

    Baseline waits until the failed node is back, SFSJ takes a node from a small job. The Gantt
    chart OUT/gantt.png shows both.
    """
    from rebat.library.failures import failures
    from rebat.library.run import run

    result = run("toy", ["baseline", "sfsj"], failures=failures(file="toy"))
    result.write(out, figures=True, force=True)
    say(f"{result!r}Gantt chart: {out / 'gantt.png'}", kept=f"the results are in {out}")
