# SPDX-License-Identifier: Apache-2.0
"""The report on boxes on a torus for many jobs: what boxes cost, and what foresight gains.

A picture shows the state of the machine at one time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rebat.core.numbers import decimal, duration, hours, node_hours, percent, points, signed
from rebat.core.units import to_s
from rebat.figures.torus import owners, torus_instant
from rebat.models.boxes import TorusBlocks
from rebat.policies.presets import Preset
from rebat.report.claims import ABOVE, BELOW, Claim, Judgement, Rule, judge
from rebat.report.parts import Picture, Report, ReportMaker
from rebat.report.runs_index import (
    Column,
    Run,
    RunIndex,
    Setting,
    column,
    difference,
    differences,
    headings,
    means,
    parsed,
    simulations,
)
from rebat.report.table import Table
from rebat.results.catalogue import metric
from rebat.results.intervals import Interval, interval
from rebat.results.measures.platform import free_steps
from rebat.runs.labels import scenario_of
from rebat.runs.simulating import simulate_run, workload_of
from rebat.runs.single import RunResult
from rebat.runs.staging import history
from rebat.runs.unit import Unit, scheduler_of

LEAD = (
    "I. Vardas, M. Ploumidis, M. Marazakis: Exploring the Impact of Node Failures on the Resource "
    "Allocation for Parallel Jobs, 2022. In the paper, jobs run one at a time on a torus. This "
    "report simulates an entire machine: jobs of many sizes run at the same time and wait for free "
    "boxes. The paper does not examine this case. The report judges the paper's claims for it."
)
REMARKS = (
    "Intervals are computed over the seeds of the failures. All seeds have the same workload. "
    "Differences are between runs with the same failures.",
    "The head of the queue is blocked while it waits although enough nodes are up and free. Box "
    "waste is the node time of nodes that are in the box of a job but that the job did not "
    "request. These nodes are idle.",
)
BASES = ("rps", "slurm-linear")
"""The policies with which other policies are compared."""

_BLOCKED = "fragmentation_blocked_share"
_WASTED = "platform_waste_failure"
COLUMNS = (
    column("useful_utilisation"),
    column("flow_weighted_mean_s"),
    column("failures_hit"),
    Column("wasted by failures, node h", _WASTED, node_hours.bare),
    Column("head of the queue blocked, share of time", _BLOCKED, percent),
    Column("free nodes while blocked", "fragmentation_blocked_free_nodes", decimal),
    Column("box waste, node h", "fragmentation_box_waste", node_hours.bare),
)
DIFFERENCES = (
    Column("useful utilisation, points", "useful_utilisation", percent, points),
    Column(
        "weighted mean flow, h",
        "flow_weighted_mean_s",
        percent,
        hours._replace(decimals=2, signed=True),
    ),
    Column(metric("failures_hit").title, "failures_hit", decimal, signed),
    Column(
        "wasted by failures, node h",
        _WASTED,
        node_hours.bare,
        node_hours.bare._replace(signed=True),
    ),
    Column("head of the queue blocked, points", _BLOCKED, percent, points),
)


def report(
    path: Path,
    workloads: Sequence[Table],
    more_pictures: Sequence[Picture],
    provenance: Sequence[str],
) -> Report:
    """Return the report of a campaign's ``results.parquet``. The tables of workloads come first."""
    runs = RunIndex(simulations(path, str, by_grid=False))
    return Report(
        title="Boxes on a torus for many concurrent jobs: their cost, and the gain of foresight",
        lead=LEAD,
        judgements=list(judgements(runs)),
        tables=[*workloads, *tables(runs)],
        pictures=list(more_pictures),
        provenance=provenance,
        remarks=REMARKS,
        subject="workload and failures",
        figures_note="The state of the machine at one time. A cell is an allocated block.",
    )


