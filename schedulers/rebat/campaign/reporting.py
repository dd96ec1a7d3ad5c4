"""A campaign's report: its results table, its workloads, and an hour of one of its runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import rebat
from rebat.campaign.keys import Run
from rebat.campaign.spec import RunSpec
from rebat.campaign.store import OVERVIEW, TABLE, scenario_of
from rebat.campaign.worker import simulate_run, workload_of
from rebat.core.files import read_text, write_text
from rebat.core.units import format_duration
from rebat.figures.steal_hour import steal_hour
from rebat.report.evidence import ALIASES, Evidence
from rebat.report.judgements import judge
from rebat.report.page import Report, html, markdown
from rebat.report.sections import Picture, Table, percent, pictures, tables
from rebat.workloads.describe import describe


def write_report(results: Path, runs: Sequence[Run], folder: Path) -> list[Path]:
    """Write ``report.html`` and ``report.md`` into a folder; gives both paths.

    Raises
    ------
    InputError
        When there are no results to report.
    """
    evidence = Evidence(results / TABLE)
    report = Report(
        title="Node stealing for failed jobs: the evaluation again",
        lead=(
            "Y. Du, L. Marchal, G. Pallez, Y. Robert: Improving Batch Schedulers with Node "
            "Stealing for Failed Jobs, CCPE 2024. Sections 5 to 7, simulated by rebat; printed "
            "values beside ours where the paper prints them. Generated months have the paper's "
            "statistics, not its jobs: compare shapes, not digits."
        ),
        judgements=list(judge(evidence)),
        tables=[*_workload_tables(runs), *tables(evidence)],
        pictures=[*pictures(evidence), *_an_hour(runs)],
        provenance=_provenance(results, runs),
    )
    paths = [folder / "report.html", folder / "report.md"]
    for path, text in zip(paths, (html(report), markdown(report)), strict=True):
        write_text(path, text)
    return paths


def _workload_tables(runs: Sequence[Run]) -> Iterator[Table]:
    """Tables 2 and 3, of the workloads as they were run but without checkpoints."""
    one_each = {run.spec.workload: run for run in reversed(runs)}
    facts = {name: describe(workload_of(run)) for name, run in sorted(one_each.items())}
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


def _an_hour(runs: Sequence[Run]) -> Iterator[Picture]:
    """The machine around the first steal of the first SFSJ run, simulated once more."""
    stealing = (r for r in runs if r.spec.failures and _name(r.spec) == "h111")
    run = next(stealing, None)
    if run is None:
        return
    result = simulate_run(run)
    within = [t for t in result.ledger.steals if t >= result.summary.window_s[0] * 1e6]
    if within:
        svg = steal_hour(result.ledger, result.summary.n_nodes, within[0])
        about = (
            f"{scenario_of(run.spec).label}, seed {run.spec.failures and run.spec.failures.seed}"
        )
        title = f"{run.spec.workload}: an hour around a steal ({about}; point at a rectangle)"
        yield Picture("cf. Figure 2", title, svg)


def _name(spec: RunSpec) -> str:
    return ALIASES.get(spec.policy, spec.policy)


def _provenance(results: Path, runs: Sequence[Run]) -> list[str]:
    seeds = sorted({run.spec.failures.seed for run in runs if run.spec.failures})
    return [
        f"rebat {rebat.__version__}",
        f"{len({run.key for run in runs})} distinct runs, failure seeds {seeds}",
        f"overview: {' '.join(read_text(results / OVERVIEW).split())[:600]}",
        *sorted({f"workload {r.spec.workload}: {_source(r.spec)}" for r in runs}),
    ]


def _source(spec: RunSpec) -> str:
    source = spec.source
    if source.generator:
        return f"generated ({source.generator}, seed {source.seed}); not the real trace"
    return f"{Path(source.file or '').name} {source.options or ''}"
