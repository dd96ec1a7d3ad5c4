# SPDX-License-Identifier: Apache-2.0
"""``rebat.sweep``: simulate policies with several values of parameters."""

from __future__ import annotations

import itertools
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from rebat.api.cases import FailuresOf, given_in, policies_of, site_in, with_failures_of
from rebat.api.result import Plot
from rebat.api.signatures import keyword, lists
from rebat.api.workloads import LoadedWorkload, as_file, load_workload
from rebat.campaign.grid import check_names
from rebat.campaign.opening import Campaign
from rebat.campaign.run import run_campaign
from rebat.campaign.store import TABLE, Owner, Store
from rebat.campaign.tables import failures as failed_units
from rebat.console.progress import campaign_bar
from rebat.core.errors import InputError, PolicyError, short, unknown_name
from rebat.core.jobs import Workload
from rebat.core.numbers import exact, spread
from rebat.report.runs_index import (
    RunIndex,
    SweptRuns,
    lines_of,
    options_of,
    simulations,
    sweeps,
    without,
)
from rebat.results.catalogue import VERDICT
from rebat.results.catalogue import metric as row_of
from rebat.results.comparison import Runs, Winner, change_text, winner
from rebat.results.intervals import Interval
from rebat.results.metric import Name
from rebat.runs.case import PYTHON, Case, Door, case_of, described, numbers_in, one_value
from rebat.runs.labels import ScenarioLabel, scenario_of
from rebat.runs.scenario import OPTIONS
from rebat.runs.simulating import units
from rebat.runs.unit import Source

if TYPE_CHECKING:
    from pandas import DataFrame

FILE = Path("sweep.toml")
"""File in the identity of a sweep's results. It does not exist."""

FORMS = ("png", "svg", "pdf")
"""Formats of the pictures of a sweep."""


