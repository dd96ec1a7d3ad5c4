# SPDX-License-Identifier: Apache-2.0
"""Progress of simulations, campaigns and counts. It is printed on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import ceil
from typing import Protocol

import msgspec

from rebat.console.output import print_line
from rebat.core.numbers import duration
from rebat.core.units import to_s
from rebat.engine.engine import OnProgress


class CampaignProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of a campaign in distinct runs.

    ``left`` includes the runs in progress, and the runs that ``limit`` excludes.
    """

    total: int
    done: int
    failed: int
    running: int
    left: int
    eta_s: float | None
    """Estimated remaining time of this call, in seconds."""
    note: str = ""
    """Message about workers that have not started yet."""


OnCampaignProgress = Callable[[CampaignProgress], None]


class Count(Protocol):
    """Progress callback with the number of completed items and, if it changed, the total ``of``."""

    def __call__(self, done: int, of: int | None = None) -> None: ...


FIRST_S, EVERY_S = 2.0, 10.0
"""Seconds before the first progress line and between lines, if standard error is not a terminal."""


class Pace:
    """The times of progress lines: the first after `FIRST_S`, then one every ``every_s`` seconds.

    The default of ``every_s`` is `EVERY_S`.
    """

    def __init__(self, every_s: float | None = None) -> None:
        self._every_s = EVERY_S if every_s is None else every_s
        self._next_s = time.monotonic() + min(FIRST_S, self._every_s)

    def due(self) -> bool:
        """Return whether to print a line now."""
        now_s = time.monotonic()
        if now_s < self._next_s:
            return False
        self._next_s = now_s + self._every_s
        return True


@contextmanager
def simulation_bar(label: str, jobs: int) -> Iterator[OnProgress]:
    """Show the progress of a simulation: a bar on a terminal, otherwise lines (see `Pace`)."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _occasional_lines(label)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description:<14}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("attempts, simulated {task.fields[time]}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=jobs, time="0 s")

        def on_progress(now_us: int, ended: int, total: int) -> None:
            simulated = duration(to_s(now_us))
            bar.update(task, completed=ended, total=total, time=simulated)

        yield on_progress


def _occasional_lines(label: str) -> OnProgress:
    pace = Pace()

    def on_progress(now_us: int, ended: int, total: int) -> None:
        if pace.due():
            simulated = duration(to_s(now_us))
            print_line(
                f"rebat: {label}: {ended:,} of {total:,} attempts ended, simulated {simulated}"
            )

    return on_progress


@contextmanager
def counting_bar(label: str, total: int, every_s: float | None = None) -> Iterator[Count]:
    """Show a count: a bar on a terminal, otherwise lines at the times of a `Pace`.

    The total may increase during the count.
    """
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task, pace = bar.add_task(label, total=total), Pace(every_s)

        def on_progress(done: int, of: int | None = None) -> None:
            nonlocal total
            total = of or total
            bar.update(task, completed=done, total=total)
            if bar.disable and pace.due():
                print_line(f"rebat: {label}: {done:,} of {total:,}")

        yield on_progress


@contextmanager
def at_work(label: str) -> Iterator[None]:
    """Show a spinner on a terminal while the block runs, for example while a file is read."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(f"{label} ..."):
        yield


@contextmanager
def compiling_notice() -> Iterator[None]:
    """If functions have to be compiled in the block, print a notice when this begins."""
    from rebat.kernels.compiling import compiling

    def notice(can_store: bool) -> None:
        later = (
            "later commands are faster"
            if can_store
            else "every command compiles, because no folder for machine code is writable: set "
            "NUMBA_CACHE_DIR to a folder"
        )
        print_line(f"rebat: compiling the kernels, up to a minute; {later} ...")

    compiling.on_begin = notice
    try:
        yield
    finally:
        compiling.on_begin = None


@contextmanager
def campaign_bar() -> Iterator[OnCampaignProgress]:
    """Show the progress of a campaign: a bar on a terminal, otherwise about twenty lines."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines()
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    text = TextColumn("{task.fields[text]}")
    with Bar(BarColumn(), text, TimeElapsedColumn(), console=console) as bar:
        task = bar.add_task("runs", total=None, text="")

        def on_progress(now: CampaignProgress) -> None:
            bar.update(task, total=now.total, completed=now.done + now.failed, text=_text(now))

        yield on_progress


def _lines(every: int = 20) -> OnCampaignProgress:
    """Return a callback that prints a line at the start, at the end and regularly in between."""
    last_step: tuple[int, str] = (-1, "")

    def on_progress(now: CampaignProgress) -> None:
        nonlocal last_step
        step = (now.done + now.failed) * every // max(now.total, 1), now.note
        if step != last_step or not now.left:
            last_step = step
            print_line(_text(now))

    return on_progress


def _text(now: CampaignProgress) -> str:
    eta = "" if now.eta_s is None else f" | ETA {duration(ceil(now.eta_s))}"
    note = f" | {now.note}" if now.note else ""
    return (
        f"{now.done}/{now.total} done | {now.running} running | {now.failed} failed"
        f" | {now.left} left{eta}{note}"
    )
