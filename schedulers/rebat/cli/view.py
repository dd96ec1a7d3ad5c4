# SPDX-License-Identifier: Apache-2.0
"""``rebat view``: an interactive page of runs, as a file that a browser shows."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from rebat.cli.command import command
from rebat.cli.options import AnyPath, File
from rebat.core.errors import InputError
from rebat.core.numbers import file_size

RECORDED = "recorded"

if TYPE_CHECKING:
    from rebat.results.measures.timeline import Timeline


@command()
def view(
    out: AnyPath,
    *,
    policies: Annotated[
        tuple[str, ...],
        "-p",
        "--policy",
        "Policy to show; may be repeated up to six times, from top to bottom (default: the first two).",
    ] = (),
    html: Annotated[
        File | None,
        "Write the page to this file, and open no browser (default: NAME.html in the working folder, where NAME is the folder's name).",
    ] = None,
    window: Annotated[str, "Time window shown first: START:END, like 10d:12d, or all."] = "all",
    no_browser: Annotated[bool, "Only write the page; do not open a browser."] = False,
) -> None:
    """Explore runs in the browser. OUT is the folder of 'rebat run --out', or of one policy.

    The page shows which jobs ran on which nodes, failures, downtime, stolen nodes, moves and
    checkpoints. The curves below show the nodes in use, the queue and the free nodes. All policies
    zoom together. The page shows recorded runs and simulates nothing.

    The page is one file that needs no network and no other files.

    \b
    Examples:
      rebat view out/june
      rebat view out/june -p sfsj --window 10d:12d --html june.html
    """
    from rebat.core.errors import error_at
    from rebat.core.files import write_text
    from rebat.figures.explore.page import explorer_page, place_of
    from rebat.results.files.run_folder import machine_of, run_folders, verdict_of
    from rebat.results.measures.summary import parse_window
    from rebat.workloads.machine import names_in

    if html and html.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"is {html.name!r}", "--html", "a name ending in .html")
    with error_at("--window"):
        span = None if window == "all" else parse_window(window)
    timelines = _timelines(out, policies)
    with error_at("--window"):
        _check_window(span, timelines)
    folders = run_folders(out, policies)
    machine = machine_of(folders[0])
    page = explorer_page(
        timelines,
        title_of(out, machine, [timeline.name for timeline in timelines]),
        span,
        names_in(machine.get("nodes")),
        [_stories(folder) for folder in folders],
        place_of(machine),
        [
            f"{line.name}: {verdict_of(folder, len(line.failures[0]))}"
            for line, folder in zip(timelines, folders, strict=True)
        ],
    )
    file = html or Path(f"{out.resolve().name}.html")
    write_text(file, page)
    click.echo(f"{file}: {file_size(len(page.encode()))}")
    if html is None and not no_browser:
        webbrowser.open(file.resolve().as_uri())


def title_of(out: Path, machine: dict[str, Any], policies: list[str]) -> str:
    """Return the title of the page: the workload of a record, or the folder."""
    file = machine.get("file")
    if policies != [RECORDED] or not isinstance(file, str):
        return f"rebat: {out.resolve().name}"
    return f"{file.removesuffix('.gz').rpartition('.')[0] or file}: the recorded schedule"


def _timelines(out: Path, policies: tuple[str, ...]) -> list[Timeline]:
    from rebat.console.progress import counting_bar
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
    from rebat.core.numbers import duration
    from rebat.core.units import to_s

    end_us = max(timeline.makespan_us for timeline in timelines)
    if span and span[0] >= end_us:
        raise InputError(
            "begins after the last job has ended",
            expected=f"before {duration(to_s(end_us))}",
        )