class SweepResult:
    """The result of `sweep`.

    Attributes
    ----------
    axes : list of str
        The parameters with several values.
    policies : list of str
        The policies. A policy with swept options appears once for each of their values.
    """

    def __init__(self, table: Path, numbers: Mapping[ScenarioLabel, Mapping[str, float]]) -> None:
        self._runs = RunIndex(list(simulations(table, str)))
        self._numbers = numbers
        self._sweeps = list(sweeps(self._runs, 2, lambda scenario: numbers[scenario]))
        self.axes = list(dict.fromkeys(item.axis for item in self._sweeps))
        self.policies = list(
            dict.fromkeys(name for item in self._runs.settings for name in self._runs.cases(item))
        )

    @property
    def frame(self) -> DataFrame:
        """A row per run, metric and size class, with a column per swept parameter.

        Columns: ``policy``, the parameters (times in seconds), ``seed``, ``metric``,
        ``size_class`` (empty if the metric has none), ``value``.
        """
        import pandas as pd

        rows = [
            (case, *self._values(setting, case), seed[1], metric, of, value)
            for setting, case, metric, of, seed, value in self._runs.rows()
        ]
        columns = ["policy", *self.axes, "seed", "metric", "size_class", "value"]
        return pd.DataFrame(rows, columns=columns)

    def means(self, metric: str, over: str | None = None) -> DataFrame:
        """Return the mean of a metric, with its interval, for each policy and parameter value.

        Parameters
        ----------
        metric : str
            Name of the metric as in ``frame``, with a size class after a colon: ``"flow_max_s:[1,
            128)"``.
        over : str, optional
            The parameter (default: the first of ``axes``).

        Returns
        -------
        DataFrame
            Columns: ``setting`` (the other parameters), ``policy``, the parameter, ``mean``,
            ``low`` and ``high`` (NaN with fewer than five seeds), ``n``.
        """
        import pandas as pd

        name, of = _metric(metric)
        rows = [
            (item.fixed_text, policy, value, mean.mean, mean.low, mean.high, mean.n)
            for item in self._over(over)
            for policy, line in lines_of(self._runs, item, name, of).items()
            for value, mean in line
        ]
        columns = ["setting", "policy", over or self.axes[0], "mean", "low", "high", "n"]
        table = pd.DataFrame(rows, columns=columns)
        return table.astype({"low": float, "high": float})

    def plot(self, *metrics: str, over: str | None = None) -> Plot:
        """Plot metrics over a parameter, with a line per policy and bands for 95 % intervals.

        Parameters
        ----------
        *metrics : str
            Names as in ``means`` (default: useful utilisation, mean flow, largest flow).
        over : str, optional
            The parameter (default: the first of ``axes``). Each combination of the other parameters
            has separate panels.
        """
        from rebat.figures.charts import Panel, lines_figure

        chosen = [_metric(text) for text in metrics] or [(name, None) for name, _ in VERDICT]
        items = self._over(over)
        panels = [
            Panel(name, lines_of(self._runs, item, name, of), item.fixed_text if items[1:] else "")
            for item in items
            for name, of in chosen
        ]
        drawn = [panel for panel in panels if panel.lines]
        if not drawn:
            raise InputError(
                "no policy has a value of this metric", ", ".join(name for name, _ in chosen)
            )
        figure = lines_figure(drawn, items[0].title, items[0].is_time)
        return Plot(figure, f"metrics over {items[0].title}")

    def winners(self, metric: str | None = None, over: Sequence[str] = ()) -> DataFrame:
        """Return the best policy for each pair of values of two parameters.

        Parameters
        ----------
        metric : str, optional
            Name as in ``means`` (default: useful utilisation).
        over : sequence of str
            The two parameters (default: the first two of ``axes``).

        Returns
        -------
        DataFrame
            Columns: the two parameters, ``winner``, ``second`` (the second best policy), ``lead``
            (improvement of the winner over the second, as a share), ``low`` and ``high`` (its
            interval, NaN with fewer than five seeds), ``decided`` (whether the interval excludes
            0 and both policies had comparable work), ``n`` (number of seeds).
        """
        import pandas as pd

        x, y = self._pair(over)
        rows = [
            (*at, best.policy, best.second, lead.mean, lead.low, lead.high, best.decided, lead.n)
            for at, best in self._cells(self._metric(metric), x, y).items()
            for lead in [best.lead]
        ]
        names = [x, y, "winner", "second", "lead", "low", "high", "decided", "n"]
        return pd.DataFrame(rows, columns=names).astype({"low": float, "high": float})

    def map(self, metric: str | None = None, over: Sequence[str] = ()) -> Plot:
        """Plot ``winners``: the colour is the best policy, the opacity its lead.

        Cells that are not decided are hatched. The numbers are leads in per cent
        (omitted in maps with more than 160 cells).
        """
        from rebat.figures.winner_map import Axis, winner_map

        x, y = self._pair(over)
        name = self._metric(metric)
        cells = self._cells(name, x, y)
        across, up = (
            Axis.of(item.title, sorted({at[place] for at in cells}), item.is_time)
            for place, item in enumerate(self._over(axis)[0] for axis in (x, y))
        )
        title = f"best policy by {row_of(name[0]).title.strip()}, lead over the second in %"
        policies = self._compared(x, y)
        return Plot(winner_map(cells, across, up, policies, title), f"{title}, over {x} and {y}")

    @property
    def maps(self) -> bool:
        """Whether `map` has something to compare: two parameters and several policies."""
        return len(self.axes) == 2 and len(self._compared(*self.axes)) > 1

    def _compared(self, x: str, y: str) -> list[str]:
        """Return the policies without the two parameters."""
        return list(dict.fromkeys(without(without(p, x), y) for p in self.policies))

    def verdict(self, metric: str | None = None) -> str:
        """Return sentences: in how many combinations each policy is decided to be best.

        The last sentence is the largest decided lead. With one parameter or one policy: for each
        policy, the best value of the parameter.
        """
        name = self._metric(metric)
        if not self.maps:
            return "\n".join(self._best_values(name))
        x, y = self._pair(())
        cells = self._cells(name, x, y)
        if not cells:
            return f"no combination has two policies with a value of {name[0]}"
        decided = {at: best for at, best in cells.items() if best.decided}
        counts = Counter(best.policy for best in decided.values()).most_common()
        parts = [f"{policy} is best in {n} of {len(cells)} combinations" for policy, n in counts]
        parts.append(f"{len(cells) - len(decided)} are not decided")
        text = f"by {row_of(name[0]).title.strip()}: {', '.join(parts)}"
        if decided:
            at = max(decided, key=lambda cell: decided[cell].lead.mean)
            lead = change_text(decided[at].lead.minus(-1.0))
            where = ", ".join(self._at(axis, value) for axis, value in zip((x, y), at, strict=True))
            text += f"\nlargest lead: {decided[at].policy}, {lead}, at {where}"
        return text

    def _best_values(self, name: Name) -> Iterator[str]:
        """Yield for each policy the value of the first parameter with the best mean."""
        about = row_of(name[0])
        best = min if about.better == "low" else max
        every: dict[str, list[tuple[Interval, str]]] = {}
        for item in self._over(None):
            fixed = item.fixed_text if self.axes[1:] else ""
            for policy, line in lines_of(self._runs, item, *name).items():
                for value, mean in line:
                    where = ", ".join(filter(None, [self._at(self.axes[0], value), fixed]))
                    every.setdefault(policy, []).append((mean, where))
        for policy, means in every.items():
            mean, where = best(means, key=lambda pair: pair[0].mean)
            shown = spread(mean, about.form)
            yield f"{policy}: the best {about.title.strip()} is {shown}, at {where}"

    def _at(self, axis: str, value: float) -> str:
        """Return a value of a parameter as text."""
        return f"{axis} {exact(value) if self._over(axis)[0].is_time else f'{value:g}'}"

    def _metric(self, text: str | None) -> Name:
        """Return a metric by its name. If it is measured by size class, the default is all jobs."""
        name, of = _metric(text or VERDICT[0][0])
        return name, of or ("all" if row_of(name).by_class else None)

    def _pair(self, over: Sequence[str]) -> tuple[str, str]:
        chosen = tuple(over or self.axes[:2])
        if len({*chosen}) != 2:
            raise InputError(f"is {short(list(over or self.axes))}", "over", "two parameters")
        for name in chosen:
            self._over(name)
        for name in self.axes:
            if name not in chosen:
                raise InputError(f"{name} has several values", "over", "a sweep of two parameters")
        return chosen[0], chosen[1]

    def _cells(self, name: Name, x: str, y: str) -> dict[tuple[Any, Any], Winner]:
        """Return the winners for all pairs of values. Omit pairs without two policies."""
        if not row_of(name[0]).better:
            raise InputError("no value is better than another", name[0], VERDICT[0][0])
        at = {
            (setting, case): {**self._numbers[setting.scenario], **options_of(case)}
            for setting in self._runs.settings
            for case in self._runs.cases(setting)
        }
        every = {axis: {of[axis] for of in at.values() if axis in of} for axis in (x, y)}
        cells: dict[tuple[Any, Any], Runs[str]] = {}
        for (setting, case), of in at.items():
            values = [{of[name]} if name in of else every[name] for name in (x, y)]
            for cell in itertools.product(values[0], values[1]):
                runs = cells.setdefault(cell, Runs())
                runs.take(without(without(case, x), y), self._runs.runs(setting), case)
        best = {cell: winner(runs, name) for cell, runs in sorted(cells.items())}
        return {cell: of for cell, of in best.items() if of is not None}

    def _over(self, over: str | None) -> list[SweptRuns]:
        if over is not None and over not in self.axes:
            raise unknown_name("swept parameter", over, self.axes)
        return [item for item in self._sweeps if item.axis == (over or self.axes[0])]

    def _values(self, setting: Any, policy: str) -> list[Any]:
        values = {**self._numbers[setting.scenario], **options_of(policy)}
        return [values.get(axis) for axis in self.axes]

    def __repr__(self) -> str:
        return f"<sweep of {', '.join(self.policies)} over {', '.join(self.axes)}>"

    def _repr_html_(self) -> str:
        return "".join(f"<p>{self.plot(over=axis).html()}</p>" for axis in self.axes)


