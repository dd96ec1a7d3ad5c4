# SPDX-License-Identifier: Apache-2.0
"""Figure 1: spare nodes of each job (1a, static) and a pool of spare nodes (1b, dynamic).

The workload ``rigid`` runs with pools of several sizes. In the workloads ``own-spares-N``, each of
the same jobs requests N additional processors as spares.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import nan
from typing import NamedTuple

from rebat.report.claims import ABOVE, Claim, Judgement, above, judge
from rebat.report.parts import Table, change, hours, share
from rebat.report.runs_index import Run
from rebat.results.intervals import BySeed, interval, minus, relative

from .runs import ReplacementCase, Runs
from .tables import middle

RIGID, OWN = "rigid", "own-spares-"
MAGNITUDE = 10.0


class SpareNodes(NamedTuple):
    """The runs of Figure 1.

    ``pools`` maps the size of a pool to its run. ``own`` maps the number of spares of each job to
    its run. ``plain`` is the run without replacement.
    """

    runs: Runs
    pools: dict[int, Run[ReplacementCase]]
    own: dict[int, Run[ReplacementCase]]
    plain: Run[ReplacementCase]

    def values(self, run: Run[ReplacementCase], metric: str) -> BySeed:
        """Return a metric of a run, by seed."""
        return self.runs.values(*run, metric)

    def longer(self, run: Run[ReplacementCase]) -> BySeed:
        """Return the relative change of the makespan, compared with no replacement."""
        return relative(self.values(run, "makespan_s"), self.values(self.plain, "makespan_s"))

    def reserved(self, run: Run[ReplacementCase]) -> BySeed:
        """Return the mean number of processors that jobs hold as spares."""
        more = minus(
            self.values(run, "platform_useful"), self.values(self.plain, "platform_useful")
        )
        makespans = self.values(run, "makespan_s")
        return {seed: more[seed] / makespans[seed] for seed in more}

    @property
    def largest(self) -> Run[ReplacementCase]:
        """The run with the most spare processors per job."""
        return self.own[max(self.own)]

    @property
    def sufficient(self) -> int | None:
        """Size of the smallest pool with which at most as many hit jobs wait as in `largest`.

        The medians of the shares are compared. None if no pool is large enough.
        """
        limit = self._waiting(self.largest)
        sizes = [size for size, run in self.pools.items() if size and self._waiting(run) <= limit]
        return min(sizes, default=None)

    def _waiting(self, run: Run[ReplacementCase]) -> float:
        """Return the median share of hit jobs that wait. Return NaN if there are no values."""
        estimate = interval(self.values(run, "share_requeued"), of_median=True)
        return estimate.mean if estimate else nan


def spare_nodes(runs: Runs) -> SpareNodes | None:
    """Return the runs of Figure 1. Return None if some are missing."""
    pools, own, plain = dict[int, Run[ReplacementCase]](), dict[int, Run[ReplacementCase]](), None
    for setting in runs.settings:
        for case in runs.cases(setting):
            run = Run(setting, case)
            if setting.workload.startswith(OWN):
                own[int(setting.workload.removeprefix(OWN))] = run
            elif setting.workload == RIGID and case.replaces:
                pools[_size_of(case)] = run
            elif setting.workload == RIGID:
                plain = run
    return SpareNodes(runs, pools, own, plain) if pools and own and plain else None


def _size_of(case: ReplacementCase) -> int:
    options = dict(option.partition("=")[::2] for option in case.how.split(", "))
    return int(options.get("spares", 0))


def tables(runs: Runs) -> Iterator[Table]:
    """Yield the table that compares both kinds of spare nodes."""
    spares = spare_nodes(runs)
    if spares is None:
        return
    rows = [_row(spares, "no replacement", "", spares.plain)]
    for size, run in sorted(spares.pools.items()):
        rows.append(_row(spares, f"pool of {size}" if size else "idle processors", f"{size}", run))
    for size, run in sorted(spares.own.items()):
        reserved = middle(spares.reserved(run), "{:.1f}".format)
        rows.append(_row(spares, f"{size} of each job", reserved, run))
    columns = [
        "spare processors",
        "reserved, mean",
        "makespan (h)",
        "change",
        "continued",
        "waited",
    ]
    title = "spare nodes of each job and a pool of spare nodes"
    yield Table("Figure 1, medians over seeds", title, columns, rows)


def _row(spares: SpareNodes, name: str, reserved: str, run: Run[ReplacementCase]) -> list[str]:
    waited = spares.values(run, "share_requeued")
    continued = {seed: 1 - value for seed, value in waited.items()}
    longer = "" if run == spares.plain else middle(spares.longer(run), change)
    makespan = middle(spares.values(run, "makespan_s"), hours)
    return [name, reserved, makespan, longer, middle(continued, share), middle(waited, share)]


def _fewer(on: SpareNodes) -> BySeed:
    """Return the number of spare processors of all jobs, divided by ``on.sufficient``.

    The result is empty if no pool is sufficient.
    """
    size = on.sufficient
    return {} if size is None else {seed: n / size for seed, n in on.reserved(on.largest).items()}


CLAIMS = (
    Claim(
        "spare nodes of each job lengthen the makespan",
        "median relative difference from no replacement, with the most spare nodes",
        ABOVE,
        "section I: poor system utilisation",
        lambda on: interval(on.longer(on.largest), of_median=True),
    ),
    Claim(
        "a pool needs fewer spare nodes by an order of magnitude",
        "median of spare processors of jobs / smallest pool with fewer waiting jobs",
        above(MAGNITUDE),
        "section I, after Rezaei and Mueller",
        lambda on: interval(_fewer(on), of_median=True),
    ),
)


def judgements(runs: Runs) -> Iterator[Judgement]:
    """Judge the statements about Figure 1."""
    spares = spare_nodes(runs)
    if spares is not None:
        yield from judge(CLAIMS, spares, RIGID)
