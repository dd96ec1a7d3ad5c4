"""The report of simulations: their results, their workloads, and an hour of one of the runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rebat.campaign.labels import scenario_of
from rebat.campaign.migration_report import about_migration, migration_pictures
from rebat.campaign.partition_report import on_a_torus, torus_pictures
from rebat.campaign.replacement_report import about_replacement, replacement_pictures
from rebat.campaign.simulating import simulate_run, workload_of
from rebat.campaign.spec import RunSpec
from rebat.campaign.unit import Unit
from rebat.core.units import format_duration
from rebat.figures.steal_hour import steal_hour
from rebat.reports.migration.report import report as migration
from rebat.reports.node_stealing.evidence import ALIASES
from rebat.reports.node_stealing.report import report as node_stealing
from rebat.reports.partitions.report import report as partitions
from rebat.reports.parts import Picture, Report, Table, percent
from rebat.reports.replacement.report import report as replacement
from rebat.workloads.describe import describe

Gathered = tuple[str, list[Table], list[Picture], list[str]]
"""Which report it is, with the tables, pictures and lines that it needs beside the results."""


def gather(units: Sequence[Unit]) -> Gathered:
    """What the report of these units needs beside their results.

    It is of boxes on a torus where every grid has some policy for one, of node replacement or of
    job migration where the first grid has some policy with it, and of the node-stealing paper
    otherwise.
    """
    lines = _provenance(units)
    if on_a_torus(units):
        return "partitions", [], [*torus_pictures(units)], lines
    if about_replacement(units):
        return "replacement", [], [*replacement_pictures()], lines
    if about_migration(units):
        return "migration", [], [*migration_pictures()], lines
    return "node-stealing", [*_workload_tables(units)], [*_an_hour(units)], lines


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
    others = {"partitions": partitions, "replacement": replacement, "migration": migration}
    if which in others:
        return others[which](table, pictures, provenance)
    return node_stealing(table, tables, pictures, provenance)


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
    return ALIASES.get(spec.policy, spec.policy) == "h111"


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