@lists([keyword(name, option.default) for name, option in OPTIONS.items()], others=True)
def sweep(
    workload: Workload | str | Path,
    policies: str | Sequence[str] = (),
    *,
    failures: FailuresOf = None,
    seeds: int | None = None,
    workers: int | None = None,
    out: str | Path | None = None,
    **parameters: Any,
) -> SweepResult:
    """Simulate policies for all combinations of parameters, each with the same seeds.

    Parameters
    ----------
    workload : Workload, str or Path
        A workload, or an argument of `load_workload`. A site (``site.toml``) also states the policy
        and the failures, if they are not given.
    policies : str or sequence of str
        Names of policies. ``{name}`` in a policy is replaced by each value of the parameter
        ``name``.
    failures : Failures, str or Path, optional
        How nodes fail, from `failures`, or an event file.
    seeds : int, optional
        Number of seeds of the failures (default: 10, or 1 if nothing is random). All policies have
        the same failures.
    workers : int, optional
        Number of workers (default: one per core).
    out : str or Path, optional
        Folder of the results. If a sweep is interrupted, the same call continues it.
    **parameters
        Values, or lists of values: the options of ``rebat run``, the parameters of ``law`` and the
        names in braces in policies. ``law`` is the name of a law (``"weibull"``) or a complete law
        (``"weibull:scale=5800h,shape=8"``).

    Raises
    ------
    InputError
        If a parameter is unknown or invalid.
    PolicyError
        If a run fails. The message contains the reason.

    Examples
    --------
    >>> result = sweep("toy", ["baseline", "sfsj"], mtbf=["30s", "1min"], downtime="5s", seeds=2)
    >>> result.axes
    ['mtbf']
    >>> result.means("flow_max_s").shape
    (4, 7)
    """
    named = [policies] if isinstance(policies, str) else list(policies)
    with PYTHON.errors(), tempfile.TemporaryDirectory() as temporary:
        case = sweep_case(workload, named, given_in(failures, parameters), PYTHON, seeds)
        source = _read(workload, Path(temporary)).origin
        folder = Path(temporary) / "results" if out is None else Path(out)
        return swept_case(case, source, folder, workers)


