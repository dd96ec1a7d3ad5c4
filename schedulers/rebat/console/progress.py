# SPDX-License-Identifier: Apache-2.0
"""Progress on standard error: of a simulation, of a campaign, and of a count."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import msgspec

from rebat.console.output import tell
from rebat.core.units import format_duration, to_s
from rebat.engine.engine import OnProgress


class CampaignProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a campaign is, in distinct runs, those of earlier starts and beyond a limit too.

    ``eta_s`` is how long the runs of this start will still take; ``note`` what people should know
    of workers that are not there yet.
    """

    total: int
    done: int
    failed: int
    running: int
    left: int
    eta_s: float | None
    note: str = ""


OnCampaignProgress = Callable[[CampaignProgress], None]


class Count(Protocol):
    """Told how many are done, and of how many where that has changed."""

    def __call__(self, done: int, of: int | None = None) -> None: ...


EVERY_S = 10.0
"""A line so often where standard error is no terminal."""


@contextmanager
def simulation_bar(label: str, jobs: int) -> Iterator[OnProgress]:
    """How far a simulation is: a bar on a terminal, elsewhere a line every ten seconds."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _now_and_then(label)
        return
    columns = (
        TextColumn("{task.description:<14}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("attempts, simulated {task.fields[date]}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=jobs, date="0 s")

        def on_progress(now_us: int, ended: int, known: int) -> None:
            date = format_duration(to_s(now_us))
            bar.update(task, completed=ended, total=known, date=date)

        yield on_progress


def _now_and_then(label: str) -> OnProgress:
    told = time.monotonic()

    def on_progress(now_us: int, ended: int, known: int) -> None:
        nonlocal told
        if time.monotonic() - told >= EVERY_S:
            told = time.monotonic()
            date = format_duration(to_s(now_us))
            tell(f"rebat: {label}: {ended} of {known} attempts ended, simulated {date}")

    return on_progress


@contextmanager
def counting_bar(label: str, total: int) -> Iterator[Count]:
    """How many of a number are done: a bar on a terminal, elsewhere a line every ten seconds.

    The number may grow on the way.
    """
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task, told = bar.add_task(label, total=total), time.monotonic()

        def on_progress(done: int, of: int | None = None) -> None:
            nonlocal told, total
            total = of or total
            bar.update(task, completed=done, total=total)
            if bar.disable and time.monotonic() - told >= EVERY_S:
                told = time.monotonic()
                tell(f"rebat: {label}: {done} of {total}")

        yield on_progress


@contextmanager
def at_work(what: str) -> Iterator[None]:
    """Something turns on a terminal while a file is read or written; elsewhere nothing is said."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(f"{what} ..."):
        yield


@contextmanager
def compiling_notice() -> Iterator[None]:
    """Say so when the kernels must be compiled first (once per machine and version)."""
    from rebat.kernels.compiled import is_compiled

    if not is_compiled():
        tell("rebat: compiling the kernels, once (some seconds) ...")
    yield


@contextmanager
def campaign_bar() -> Iterator[OnCampaignProgress]:
    """A live bar on a terminal; elsewhere a line now and then, on standard error."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _line_by_line()
        return
    text = TextColumn("{task.fields[text]}")
    with Bar(BarColumn(), text, TimeElapsedColumn(), console=console) as bar:
        task = bar.add_task("runs", total=None, text="")

        def on_progress(now: CampaignProgress) -> None:
            bar.update(task, total=now.total, completed=now.done + now.failed, text=_text(now))

        yield on_progress


def _line_by_line(every: int = 20) -> OnCampaignProgress:
    """A line at the start, at the end and about so many times between."""
    shown: tuple[int, str] = (-1, "")

    def on_progress(now: CampaignProgress) -> None:
        nonlocal shown
        step = (now.done + now.failed) * every // max(now.total, 1), now.note
        if step != shown or not (now.running or now.left):
            shown = step
            tell(_text(now))

    return on_progress


def _text(now: CampaignProgress) -> str:
    eta = "" if now.eta_s is None else f" | ETA {format_duration(now.eta_s)}"
    note = f" | {now.note}" if now.note else ""
    return (
        f"{now.done}/{now.total} done | {now.running} running | {now.failed} failed"
        f" | {now.left} left{eta}{note}"
    )
