# SPDX-License-Identifier: Apache-2.0
"""The report of simulations: their results, their workloads, and an hour of one of the runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from rebat.campaign.labels import scenario_of
from rebat.campaign.simulating import simulate_run, workload_of
from rebat.campaign.spec import CheckpointModel, RunSpec
from rebat.campaign.unit import Unit
from rebat.core.units import format_duration
from rebat.figures.steal_hour import steal_hour
from rebat.papers.common.parts import Picture, Report, Table, percent
from rebat.papers.common.runs import report as runs
from rebat.papers.migration.compaction import about_migration, migration_pictures
from rebat.papers.migration.report import report as migration
from rebat.papers.node_stealing.differences import report as differences
from rebat.papers.node_stealing.evidence import ALIASES, PROGRAM, VARIANTS
from rebat.papers.node_stealing.report import report as node_stealing
from rebat.papers.replacement.report import report as replacement
from rebat.papers.replacement.small_run import about_replacement, replacement_pictures
from rebat.papers.torus.load_pictures import on_a_torus, torus_pictures
from rebat.papers.torus.load_report import report as partitions
from rebat.workloads.describe import describe

Gathered = tuple[str, list[Table], list[Picture], list[str]]
"""Which report it is, with the tables, pictures and lines that it needs beside the results."""

REPORTS: dict[str, Callable[..., Report]] = {
    "node-stealing": node_stealing,
    "partitions": partitions,
    "replacement": replacement,
    "migration": migration,
    "differences": differences,
    "runs": runs,
}
"""What a campaign of simulations may be reported as: a paper's evaluation, what drives the gain of
node stealing, or just its runs. Its file says which (``report = "runs"``), or what it runs does."""


def gather(units: Sequence[Unit]) -> Gathered:
    """What the report of these units needs beside their results.

    Where the file does not say which, it is of boxes on a torus where every grid has some policy
    for one, of node replacement or of job migration where the first grid has some policy with it,
    of the node-stealing paper where Baseline and a variant of its stealing meet failures with
    Young/Daly checkpoints, and else of the runs as they are.
    """
    lines, which = _provenance(units), _which(units)
    if which in _TABLELESS:
        return which, [], [*_TABLELESS[which](units)], lines
    pictures = [*_an_hour(units)] if which == "node-stealing" else []
    return which, [*_workload_tables(units)], pictures, lines


_TABLELESS: dict[str, Callable[[Sequence[Unit]], Iterable[Picture]]] = {
    "partitions": torus_pictures,
    "replacement": lambda units: replacement_pictures(),
    "migration": lambda units: migration_pictures(),
}
"""Reports that say nothing of workloads, with their further pictures."""


def _which(units: Sequence[Unit]) -> str:
    asked: str = units[0].spec.report
    if asked:
        return asked
    if on_a_torus(units):
        return "partitions"
    if about_replacement(units):
        return "replacement"
    if about_migration(units):
        return "migration"
    return "node-stealing" if any(map(_as_in_the_paper, units)) else "runs"


def _as_in_the_paper(unit: Unit) -> bool:
    name = unit.spec.policy.removeprefix(PROGRAM)
    stealing = ALIASES.get(name, name) in VARIANTS
    scenario = unit.spec.scenario
    return stealing and scenario.failures and isinstance(scenario.checkpoint, CheckpointModel)


def report(
    which: str, table: Path, tables: Sequence[Table], pictures: Sequence[Picture],
    provenance: Sequence[str],
) -> Report:  # fmt: skip
    """The report of results and what was gathered beside them.

    Raises
    ------
    InputError
        When there are no results to report.
    """
    if which in _TABLELESS:
        return REPORTS[which](table, pictures, provenance)
    return REPORTS[which](table, tables, pictures, provenance)


def _workload_tables(units: Sequence[Unit]) -> Iterator[Table]:
    """Tables 2 and 3, of the workloads as they were run but without checkpoints."""
    one_each = {unit.spec.workload: unit for unit in reversed(units)}
    facts = {name: describe(workload_of(unit)) for name, unit in sorted(one_each.items())}
    classes = list(dict.fromkeys(c for fact in facts.values() for c in fact["size_classes"]))
    yield Table(
        "Table 2",
        "Number of jobs by size",
        ["workload", *classes, "total"],
        [
            [name, *(str(fact["size_classes"].get(c, 0)) for c in classes), str(fact["jobs"])]
            for name, fact in facts.items()
        ],
    )
    columns = ["min", "max", "mean", "median"]
    yield Table(
        "Table 3",
        "Stress and run times",
        ["workload", "stress", *columns],
        [
            [name, percent(fact["stress"])]
            + [format_duration(fact["run_time_s"][column]) for column in columns]
            for name, fact in facts.items()
        ],
    )


def _an_hour(units: Sequence[Unit]) -> Iterator[Picture]:
    """The machine around the first steal of the first SFSJ run, simulated once more."""
    stealing = (unit for unit in units if unit.spec.scenario.failures and _steals(unit.spec))
    unit = next(stealing, None)
    if unit is None:
        return
    result = simulate_run(unit)
    within = [t for t in result.ledger.steals if t >= result.summary.window_s[0] * 1e6]
    if within:
        svg = steal_hour(result.ledger, result.summary.n_nodes, within[0])
        about = f"{scenario_of(unit.spec).label}, seed {unit.labels['seed']}"
        title = f"{unit.spec.workload}: an hour around a steal ({about}; point at a rectangle)"
        yield Picture("cf. Figure 2", title, svg)


def _steals(spec: RunSpec) -> bool:
    return ALIASES.get(spec.policy, spec.policy).removeprefix(PROGRAM) == "h111"


def _provenance(units: Sequence[Unit]) -> list[str]:
    seeds = sorted({unit.labels["seed"] for unit in units} - {None})
    return [
        f"{len({unit.key for unit in units})} distinct runs, seeds {seeds}",
        *sorted({f"workload {u.spec.workload}: {_source(u.spec)}" for u in units}),
    ]


def _source(spec: RunSpec) -> str:
    source = spec.source
    if source.generator:
        return f"generated ({source.generator}, seed {source.seed}); not the real trace"
    return f"{Path(source.file or '').name} {source.options or ''}"
