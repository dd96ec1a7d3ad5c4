"""``rebat silent-errors``: the evaluation of RR-9296 from one file, parallel and resumable."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rebat.cli.progress import campaign_bar
from rebat.cli.types import FILE, FOLDER, NODES
from rebat.core.errors import InputError

if TYPE_CHECKING:
    from rebat.campaign.silent import SilentCampaign

RESULTS = click.option("--results", type=FOLDER, help="Results folder (default: out/campaigns/NAME, NAME being the file's).")  # fmt: skip
TRACE = click.option("--trace", type=FILE, help="The trace whose days [days.NAME] plays; in place of the file it names, if any.")  # fmt: skip


def _with_file(command: Callable[..., None]) -> Callable[..., None]:
    """What both subcommands take: the campaign file, its results folder, and a trace."""
    return click.argument("file", type=FILE)(RESULTS(TRACE(command)))


@click.group("silent-errors")
def silent_errors() -> None:
    """Makespans of R-LIST and R-SHELF over job sets x failure probabilities.

    \b
    Example, a minute on two cores:
      rebat silent-errors run campaigns/silent-errors/quick.toml --workers 2
      rebat silent-errors report campaigns/silent-errors/quick.toml
    """


@silent_errors.command()
@_with_file
@click.option("--workers", type=NODES, help="Worker processes (default: one per core).")
@click.option("--limit", type=NODES, help="At most so many units now.")
def run(
    file: Path, results: Path | None, trace: Path | None, workers: int | None, limit: int | None
) -> None:
    """Play what FILE asks for and has no result yet.

    It may be interrupted or killed at any moment and started again: only the units that were being
    played are lost, a unit being one job set at one failure probability. Exit status 1 when some
    unit failed.
    """
    from rebat.campaign.silent import failures_of, open_silent, run_silent
    from rebat.campaign.store import Store

    opened = open_silent(file, trace)
    _say_untraced(opened)
    folder = _folder(opened, results)
    with campaign_bar() as on_progress:
        status = run_silent(opened, folder, workers=workers, on_progress=on_progress, limit=limit)
    click.echo(
        f"{status.ok} of {status.total} units done, {status.failed} failed, "
        f"{status.missing} left; results in {folder}"
    )
    for line in failures_of(opened, Store(folder))[:10]:
        click.echo(f"  failed: {line}", err=True)
    if status.failed or (status.missing and limit is None):
        raise SystemExit(1)


@silent_errors.command()
@_with_file
@click.option("--out", type=FOLDER, help="Where the report goes (default: RESULTS/report).")
def report(file: Path, results: Path | None, trace: Path | None, out: Path | None) -> None:
    """Write tables and figures of FILE's results; give the same --trace as to run."""
    from rebat.campaign.silent import open_silent
    from rebat.campaign.silent_reporting import write_report

    opened = open_silent(file, trace)
    folder = _folder(opened, results)
    if not (folder / "runs").is_dir():
        raise InputError("no results yet", str(folder), "rebat silent-errors run first")
    _say_untraced(opened)
    for path in write_report(opened, folder, out or folder / "report"):
        click.echo(f"wrote {path}")


def _folder(opened: SilentCampaign, results: Path | None) -> Path:
    return results or Path("out") / "campaigns" / opened.owner.name


def _say_untraced(opened: SilentCampaign) -> None:
    for name in opened.untraced:
        click.echo(f"[days.{name}] is left out: no trace (give --trace FILE)", err=True)