def failing(runs: RunIndex[str]) -> list[Setting]:
    """Return the settings with failures, grouped by workload."""
    workloads = list(dict.fromkeys(item.workload for item in runs.settings))
    families = list(dict.fromkeys(item.scenario.family for item in runs.settings))
    return sorted(
        (item for item in runs.settings if item.scenario.failure_model is not None),
        key=lambda item: (
            workloads.index(item.workload),
            families.index(item.scenario.family),
            item.scenario.mtbf_s or 0.0,
            item.scenario.downtime_s or 0.0,
        ),
    )


def named(policies: Sequence[str], wanted: str) -> str | None:
    """Return the only policy that has this name without its axis ``torus``.

    Return None if there is no such policy, or more than one.

    >>> named(["faps:torus=8,foresight=fit", "rps:torus=8", "rps"], "faps:foresight=fit")
    'faps:torus=8,foresight=fit'
    """
    matches = [policy for policy in policies if _without_torus(policy) == wanted]
    return matches[0] if len(matches) == 1 else None


def _without_torus(policy: str) -> str:
    name, axes = parsed(policy)
    others = [f"{axis}={choice}" for axis, choice in axes.items() if axis != "torus"]
    return ":".join([name, ",".join(others)] if others else [name])


# ---- tables


def _runs_of(runs: RunIndex[str], setting: Setting) -> dict[str, Run[str]]:
    names = sorted(runs.cases(setting), key=lambda name: (name != "baseline", name))
    return {name: Run(setting, name) for name in names}


def tables(runs: RunIndex[str]) -> Iterator[Table]:
    """Yield tables of means and of differences from `BASES`, for each setting."""
    for setting in failing(runs):
        workload, label = setting.workload, setting.scenario.label
        those = _runs_of(runs, setting)
        title = f"{workload}: placements ({label})"
        rows = means(runs, those, COLUMNS)
        yield Table("means over seeds", title, ["policy", *headings(COLUMNS)], rows)
        for base in filter(None, (named([*those], wanted) for wanted in BASES)):
            pairs = [(name, run, those[base]) for name, run in those.items() if name != base]
            title = f"{workload}: compared with {base} under the same failures ({label})"
            rows = differences(runs, pairs, DIFFERENCES)
            yield Table("paired by seed", title, ["policy", *headings(DIFFERENCES)], rows)


# ---- claims


class InSetting(NamedTuple):
    """The subject of a claim: the runs of a setting."""

    runs: RunIndex[str]
    setting: Setting


_MEAN = "mean difference by seed"
_ONE_AT_A_TIME = "for one job at a time: fewer aborts, earlier completion (section 3)"
_NOT_TRIED = "not in the paper, which knows the law exactly"


def _less(
    ours: str, base: str, metric: str = "failures_hit"
) -> Callable[[InSetting], Interval | None]:
    """Return a function that computes the mean of ``ours`` minus ``base`` (two policies)."""

    def number(on: InSetting) -> Interval | None:
        first, second = (named(on.runs.cases(on.setting), wanted) for wanted in (ours, base))
        if first is None or second is None:
            return None
        pair = Run(on.setting, first), Run(on.setting, second)
        return interval(difference(on.runs, *pair, metric))

    return number


def _claim(
    text: str,
    ours: str,
    base: str = "rps",
    metric: str = "failures_hit",
    rule: Rule = BELOW,
    paper: str = _ONE_AT_A_TIME,
) -> Claim:
    return Claim(text, _MEAN, rule, paper, _less(ours, base, metric), own=True)


