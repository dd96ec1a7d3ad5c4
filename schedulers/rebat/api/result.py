# SPDX-License-Identifier: Apache-2.0
"""The result of `rebat.run`: tables, comparisons, figures, files, and a page without scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rebat.api import frames, sheets
from rebat.api.figure_files import NO_FIGURES, FigureFiles, formats_in
from rebat.api.provenance import NO_ORIGIN, Origin, provenance_record, write_provenance
from rebat.core.errors import InputError, PolicyError, unknown_name
from rebat.core.files import write_text
from rebat.core.folders import atomic_folder
from rebat.core.formatting import check_form
from rebat.report.publish import paper_table
from rebat.report.table import Table
from rebat.results.catalogue import VERDICT
from rebat.results.catalogue import columns as columns_of
from rebat.results.comparison import MetricRow, Runs, intervals_csv, rows, verdict, write_seeds
from rebat.results.files.tables import check_format
from rebat.results.measures.summary import as_json, parse_window
from rebat.results.metric import flat_metrics
from rebat.runs.case import PYTHON
from rebat.runs.single import PolicyRuns, RunResult, failure_lines, folders_of, write_run
from rebat.state.ledger import Ledger

if TYPE_CHECKING:
    from pandas import DataFrame
from base64 import b64encode

from rebat.core.formatting import PAGE_STYLE
from rebat.figures.canvas import content_of, save
from rebat.figures.paper import inches
from rebat.workloads.machine import names_in


class Result:
    """A comparison of policies on a workload.

    Attributes
    ----------
    seeds : Runs[str]
        All metrics of all policies and seeds.
    runs : list of RunResult
        The run of each policy if there is a single seed. With several seeds, the list is empty.
    failed : dict of str
        Error message of each failed policy. Only ``compare(*columns)`` shows failed policies.
    facts : dict
        The workload with its hash, and all options, as in summary.json.
    """

    def __init__(
        self,
        seeds: Runs[str],
        facts: Mapping[str, Any],
        done: PolicyRuns | None = None,
        origin: Origin = NO_ORIGIN,
    ) -> None:
        self.seeds, self.facts, self._done = seeds, facts, done or PolicyRuns()
        self._origin = origin
        self.runs, self.failed = self._done.results, self._done.failures
        self._rows: list[MetricRow] = []

    @staticmethod
    def of_runs(
        done: PolicyRuns, seed: int, facts: Mapping[str, Any], origin: Origin = NO_ORIGIN
    ) -> Result:
        """Create the result of one run per policy."""
        seeds = Runs([run.policy for run in done.results])
        for run in done.results:
            seeds.add(seed, run.policy, flat_metrics(as_json(run.summary)))
        return Result(seeds, facts, done, origin)

    @staticmethod
    def of_seeds(seeds: Runs[str], facts: Mapping[str, Any], origin: Origin) -> Result:
        """Create the result of several seeds."""
        return Result(seeds, facts, origin=origin)

    def run_of(self, policy: str) -> RunResult:
        """Return the run of a policy.

        Raises
        ------
        PolicyError
            If the policy failed. The error contains the reason.
        InputError
            If the policy is unknown, or the result has several seeds.
        """
        if policy in self.failed:
            raise PolicyError(failure_lines({policy: self.failed[policy]})[0])
        runs = {run.policy: run for run in self._single(f"the run of {policy}")}
        if policy not in runs:
            raise unknown_name("policy", policy, runs)
        return runs[policy]

    @property
    def provenance(self) -> dict[str, Any]:
        """The content of provenance.json: command (empty for a script), versions, inputs with
        hashes, policies, seeds, and the workload with all options."""
        policies = [*self.policies, *self.failed]
        return provenance_record(self._origin, policies, self.seeds.seeds, self.facts)

    # ---- tables

    @property
    def policies(self) -> list[str]:
        """The policies in the order of the call. Ratios are relative to the first policy."""
        return self.seeds.policies

    @property
    def rows(self) -> list[MetricRow]:
        """All metrics of all policies, with intervals and ratios."""
        self._rows = self._rows or list(rows(self.seeds))
        return self._rows

    @property
    def jobs(self) -> DataFrame:
        """A row per policy and job: waiting time, flow, attempts, failures, waste (seconds)."""
        return frames.jobs(self._single("jobs"))

    @property
    def attempts(self) -> DataFrame:
        """A row per policy and attempt: times, nodes, cause of the end and saved work."""
        return frames.attempts(self._single("attempts"))

    @property
    def nodes(self) -> DataFrame:
        """A row per policy and node outage: ``node``, ``down``, ``up`` (seconds)."""
        return frames.nodes(self._single("nodes"))

    @property
    def users(self) -> DataFrame:
        """A row per policy and user, if the workload has users: waiting times (s), slowdowns,
        interruptions by failures and by stealing, and lost time (s)."""
        return frames.owners(self._single("users"), "user")

    @property
    def queues(self) -> DataFrame:
        """A row per policy and submission queue, with the columns of `users`."""
        return frames.owners(self._single("queues"), "queue")

    @property
    def metrics(self) -> DataFrame:
        """A row per seed, policy, metric and size class. docs/metrics.md defines the metrics."""
        return frames.metrics(self.seeds)

    def compare(self, *columns: str) -> DataFrame:
        """Return a table that compares the policies.

        Parameters
        ----------
        *columns : str
            Names as in ``metrics``, with a size class after a colon: ``"flow_max_s:all"``. If there
            are columns, the table has a row of means per policy (empty if the policy failed).
            Otherwise, it has a row per metric and policy. The rows contain means and ratios to the
            first policy, with 95 % intervals over seeds.

        Raises
        ------
        InputError
            If a metric is unknown.
        """
        if not columns:
            return frames.compared(self.rows)
        with PYTHON.errors():
            chosen = columns_of(columns, self.seeds.metrics)
        return frames.means(self.rows, [*self.policies, *self.failed], columns, chosen)

    @property
    def verdict(self) -> str:
        """A sentence per policy that states how its main metrics differ from the first policy's."""
        return verdict(self.rows, self.seeds)

    @property
    def _sentences(self) -> str:
        """The verdict, and a line for each policy that failed."""
        return "\n".join([self.verdict, *map("failed: {}".format, failure_lines(self.failed))])

    def sheet(self, columns: Sequence[str] = (), all_metrics: bool = False) -> Table:
        """Return the comparison as a table.

        Parameters
        ----------
        columns : list of str
            Metrics as in `compare`. If there are any, the table has a row per policy.
        all_metrics : bool
            Whether to list all metrics that are not 0, not only the ten main metrics.
        """
        sheets.check_table(columns, all_metrics)
        chosen = columns_of(columns, self.seeds.metrics)
        summaries = {run.policy: run.summary for run in self.runs}
        return sheets.sheet_of(self.rows, self.seeds, summaries, chosen, all_metrics)

    def text(self, columns: Sequence[str] = (), all_metrics: bool = False) -> str:
        """Return the verdict and the comparison as text, see `sheet`."""
        return f"{self._sentences}\n\n{self.sheet(columns, all_metrics).text()}"

    def table(self, form: str = "latex", columns: Sequence[str] = ()) -> str:
        """Return the comparison as a table for a paper, with a row per policy.

        Parameters
        ----------
        form : {"latex", "md", "csv"}
            LaTeX for the package booktabs, Markdown, or CSV with the numbers of comparison.csv.
        columns : list of str
            Metrics as in `compare` (default: useful utilisation, mean flow and largest flow).

        Raises
        ------
        InputError
            If the format or a metric is unknown.
        """
        chosen = check_form(form, "form")
        with PYTHON.errors():
            names = columns_of(columns, self.seeds.metrics) or VERDICT
        return paper_table(chosen, self.rows, self.seeds, names, list(self.failed))

    # ---- figures

    def plot_flows(self) -> Plot:
        """Plot maximum and mean flow by job size, and the ratios to the first policy."""
        from rebat.figures.runs import flows_figure

        summaries = {run.policy: run.summary for run in self._single("flows by job size")}
        return Plot(flows_figure(summaries), "flow by job size")

    def plot_ratios(self) -> Plot:
        """Plot ratios to the first policy, with intervals if there are several seeds.

        Raises
        ------
        InputError
            If the result has a single policy.
        """
        from rebat.figures.charts import ratios_figure

        figure = ratios_figure(self.rows)
        if figure is None:
            raise InputError("has a single policy", "plot_ratios", "two or more policies")
        return Plot(figure, "ratios to the first policy")

    def plot_gantt(self, window: str | None = None) -> Plot:
        """Plot jobs on nodes over time, in a panel per policy. A pixel may average several nodes.

        Parameters
        ----------
        window : str, optional
            Time window, ``"10d:12d"`` (default: from 0 to the end of the last job).

        Raises
        ------
        InputError
            If the window is invalid.
        """
        from rebat.figures.runs import gantt_figure

        ledgers = self._ledgers("a Gantt chart")
        shown = None if window is None else parse_window(window)
        return Plot(gantt_figure(ledgers, self._n_nodes, shown), "jobs on nodes over time")

    def plot_flagship(self, job: str | None = None) -> Plot:
        """Plot a job over time: attempts, stages of recoveries, lost work, nodes and ETTR.

        ``job`` is its id (default: the job with the most node time under the first policy).
        """
        from rebat.figures.flagship import flagship_figure
        from rebat.results.measures.recoveries import largest_job

        ledgers = self._ledgers("the history of a job")
        chosen = largest_job(next(iter(ledgers.values()))) if job is None else job
        return Plot(flagship_figure(ledgers, chosen), f"history of job {chosen}")

    def plot_utilisation(self) -> Plot:
        """Plot nodes in use, waiting attempts and free nodes over time."""
        from rebat.figures.runs import timelines_of, utilisation_figure

        timelines = timelines_of(self._ledgers("utilisation"), self._n_nodes)
        return Plot(utilisation_figure(timelines), "nodes in use, the queue, and free nodes")

    def explore(self, path: str | Path | None = None, *policies: str) -> Page:
        """Return the page of ``rebat view`` (default: two policies) and write it to ``path``."""
        self._single("the explorer")
        ledgers = {name: self.run_of(name).ledger for name in policies or self.policies[:2]}
        text = explorer(ledgers, self._n_nodes, self.facts["workload"])
        if path is not None:
            write_text(Path(path), text)
        return text

    def _ledgers(self, label: str) -> dict[str, Ledger]:
        return {run.policy: run.ledger for run in self._single(label)}

    @property
    def _n_nodes(self) -> int:
        return self.runs[0].summary.n_nodes

    # ---- files

    def to_html(self, path: str | Path | None = None) -> Page:
        """Return a self-contained page with comparison, figures and provenance, and write it to
        ``path`` if set. Notebooks display the page."""
        title = f"{', '.join(self.policies)} on {self.facts['workload']['file']}"
        plots = []
        if self.runs:
            plots = [self.plot_flows(), self.plot_utilisation(), self.plot_gantt()]
        elif len(self.policies) > 1:
            plots = [self.plot_ratios()]
        text = page(title, self._sentences, self.sheet(), plots, self.facts)
        if path is not None:
            write_text(Path(path), text)
        return text

    def write(
        self,
        out: str | Path,
        *,
        figures: bool | str | Sequence[str] = False,
        figure_width: float | None = None,
        force: bool = False,
        gantt: str | None = None,
        flagship: str | None = None,
        format: str = "csv",
    ) -> None:
        """Write the same files as ``rebat run --out``.

        Parameters
        ----------
        out : str or Path
            A new folder. With ``force``, an earlier result in the folder is replaced.
        figures : bool, str or sequence of str
            Formats in which to draw the figures, like ``"pdf,svg"``. True means ``"png"``.
        figure_width : float, optional
            Width of the figures for a paper, see `Plot.save`.
        gantt, flagship : str, optional
            Time window of the figure gantt, and id of the job of the figure flagship.
        format : {"csv", "parquet"}
            Format of the tables of jobs and attempts.

        Raises
        ------
        InputError
            If the folder exists or cannot be written.
        """
        chosen = FigureFiles(formats_in(figures), figure_width, gantt, flagship)
        chosen.check(bool(self.runs), "", "figures=True, and a single seed")
        check_format(format, "format")
        with atomic_folder(Path(out), force) as folder:
            self.write_into(folder, chosen, format)

    def write_into(
        self, folder: Path, figures: FigureFiles = NO_FIGURES, form: str = "csv"
    ) -> None:
        """Write the files to an existing folder. ``form`` is the format of the large tables."""
        names = folders_of([run.policy for run in self.runs])
        for name, run, sources in zip(names, self.runs, self._done.sources, strict=True):
            own = {"own_code": msgspec.to_builtins(sources)} if sources else {}
            write_run(folder / name, run, own | dict(self.facts), form)
        if not self.runs:
            write_seeds(folder, self.seeds, {**self.facts, "policies": self.policies})
        write_text(folder / "comparison.csv", intervals_csv(self.rows))
        write_provenance(folder, self.provenance)
        figures.write(self, folder)

    def _single(self, label: str) -> list[RunResult]:
        """Return the runs. Raise InputError if the result has several seeds."""
        if not self.runs:
            expected = f"run(..., failures=failures(..., seed={self.seeds.seeds[0]})) without seeds"
            problem = "not available: a result of several seeds has only metrics"
            raise InputError(problem, label, expected)
        return self.runs

    # ---- notebooks

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return f"<p>{escape(self._sentences)}</p>{self.sheet().html()}"


