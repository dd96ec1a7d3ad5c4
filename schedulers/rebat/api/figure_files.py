# SPDX-License-Identifier: Apache-2.0
"""The figures that are written to the folder of a result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from rebat.core.declared import extra
from rebat.core.errors import InputError, error_at, unknown_name
from rebat.results.measures.summary import parse_window

if TYPE_CHECKING:
    from rebat.figures.canvas import FileForms


def check_formats(text: str) -> None:
    """Raise InputError if a text is not a list of formats of figures."""
    from rebat.figures.canvas import formats_of

    try:
        formats_of(text)
    except InputError as error:
        hint = "without a list, --figures must be the last word or stand before another option"
        raise InputError(error.problem, expected=f"{error.expected}; {hint}") from None


Formats = Annotated[
    str | None,
    "--figures",
    extra(metavar="[FORMATS]", values="formats", check=check_formats),
]
"""Formats of figures, like ``pdf,svg``. A command adds a default and a help text."""

FigureWidth = Annotated[
    Annotated[float, msgspec.Meta(ge=1, le=20)] | None,
    "--figure-width",
    "With figures: width for a paper, with text of 8 points and PNG at 300 dpi. 1 and 2 are the "
    "columns of a two-column paper (3.5 and 7.16 inches), numbers from 2.5 are inches (default: a "
    "figure for the screen).",
    extra(metavar="1|2|INCHES"),
]


def file_forms(
    formats: str | None, width: float | None, where: str = "--figure-width"
) -> FileForms | None:
    """Return the files to draw from each figure, or None without formats.

    Raises
    ------
    InputError
        If a format is unknown, or the width is invalid or has no effect.
    """
    from rebat.figures.canvas import FileForms, formats_of
    from rebat.figures.paper import inches

    if formats is None:
        if width is not None:
            raise InputError("has no effect", where, "figures as well")
        return None
    return FileForms(formats_of(formats), None if width is None else inches(width, where))


class FigureFiles(msgspec.Struct, frozen=True):
    """Settings of the figures."""

    drawn: Annotated[
        Formats,
        extra(without_value="png"),
        "Also draw the figures flows, utilisation and gantt. If failures have causes or recoveries "
        "have stages, also draw flagship. With several seeds, draw only ratios, which compares the "
        "policies. FORMATS is a list like pdf,svg of png, svg, pdf and eps. Without a list, the "
        "format is png.",
    ] = None
    figure_width: FigureWidth = None
    gantt: Annotated[
        str | None,
        "With --figures: time window of the figure gantt as START:END, like 10d:12d (default: "
        "all).",
    ] = None
    flagship: Annotated[
        str | None,
        "With --figures: job of the figure flagship, a time line of attempts, recoveries and "
        "effective training time (default: the job that used the most node time).",
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
        file_forms(self.drawn, self.figure_width, "--figure-width" if dashes else "figure_width")
        for name in ("gantt", "flagship"):
            if getattr(self, name) is not None and not (self.drawn and single):
                raise InputError("has no effect", f"{dashes}{name}", expected)
        if self.gantt is not None:
            with error_at(f"{dashes}gantt"):
                parse_window(self.gantt)

    def check_job(self, jobs: Iterable[str]) -> None:
        """Raise InputError if these jobs do not include the job of the figure flagship."""
        if self.flagship is None:
            return
        names = frozenset(jobs)
        if self.flagship not in names:
            raise unknown_name("job", self.flagship, names).at("--flagship")

    def write(self, result: Any, folder: Path) -> None:
        """Draw the figures of a `Result` into a folder."""
        forms = file_forms(self.drawn, self.figure_width)
        if forms is None:
            return
        for name, plot in self._plots(result).items():
            for form in forms.formats:
                plot.save(folder / f"{name}.{form}", self.figure_width)

    def _plots(self, result: Any) -> dict[str, Any]:
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


def formats_in(figures: bool | str | Sequence[str]) -> str | None:
    """Return the argument ``figures`` of Python as text. True means png."""
    if isinstance(figures, str):
        return figures
    if isinstance(figures, Sequence):
        return ",".join(figures)
    return "png" if figures else None