SEEDS = 10
"""Default number of seeds of a sweep."""


def sweep_case(
    workload: Workload | str | Path,
    policies: Sequence[str],
    given: Mapping[str, Any],
    door: Door,
    seeds: int | None,
) -> Case:
    """Return the case of a sweep. At least one name has several values, which are numbers.

    A site states the policy and the failures that are not given.
    """
    site = site_in(workload)
    policies, given = policies_of(site, policies), with_failures_of(site, given, True)
    if seeds is not None:
        door = replace(door, places={**door.places, "seeds": door.place("seeds")})
    first = one_value("seed", given.get("seed", 0), door)
    seed = range(first, first + (SEEDS if seeds is None else seeds))
    case = case_of({**given, "seed": seed}, policies, door, folder=Path(), grid="sweep")
    axes = {name: of for name, of in case.values.items() if len(of) > 1 and name != "seed"}
    for name, values in axes.items():
        if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
            expected = "numbers or durations; a campaign compares texts"
            raise InputError(f"is {short(list(values))}", door.place(name), expected)
    if not axes:
        raise InputError("no parameter has several values", expected="mtbf=['1h', '3h'], ...")
    return case


def swept_case(case: Case, source: Source, folder: Path, workers: int | None) -> SweepResult:
    """Simulate a case with progress, and store the results in a folder.

    Raises
    ------
    PolicyError
        If a run fails. The message contains the first reason.
    """
    runs = [*described(replace(case, workloads={"workload": source}))]
    for _, spec in runs:
        check_names(spec, case.door.place("policies"))
    campaign = Campaign(Owner(FILE.stem, FILE.name), units(spec for _, spec in runs))
    with campaign_bar() as on_progress:
        status = run_campaign(campaign, folder, workers=workers, on_progress=on_progress)
    if status.failed:
        label, error = failed_units(campaign, Store(folder))[0]
        raise PolicyError(f"{status.failed} of {status.total} runs failed; {label}: {error}")
    numbers = {scenario_of(spec): numbers_in(case, options) for options, spec in runs}
    return SweepResult(folder / TABLE, numbers)


def _read(workload: Workload | str | Path, folder: Path) -> LoadedWorkload:
    if isinstance(workload, Workload):
        return as_file(workload, folder)
    return load_workload(workload)


def _metric(text: str) -> tuple[str, str | None]:
    name, colon, of = text.partition(":")
    row_of(name)
    return name, of if colon else None