_STYLE = f"""{PAGE_STYLE}
h1 {{ font-size: 1.4rem }} h2 {{ font-size: 1.15rem }} img {{ max-width: 100%; height: auto }}
caption {{ text-align: left; font-weight: 600; padding: .3rem 0 }}
td, th {{ padding: .15rem .6rem; border-bottom: 1px solid #ddd; text-align: left }}
pre {{ background: #f6f6f6; padding: .8rem; overflow-x: auto }}"""


class Page(str):
    """A self-contained HTML page as text, which notebooks display."""

    __slots__ = ()
    HEIGHT = 640
    """Height in a notebook, in pixels."""

    def _repr_html_(self) -> str:
        style = f"width: 100%; height: {self.HEIGHT}px; border: 1px solid #ddd"
        return f'<iframe srcdoc="{escape(self)}" style="{style}"></iframe>'

    def __repr__(self) -> str:
        return f"<page of {len(self)} characters>"


def page(
    title: str, verdict: str, sheet: Table, plots: Sequence[Plot], provenance: Mapping[str, Any]
) -> Page:
    """Return a page with the verdict, figures, comparison and provenance."""
    pictures = "\n".join(f"<p>{plot.html()}</p>" for plot in plots)
    sentences = "\n".join(f"<p>{escape(line)}</p>" for line in verdict.splitlines())
    record = msgspec.json.format(msgspec.json.encode(provenance), indent=2).decode()
    return Page(f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,"><title>{escape(title)} - rebat</title><style>
{_STYLE}
</style></head><body>
<h1>{escape(title)}</h1>
{sentences}
{pictures}
<div class="wide">{sheet.html()}</div>
<h2>Provenance</h2>
<pre>{escape(record)}</pre>
</body></html>
""")


def explorer(ledgers: Mapping[str, Ledger], n_nodes: int, source: Mapping[str, Any]) -> Page:
    """Return the page of ``rebat view`` for several runs. ``source`` describes their workload."""
    from rebat.figures.explore.page import MOST_TOGETHER, explorer_page
    from rebat.figures.runs import timelines_of

    if len(ledgers) > MOST_TOGETHER:
        raise InputError(f"names {len(ledgers)} policies", "explore", f"at most {MOST_TOGETHER}")
    timelines, names = timelines_of(ledgers, n_nodes), names_in(source.get("nodes"))
    return Page(explorer_page(timelines, f"rebat: {source['file']}", node_names=names))


PHONE_PX = 600
"""Width of a screen on which a page shows figures as narrow as a column of a paper."""


class Plot:
    """A figure that notebooks display.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The figure, which can be changed with the methods of matplotlib.
    about : str
        Description of the figure, used as alternative text.
    """

    def __init__(self, figure: Any, about: str) -> None:
        self.figure, self.about = figure, about

    def save(self, path: str | Path, width: float | None = None) -> None:
        """Write the figure. The suffix of the file name sets the format.

        Parameters
        ----------
        path : str or Path
            File to write.
        width : float, optional
            Width for a paper, with text of 8 points: 1 or 2 columns of a two-column paper (3.5 or
            7.16 inches), or another number of inches. By default, the figure has the size for the
            screen. ``figure`` itself does not change.

        Raises
        ------
        InputError
            If the suffix is not .png, .svg, .pdf or .eps, or the width is invalid.
        """
        save(self.figure, Path(path), None if width is None else inches(width, "width"))

    def html(self) -> str:
        """Return an HTML image element with the figure, and with a narrow version for phones."""
        wide, narrow = (
            f"data:image/png;base64,{b64encode(content_of(self.figure, width=width)).decode()}"
            for width in (None, inches(1, "width"))
        )
        return (
            f'<picture><source media="(max-width: {PHONE_PX}px)" srcset="{narrow}">'
            f'<img alt="{self.about}" src="{wide}"></picture>'
        )

    def _repr_png_(self) -> bytes:
        return content_of(self.figure)

    def __repr__(self) -> str:
        return f"<plot: {self.about}>"
