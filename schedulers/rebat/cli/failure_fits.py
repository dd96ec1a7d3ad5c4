# SPDX-License-Identifier: Apache-2.0
"""Fitted laws in the output of ``rebat failures describe``: computation, table and figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rebat.console.tables import Sheet
from rebat.core.units import format_duration, to_us

if TYPE_CHECKING:
    from rebat.models.failures.events import MachineEvent
    from rebat.models.failures.statistics import Fitted, Sample

Fits = list[tuple["Sample", list["Fitted"]]]
N_FITS = 12
"""Number of fits: four families of laws for each of the three samples."""


def fits_of(events: Sequence[MachineEvent], n_nodes: int, end_s: float | None) -> Fits:
    from rebat.console.progress import counting_bar
    from rebat.models.failures.statistics import fits, samples

    fitted: Fits = []
    done = 0
    with counting_bar("laws fitted", N_FITS) as on_progress:

        def on_fit() -> None:
            nonlocal done
            done += 1
            on_progress(done)

        for sample in samples(events, n_nodes, None if end_s is None else to_us(end_s)):
            fitted.append((sample, fits(sample.times, on_fit)))
    return fitted


def fits_table(fitted: Fits) -> str:
    rows = []
    for sample, laws in fitted:
        name = f"{sample.name} ({_counts(sample)})"
        if not laws:
            rows.append([name, "too few to fit", "", "", "", ""])
        for rank, law in enumerate(laws):
            rows.append([name if rank == 0 else "", *_cells(law, best=rank == 0)])
    columns = ["times", "law", "scale", "shape", "mean", "AIC"]
    return Sheet("Fitted laws", "", columns, rows, words=2).text()


def _counts(sample: Sample) -> str:
    ended, going = len(sample.times.failed_s), len(sample.times.going_s)
    return f"{ended}" + (f", {going} censored" if going else "")


def _cells(law: Fitted, best: bool) -> list[str]:
    scale_s, shape = law.parameters
    return [
        f"{law.family}{' *' if best else ''}",
        format_duration(scale_s),
        "" if law.family == "exponential" else f"{shape:.4g}",
        format_duration(law.mean_s),
        f"{law.aic:.1f}",
    ]


def draw_fits(fitted: Fits, events: Sequence[MachineEvent], title: str, path: Path) -> None:
    import numpy as np

    from rebat.core.units import US_PER_S
    from rebat.figures.compare import FailurePanel, draw_failures
    from rebat.models.failures.statistics import empirical

    none = np.empty(0)
    panels = []
    for sample, laws in fitted:
        times_s, longer = empirical(sample.times) if len(sample.times.failed_s) else (none, none)
        curves = {law.family: law.survival(times_s) for law in laws}
        panels.append(FailurePanel(sample.name, times_s, longer, curves))
    dates_us = np.unique([event.at_us for event in events if not event.available])
    draw_failures(panels, dates_us / US_PER_S, title, path)