_USED = "useful_utilisation"
CLAIMS = (
    _claim("FAPS has fewer failures that hit jobs than RPS", "faps"),
    _claim("FAPS has fewer failures that hit jobs than Slurm-linear", "faps", "slurm-linear"),
    _claim("FAPS has a higher useful utilisation than RPS", "faps", "rps", _USED, ABOVE),
    _claim(
        "FAPS has a higher useful utilisation than Slurm-linear",
        "faps",
        "slurm-linear",
        _USED,
        ABOVE,
    ),
    _claim("FAPS has a smaller weighted mean flow than RPS", "faps", "rps", "flow_weighted_mean_s"),
    *(
        _claim(
            f"FAPS {how} has fewer failures that hit jobs than RPS",
            f"faps:foresight={law}",
            paper=_NOT_TRIED,
        )
        for law, how in (
            ("fit", "with a law fitted to the history"),
            ("law*2", "with times to failure overestimated by a factor of 2"),
            ("law*0.5", "with times to failure underestimated by a factor of 2"),
            ("youngest", "with uptimes only, preferring the youngest nodes,"),
            ("oldest", "with uptimes only, preferring the oldest nodes,"),
        )
    ),
)
"""Claims on pairs of policies."""


def judgements(runs: RunIndex[str]) -> Iterator[Judgement]:
    """Judge all claims for every workload and scenario."""
    for setting in failing(runs):
        yield from judge(CLAIMS, InSetting(runs, setting), setting.label)


Floats = npt.NDArray[np.float64]

AHEAD_S = 24 * 3600.0
"""The picture shows the probability that a block fails within this duration (seconds)."""


def torus_pictures(units: Sequence[Unit]) -> Iterator[Picture]:
    """Yield a picture of the machine at the busiest time of a run of FAPS with failures.

    The first of these runs is simulated again.
    """
    faps = (u for u in units if u.spec.scenario.failures and _division(u) and _foresees(u))
    unit = next(faps, None)
    if unit is None:
        return
    result = simulate_run(unit)
    division = _division(unit)
    assert division is not None
    at_us = busiest(result)
    owner = owners(result.ledger, division, at_us)
    svg = torus_instant(
        division.torus.sizes,
        owner,
        _hazard(unit, result, division, at_us),
        f"probability of a failure within {duration(AHEAD_S)}",
    )
    about = f"{unit.spec.policy}, {scenario_of(unit.spec).label}, seed {unit.labels['seed']}"
    title = f"{unit.spec.workload} on {division.torus} after {duration(to_s(at_us))}"
    yield Picture("", f"{title} ({about})", svg)


def _division(unit: Unit) -> TorusBlocks | None:
    """Return the blocks of a run's machine.

    Return None if its policy does not place jobs on a torus.
    """
    chosen = scheduler_of(unit.spec)
    if not isinstance(chosen, Preset) or not chosen.on_torus:
        return None
    return chosen.blocks(unit.spec.scenario.nodes or workload_of(unit).n_nodes)


def _foresees(unit: Unit) -> bool:
    chosen = scheduler_of(unit.spec)
    return isinstance(chosen, Preset) and chosen.foresees


def busiest(result: RunResult) -> int:
    """Return the time (us) in the window at which the fewest nodes are free."""
    at, free = free_steps(result.ledger, result.summary.n_nodes)
    first, last = (round(1e6 * time_s) for time_s in result.summary.window_s)
    within = (first <= at) & (at < last)
    return int(at[within][np.argmin(free[within])]) if within.any() else first


def _hazard(unit: Unit, result: RunResult, blocks: TorusBlocks, at_us: int) -> Floats | None:
    """Return the probability that each block fails within `AHEAD_S`.

    Return None without node laws.
    """
    failures, n_nodes = unit.spec.scenario.failures, result.summary.n_nodes
    laws = failures and failures.law.nodes(n_nodes, failures.seed)
    if laws is None:
        return None
    past = history(unit.spec.scenario, n_nodes)
    since = np.zeros(n_nodes) if past is None else -past.uptime_us.astype(float)
    for at, up, nodes in result.ledger.node_events:
        if at <= at_us and up:
            since[list(nodes)] = at
    hazard: Floats = -np.expm1(-blocks.sums(laws.hazard((at_us - since) / 1e6, AHEAD_S)))
    return hazard


REPORT = ReportMaker(report, False, torus_pictures)
