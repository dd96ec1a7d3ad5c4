# SPDX-License-Identifier: Apache-2.0
"""``rebat view``: an interactive page of runs, as a file or served on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rebat.cli.types import FILE

if TYPE_CHECKING:
    from rebat.results.measures.timeline import Timeline


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "-p",
    "--policy",
    "policies",
    multiple=True,
    help="Policy to show; may be repeated up to six times, from top to bottom (default: the first two).",
)
@click.option("--html", type=FILE, help="Write the page to this file instead of serving it.")
@click.option(
    "--window",
    default="all",
    show_default=True,
    help="Time window shown first: START:END, like 10d:12d, or all.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port of the server (default: a free port).",
)
@click.option("--no-browser", is_flag=True, help="Only print the address; do not open a browser.")
def view(
    out: Path,
    policies: tuple[str, ...],
    html: Path | None,
    window: str,
    port: int,
    no_browser: bool,
) -> None:
    """Explore runs in the browser. OUT is the folder of 'rebat run --out', or of one policy.

    The page shows which jobs ran on which nodes, failures, downtime, stolen nodes, moves and
    checkpoints. The curves below show the nodes in use, the queue and the free nodes. All policies
    zoom together. The page shows recorded runs and simulates nothing.

    The page is served at 127.0.0.1 until Ctrl-C. Its address contains a secret token. With --html,
    the page is written to a file that needs no network.

    \b
    Examples:
      rebat view out/june
      rebat view out/june -p sfsj --window 10d:12d --html june.html
    """
    from rebat.core.errors import InputError
    from rebat.core.files import write_text
    from rebat.figures.explore.page import explorer_page
    from rebat.library.checks import error_at
    from rebat.library.node_names import names_in
    from rebat.results.files.run_folder import node_list_of, run_folders
    from rebat.results.measures.summary import parse_window

    if html and html.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"is {html.name!r}", "--html", "a name ending in .html")
    with error_at("--window"):
        span = None if window == "all" else parse_window(window)
    timelines = _timelines(out, policies)
    with error_at("--window"):
        _check_window(span, timelines)
    names = names_in(node_list_of(run_folders(out, policies)[0]))
    stories = [_stories(folder) for folder in run_folders(out, policies)]
    page = explorer_page(timelines, f"rebat: {out.resolve().name}", span, names, stories)
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
    from rebat.results.files.run_folder import read_timeline, run_folders

    timelines = []
    if len(policies) > MOST_TOGETHER:
        raise InputError(f"names {len(policies)} policies", "--policy", f"at most {MOST_TOGETHER}")
    for folder in run_folders(out, policies):
        with counting_bar(f"reading {folder.name}", 1) as on_rows:
            timelines.append(read_timeline(folder, on_rows))
    return timelines


def _stories(folder: Path) -> dict[str, str] | None:
    """Return the story of each job as text, or None if the run did not record its plans."""
    from rebat.console.progress import counting_bar
    from rebat.results.explain.book import RunBook
    from rebat.results.explain.sentences import lines
    from rebat.results.explain.story import story
    from rebat.results.files.run_folder import PLANS

    if not (folder / PLANS).exists():
        return None
    book, texts = RunBook(folder), {}
    with counting_bar(f"explaining {folder.name}", len(book.jobs)) as on_jobs:
        for number, job in enumerate(book.jobs, 1):
            texts[job] = "\n".join(filter(None, lines(story(book, job))))
            on_jobs(number)
    return texts


def _check_window(span: tuple[int, int] | None, timelines: list[Timeline]) -> None:
    """Raise an error if all runs end before the window begins."""
    from rebat.core.errors import InputError
    from rebat.core.units import format_duration, to_s

    end_us = max(timeline.makespan_us for timeline in timelines)
    if span and span[0] >= end_us:
        raise InputError(
            "begins after the last job has ended",
            expected=f"before {format_duration(to_s(end_us))}",
        )
