# SPDX-License-Identifier: Apache-2.0
"""What `rebat.run` gives: tables, comparisons, pictures, and the files of ``rebat run``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rebat.console.tables import Sheet
from rebat.core.errors import InputError, PolicyError, unknown_name
from rebat.core.files import write_text
from rebat.core.folders import atomic_folder
from rebat.library import frames, sheets
from rebat.library.checks import in_python
from rebat.library.page import page
from rebat.library.plots import Plot
from rebat.results.catalogue import USUAL, VERDICT
from rebat.results.catalogue import columns as columns_of
from rebat.results.measures.summary import as_json, parse_window
from rebat.results.metric import Name, flat_metrics
from rebat.results.seeds import MetricRow, Seeds, intervals_csv, rows, seeds_csv
from rebat.results.verdict import verdict
from rebat.runs.comparing import PolicyRuns, failure_lines, folder_of
from rebat.runs.single import RunResult, write_run
from rebat.session.ledger import Ledger

if TYPE_CHECKING:
    from pandas import DataFrame


class Result:
    """Policies on one workload, compared.

    Attributes
    ----------
    seeds : Seeds
        Every metric of every policy and seed.
    runs : list of RunResult
        Of one seed, what each policy gave; of many seeds none are kept.
    failed : dict of str
        Why policies failed, by their names. They are not in ``policies`` nor in any table but that
        of ``compare`` with columns; the results of the others are complete.
    provenance : dict
        The workload, with its hash, and all options.
    """

    def __init__(
        self, seeds: Seeds, provenance: Mapping[str, Any], done: PolicyRuns | None = None
    ) -> None:
        self.seeds, self.provenance, self._done = seeds, provenance, done or PolicyRuns()
        self.runs, self.failed = self._done.results, self._done.failures
        self._rows: list[MetricRow] = []

    @staticmethod
    def of_runs(done: PolicyRuns, seed: int, provenance: Mapping[str, Any]) -> Result:
        """One run a policy."""
        seeds = Seeds([run.policy for run in done.results])
        for run in done.results:
            seeds.add(seed, run.policy, flat_metrics(as_json(run.summary)))
        return Result(seeds, provenance, done)

    @staticmethod
    def of_seeds(seeds: Seeds, provenance: Mapping[str, Any]) -> Result:
        """Many seeds."""
        return Result(seeds, provenance)

    def run_of(self, policy: str) -> RunResult:
        """What one policy gave.

        Raises
        ------
        PolicyError
            For a policy that failed, with why.
        InputError
            For another one, and for many seeds, of which no runs are kept.
        """
        if policy in self.failed:
            raise PolicyError(failure_lines({policy: self.failed[policy]})[0])
        runs = {run.policy: run for run in self._single(f"the run of {policy}")}
        if policy not in runs:
            raise unknown_name("policy", policy, runs)
        return runs[policy]

    # ---- tables

    @property
    def policies(self) -> list[str]:
        """In the order in which they were given; ratios are to the first."""
        return self.seeds.policies

    @property
    def rows(self) -> list[MetricRow]:
        """Every metric of every policy, with intervals and ratios."""
        self._rows = self._rows or list(rows(self.seeds))
        return self._rows

    @property
    def jobs(self) -> DataFrame:
        """A row per policy and job: waiting time, flow, attempts, failures, waste (seconds)."""
        return frames.jobs(self._single("jobs"))

    @property
    def attempts(self) -> DataFrame:
        """A row per policy and attempt: when and where it ran, why it ended, what it kept."""
        return frames.attempts(self._single("attempts"))

    @property
    def nodes(self) -> DataFrame:
        """A row per policy and outage of a node: ``node``, ``down``, ``up`` (seconds)."""
        return frames.nodes(self._single("nodes"))

    @property
    def users(self) -> DataFrame:
        """A row per policy and user, where the workload tells whose jobs are: waiting times,
        slowdowns, how often its jobs were hit and were victims, what that cost it (seconds)."""
        return frames.owners(self._single("users"), "user")

    @property
    def queues(self) -> DataFrame:
        """The same by the queue that jobs were submitted to."""
        return frames.owners(self._single("queues"), "queue")

    @property
    def metrics(self) -> DataFrame:
        """A row per seed, policy, metric and size class of the jobs; docs/metrics.md says of
        each what it is."""
        return frames.metrics(self.seeds)

    def compare(self, *columns: str) -> DataFrame:
        """The policies compared.

        Parameters
        ----------
        *columns : str
            Metrics as in ``metrics``, a size class after a colon: ``"flow_max_s:all"``. With any,
            the table has a row per policy and their means as columns, empty for a policy that
            failed; without, a row per metric and policy: means and ratios to the first policy,
            with 95 % intervals over seeds.

        Raises
        ------
        InputError
            For a metric that there is not.
        """
        if not columns:
            return frames.compared(self.rows)
        with in_python():
            chosen = columns_of(columns, self.seeds.metrics)
        by = {(row.policy, row.metric): row.value.mean for row in self.rows}
        import pandas as pd

        names = [*self.policies, *self.failed]
        means = {
            text: [by.get((policy, name)) for policy in names]
            for text, name in zip(columns, chosen, strict=True)
        }
        return pd.DataFrame(means, index=pd.Index(names, name="policy"))

    @property
    def verdict(self) -> str:
        """A sentence per policy: how it changes the main metrics of the first one."""
        return verdict(self.rows, self.seeds)

    def sheet(self, columns: Sequence[str] = (), all_metrics: bool = False) -> Sheet:
        """Return the printed comparison.

        Parameters
        ----------
        columns : list of str
            Metrics as in `compare`; the table then has a row per policy.
        all_metrics : bool
            List every metric that is not 0, with all size classes, instead of the main ten.
        """
        sheet = self._sheet(columns_of(columns, self.seeds.metrics), all_metrics)
        failed = "".join(f"; failed: {line}" for line in failure_lines(self.failed))
        return msgspec.structs.replace(sheet, caption=sheet.caption + failed)

    def _sheet(self, chosen: Sequence[Name], all_metrics: bool) -> Sheet:
        many = len(self.policies) > sheets.MANY_POLICIES
        if chosen or (many and not all_metrics):
            return sheets.by_policy(self.rows, self.seeds, chosen or VERDICT)
        if self.runs:
            return sheets.by_metric({run.policy: run.summary for run in self.runs}, all_metrics)
        listed = self.seeds.metrics if all_metrics else USUAL
        return sheets.by_metric_of_seeds(self.rows, self.seeds, listed)

    def text(self, columns: Sequence[str] = (), all_metrics: bool = False) -> str:
        """Return the verdict, and under it the printed comparison, see `sheet`."""
        return f"{self.verdict}\n\n{self.sheet(columns, all_metrics).text()}"

    # ---- pictures

    def plot_flows(self) -> Plot:
        """Maximum and mean flow by job size, and their ratios to the first policy."""
        from rebat.figures.flows import flows_figure

        summaries = {run.policy: run.summary for run in self._single("flows by job size")}
        return Plot(flows_figure(summaries), "flow by job size")

    def plot_ratios(self) -> Plot:
        """Ratios to the first policy, of many seeds with their intervals.

        Raises
        ------
        InputError
            For one policy.
        """
        from rebat.figures.ratios import ratios_figure

        figure = ratios_figure(self.rows)
        if figure is None:
            raise InputError("there is one policy", "plot_ratios", "two or more to compare")
        return Plot(figure, "ratios to the first policy")

    def plot_gantt(self, window: str | None = None) -> Plot:
        """Who ran where and when, a panel per policy; of a large machine pixels are means.

        Parameters
        ----------
        window : str, optional
            What is shown, ``"10d:12d"`` (default: from 0 to the last end).

        Raises
        ------
        InputError
            For a window that is none.
        """
        from rebat.figures.runs import gantt_figure

        ledgers = self._ledgers("a Gantt chart")
        shown = None if window is None else parse_window(window)
        return Plot(gantt_figure(ledgers, self._n_nodes, shown), "who ran where and when")

    def plot_utilisation(self) -> Plot:
        """Nodes in use, attempts that wait, and nodes up and free, over time."""
        from rebat.figures.runs import timelines_of, utilisation_figure

        timelines = timelines_of(self._ledgers("utilisation"), self._n_nodes)
        return Plot(utilisation_figure(timelines), "nodes in use, the queue, and free nodes")

    def explore(self, path: str | Path | None = None, *policies: str) -> str:
        """A page on which the runs can be explored, as of ``rebat view``; written to ``path``.

        ``policies`` are those to show (default: the first two).
        """
        from rebat.figures.explore.page import MOST_TOGETHER, explorer_page
        from rebat.figures.runs import timelines_of

        self._single("the explorer")
        shown = policies or tuple(self.policies[:2])
        ledgers = {name: self.run_of(name).ledger for name in shown}
        if len(shown) > MOST_TOGETHER:
            raise InputError(f"{len(shown)} policies", "explore", f"{MOST_TOGETHER} at most")
        text = explorer_page(
            timelines_of(ledgers, self._n_nodes),
            f"rebat: {self.provenance['workload']['file']}",
        )
        if path is not None:
            write_text(Path(path), text)
        return text

    def _ledgers(self, what: str) -> dict[str, Ledger]:
        return {run.policy: run.ledger for run in self._single(what)}

    @property
    def _n_nodes(self) -> int:
        return self.runs[0].summary.n_nodes

    # ---- files

    def to_html(self, path: str | Path | None = None) -> str:
        """One page that needs no other file: the comparison, pictures, where it came from.

        Written to ``path`` where there is one.
        """
        title = f"{', '.join(self.policies)} on {self.provenance['workload']['file']}"
        plots = []
        if self.runs:
            plots = [self.plot_flows(), self.plot_utilisation(), self.plot_gantt()]
        elif len(self.policies) > 1:
            plots = [self.plot_ratios()]
        text = page(title, self.verdict, self.sheet(), plots, self.provenance)
        if path is not None:
            write_text(Path(path), text)
        return text

    def write(
        self,
        out: str | Path,
        *,
        figures: bool = False,
        force: bool = False,
        gantt: str | None = None,
    ) -> None:
        """Write what ``rebat run --out`` writes, byte for byte.

        Parameters
        ----------
        out : str or Path
            A new folder; with ``force`` an earlier result is replaced as a whole.
        figures : bool
            Draw them too.
        gantt : str, optional
            The window that gantt.png shows.

        Raises
        ------
        InputError
            When something stands there, or it cannot be written.
        """
        if gantt is not None and not (figures and self.runs):
            raise InputError("has no effect", "gantt", "figures=True, and one seed")
        with atomic_folder(Path(out), force) as folder:
            self.write_into(folder, figures, gantt)

    def write_into(self, folder: Path, figures: bool = False, gantt: str | None = None) -> None:
        """The same into a folder that is there."""
        for run, sources in zip(self.runs, self._done.sources, strict=True):
            own = {"own_code": msgspec.to_builtins(sources)} if sources else {}
            write_run(folder / folder_of(run.policy), run, own | dict(self.provenance))
        if not self.runs:
            write_text(folder / "seeds.csv", seeds_csv(self.seeds))
            known = {**self.provenance, "policies": self.policies, "seeds": self.seeds.seeds}
            text = msgspec.json.format(msgspec.json.encode(known), indent=2).decode()
            write_text(folder / "run.json", text + "\n")
        write_text(folder / "comparison.csv", intervals_csv(self.rows))
        if figures:
            self._draw(folder, gantt)

    def _draw(self, folder: Path, gantt: str | None) -> None:
        if self.runs:
            self.plot_flows().save(folder / "flows.png")
            self.plot_utilisation().save(folder / "utilisation.png")
            self.plot_gantt(gantt).save(folder / "gantt.png")
        elif len(self.policies) > 1:
            self.plot_ratios().save(folder / "ratios.png")

    def _single(self, what: str) -> list[RunResult]:
        """The runs, which only a result of one seed has."""
        if not self.runs:
            expected = f"run(..., failures=failures(..., seed={self.seeds.seeds[0]})) without seeds"
            raise InputError("runs of many seeds keep their metrics only", what, expected)
        return self.runs

    # ---- notebooks

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.verdict)}</p>{self.sheet().html()}"
