"""A progress bar for simulations: simulated date and jobs done, on standard error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rebat.core.units import format_duration, to_s
from rebat.engine.engine import OnProgress


@contextmanager
def simulation_bar(label: str, jobs: int) -> Iterator[OnProgress]:
    """A bar that shows how far a simulation is; silent where standard error is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description:<14}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("jobs, simulated {task.fields[date]}"),
    )
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(label, total=jobs, date="0 s")

        def on_progress(now_us: int, ended: int, known: int) -> None:
            date = format_duration(to_s(now_us))
            bar.update(task, completed=ended, total=known, date=date)

        yield on_progress


@contextmanager
def compiling_notice() -> Iterator[None]:
    """Say so when the kernels must be compiled first (once per machine and version)."""
    import sys

    from rebat.kernels.jit import is_compiled

    if not is_compiled():
        print("rebat: compiling the kernels, once (some seconds) ...", file=sys.stderr)
    yield
