# SPDX-License-Identifier: Apache-2.0
"""``rebat view``: a page on which runs can be explored, as a file or served on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rebat.cli.types import FILE

if TYPE_CHECKING:
    from rebat.results.measures.timeline import Timeline


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option("-p", "--policy", "policies", multiple=True, help="Show this policy; up to six times, the first one is on top (default: the first two).")  # fmt: skip
@click.option("--html", type=FILE, help="Write the page to this file, and serve nothing.")
@click.option("--window", default="all", show_default=True, help="Begin with this stretch of time: START:END, like 10d:12d, or all.")  # fmt: skip
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Serve at this port (default: a free one).")  # fmt: skip
@click.option("--no-browser", is_flag=True, help="Open no browser; the address is printed.")
def view(
    out: Path, policies: tuple[str, ...], html: Path | None, window: str, port: int,
    no_browser: bool,
) -> None:  # fmt: skip
    """Explore the runs in OUT, what 'rebat run --out OUT' has written.

    Opens a page: who ran on which node and when, failures, downtime, steals, moves and checkpoints,
    with nodes in use, the queue and free nodes below, one policy above the other, zoomed together.
    It shows what it was; nothing is simulated. OUT may also be the folder of one policy.

    The page is served at 127.0.0.1 until Ctrl-C, to those who know the address that is printed.
    With --html it is written to a file, which needs no network and nothing else.

    \b
    Examples:
      rebat view out/june
      rebat view out/june -p sfsj --window 10d:12d --html june.html
    """
    from rebat.core.errors import InputError
    from rebat.core.files import write_text
    from rebat.figures.explore.page import explorer_page
    from rebat.library.checks import given_by
    from rebat.results.measures.summary import parse_window

    if html and html.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{html.name!r} is no page", "--html", "a name ending in .html")
    with given_by("--window"):
        span = None if window == "all" else parse_window(window)
    timelines = _timelines(out, policies)
    with given_by("--window"):
        _check_window(span, timelines)
    page = explorer_page(timelines, f"rebat: {out.resolve().name}", span)
    size_mb = len(page.encode()) / 1e6
    if html:
        write_text(html, page)
        click.echo(f"{html}: {size_mb:.1f} MB")
        return
    from rebat.cli.page_server import serve_page

    serve_page(page, port, open_browser=not no_browser)


def _timelines(out: Path, policies: tuple[str, ...]) -> list[Timeline]:
    from rebat.console.progress import counting_bar
    from rebat.core.errors import InputError
    from rebat.figures.explore.page import MOST_TOGETHER
    from rebat.results.files.timelines import read_timeline, run_folders

    found = []
    if len(policies) > MOST_TOGETHER:
        raise InputError(f"{len(policies)} are asked for", "--policy", f"{MOST_TOGETHER} at most")
    for folder in run_folders(out, policies):
        with counting_bar(f"reading {folder.name}", 1) as on_rows:
            found.append(read_timeline(folder, on_rows))
    return found


def _check_window(span: tuple[int, int] | None, timelines: list[Timeline]) -> None:
    """Refuse one in which nothing is."""
    from rebat.core.errors import InputError
    from rebat.core.units import format_duration, to_s

    end_us = max(timeline.makespan_us for timeline in timelines)
    if span and span[0] >= end_us:
        raise InputError(
            "begins after the last end", expected=f"before {format_duration(to_s(end_us))}"
        )
