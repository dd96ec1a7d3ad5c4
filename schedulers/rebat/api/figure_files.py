# SPDX-License-Identifier: Apache-2.0
"""The figures that are written to the folder of a result."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

from rebat.api.checks import error_at
from rebat.core.declared import extra
from rebat.core.errors import InputError, unknown_name
from rebat.results.measures.summary import parse_window

if TYPE_CHECKING:
    from rebat.api.result import Plot, Result


class FigureFiles(msgspec.Struct, frozen=True):
    """Settings of the figures."""

    drawn: Annotated[
        bool,
        "--figures",
        "Also draw flows.png, utilisation.png and gantt.png. If failures have causes or recoveries "
        "have stages, also draw flagship.png. With several seeds, draw only ratios.png, which "
        "compares the policies.",
    ] = False
    gantt: Annotated[
        str | None,
        "With --figures: time window of gantt.png as START:END, like 10d:12d (default: all).",
    ] = None
    flagship: Annotated[
        str | None,
        "With --figures: job of flagship.png, a time line of attempts, recoveries and effective "
        "training time (default: the job that used the most node time).",
        extra(metavar="JOB"),
    ] = None

    def check(self, single: bool, dashes: str, expected: str) -> None:
        """Check the settings before the simulation.

        Parameters
        ----------
        single : bool
            Whether the result is of a single seed.
        dashes : str
            Text before the name of a setting in errors: ``--`` on the command line.
        expected : str
            The kind of result that the settings need, for error messages.
        """
        for name in ("gantt", "flagship"):
            if getattr(self, name) is not None and not (self.drawn and single):
                raise InputError("has no effect", f"{dashes}{name}", expected)
        if self.gantt is not None:
            with error_at(f"{dashes}gantt"):
                parse_window(self.gantt)

    def check_job(self, jobs: Iterable[str]) -> None:
        """Raise InputError if these jobs do not include the job of flagship.png."""
        if self.flagship is None:
            return
        names = frozenset(jobs)
        if self.flagship not in names:
            raise unknown_name("job", self.flagship, names).at("--flagship")

    def write(self, result: Result, folder: Path) -> None:
        """Draw the figures of a result into a folder."""
        if self.drawn:
            for name, plot in self._plots(result).items():
                plot.save(folder / f"{name}.png")

    def _plots(self, result: Result) -> dict[str, Plot]:
        if not result.runs:
            return {"ratios": result.plot_ratios()} if len(result.policies) > 1 else {}
        plots = {
            "flows": result.plot_flows(),
            "utilisation": result.plot_utilisation(),
            "gantt": result.plot_gantt(self.gantt),
        }
        if self.flagship is not None or any(run.summary.recoveries for run in result.runs):
            plots["flagship"] = result.plot_flagship(self.flagship)
        return plots


NO_FIGURES = FigureFiles()
