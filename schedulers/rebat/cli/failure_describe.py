# SPDX-License-Identifier: Apache-2.0
"""``rebat failures describe``: numbers of a failure record, fitted laws and a figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from rebat.api.figure_files import FigureWidth
from rebat.cli.command import Values, command
from rebat.cli.options import File, Json, print_json
from rebat.cli.scenario_options import scenario_options
from rebat.console.output import print_remarks
from rebat.core.declared import Machine, Seconds
from rebat.core.errors import InputError
from rebat.core.numbers import counted, decimal, duration, number, percent, probability
from rebat.core.units import to_us
from rebat.report.table import Table

if TYPE_CHECKING:
    from rebat.api.remarks import Remark
    from rebat.core.jobs import Workload
    from rebat.models.failures.events import MachineEvent
    from rebat.models.failures.statistics import Fitted, Lemon, PartRate, Sample, SizeMttf, Trend


MOST_LEMONS = 10
"""Maximum number of lemon nodes in the printed text. The JSON output contains all of them."""


SIGNIFICANT = 0.05
"""The p-value of Laplace's test below which a change of the rate is significant."""


@command()
def describe(
    file: File,
    *,
    nodes: Annotated[
        Machine | None, "Number of nodes of the machine (default: the number of the workload)."
    ] = None,
    workload: Annotated[
        File | None,
        "Workload of the same machine. It provides the number of nodes, and the node names if it has them.",
    ] = None,
    cores: Annotated[Values, scenario_options("cores_per_node")],
    begin_s: Annotated[
        Seconds | None, "--begin", "Ignore events before this time (default: use all events)."
    ] = None,
    end_s: Annotated[
        Seconds | None, "--end", "Ignore events after this time (default: the last event)."
    ] = None,
    figure: Annotated[
        File | None,
        "Write a figure (.png, .svg, .pdf or .eps): recorded times with the fitted laws, and failures over time.",
    ] = None,
    figure_width: FigureWidth = None,
    as_json: Json = False,
) -> None:
    """Describe an event file and fit failure laws.

    Prints the number of failures, the MTBF, the downtime and the nodes with most failures.

    Lists lemon nodes: nodes that fail significantly more often than the others. The test takes into
    account that failures of a node can come in bursts. It is one-sided, with a level of 5 % after
    Holm's correction for the number of nodes.

    Prints the number of failures that hit several nodes at the same time (racks, switches). Prints
    the failure rate in four parts of the record, with Laplace's test for a trend (burn-in, wear).

    Prints the mean time to failure (MTTF) of jobs of 1, 8, 64, ... nodes with a 95 % interval. A
    failure of several nodes of a job at the same time counts once.

    Fits exponential, Weibull, log-normal and gamma laws by maximum likelihood to three samples:
    times between failures of the machine, uptimes of nodes, and repair times. Failures at the same
    time count once. Uptimes that continue at the end of the record are censored. * marks the law
    with the smallest AIC, which fits best.

    \b
    Example:
      rebat failures describe 20.events --nodes 512 --figure 20.png
    """
    from rebat.core.cores import groups_of
    from rebat.models.failures.events import events_of_nodes, read_events
    from rebat.models.failures.records.formats import rejecting_records
    from rebat.models.failures.statistics import (
        describe_events,
        exposure_of,
        job_sizes,
        lemons,
        mttf_by_size,
        rate_over_time,
        together,
        trend,
    )

    width = _width(figure, figure_width)
    if begin_s is not None and end_s is not None and end_s <= begin_s:
        raise InputError("is not after --begin", "--end", "a later time")
    jobs, nodes, names = _machine(nodes, workload)
    cores_per_node = cores["cores_per_node"]
    count = groups_of(nodes, cores_per_node)
    with rejecting_records(file):
        events = events_of_nodes(read_events(file, cores_per_node), cores_per_node)
    if begin_s is not None or end_s is not None:
        events = _within(events, begin_s or 0.0, end_s)
    length_s = None if end_s is None else end_s - (begin_s or 0)
    facts = describe_events(events, count, None if length_s is None else (0.0, length_s))
    if jobs is not None and end_s is None and facts["mtbf_s"]:
        print_remarks(_of_end(file, facts, jobs, begin_s or 0.0))
    exposure = exposure_of(events, count, None if length_s is None else to_us(length_s))
    worst, mttf = lemons(exposure), mttf_by_size(exposure, job_sizes(count))
    end_us = to_us(length_s) if length_s is not None else events[-1].at_us if events else 0
    groups, parts = together(exposure), rate_over_time(events, exposure, end_us)
    change = trend(exposure, end_us)
    if not as_json:
        lines = [*_lines(facts, names), _together_line(groups), *_lemon_lines(worst, names)]
        click.echo("\n".join(lines))
        click.echo(_mttf_table(mttf), nl=False)
        click.echo(_rate_table(parts, change), nl=False)
    fitted = fits_of(events, count, length_s)
    if not as_json:
        click.echo(fits_table(fitted), nl=False)
    if figure is not None:
        draw_fits(fitted, events, f"{file.name}, {count} nodes", figure, width)
    if as_json:
        rates = {
            "lemons": [_named(lemon.node, names, lemon._asdict()) for lemon in worst],
            "mttf_by_size": [size._asdict() for size in mttf],
            "nodes_together": [{"nodes": size, "failures": n} for size, n in groups.items()],
            "rate_over_time": [part._asdict() for part in parts],
            "trend": None if change is None else change._asdict(),
        }
        print_json(_record(facts | rates, count, fitted, figure, names))
    elif figure is not None:
        click.echo(f"wrote {figure}")


def _machine(
    nodes: int | None, workload: Path | None
) -> tuple[Workload | None, int, tuple[str, ...]]:
    """Return the workload, the number of nodes, and their names (empty if they have no names)."""
    from rebat.workloads.load import load_workload
    from rebat.workloads.machine import names_in, node_list

    if workload is None:
        if nodes is None:
            raise InputError("is missing", "--nodes", "the number of nodes, or --workload")
        return None, nodes, ()
    jobs = load_workload(workload)
    nodes = nodes or jobs.n_nodes
    return jobs, nodes, names_in(node_list(jobs, nodes))


def _of_end(file: Path, facts: dict[str, Any], jobs: Workload, begin_s: float) -> Iterator[Remark]:
    """Note that the record may end later than its last event."""
    from rebat.api.remarks import of_record_end

    last_s = facts["window_s"][1]
    yield from of_record_end(str(file), facts["mtbf_s"], last_s, jobs, -begin_s, "--end")


def _record(
    facts: dict[str, Any], n_nodes: int, fitted: Fits, figure: Path | None, names: Sequence[str]
) -> dict[str, Any]:
    busiest = [_named(node, names, {"failures": count}) for node, count in facts["busiest_nodes"]]
    return {
        "nodes": n_nodes,
        "machine_failures": facts.pop("dates"),
        "node_failures": facts.pop("failures"),
        **facts,
        "busiest_nodes": busiest,
        "fits": [_sample_record(sample, laws) for sample, laws in fitted],
        "figure": figure,
    }


def _named(node: int, names: Sequence[str], values: dict[str, Any]) -> dict[str, Any]:
    """Return a row: the number of a node, its name if it has one, and ``values``."""
    return {"node": node, **({"name": names[node]} if names else {}), **values}


def _sample_record(sample: Sample, laws: list[Fitted]) -> dict[str, Any]:
    """Return a sample and its fitted laws as plain data, the best law first."""
    return {
        "times": sample.name,
        "n": len(sample.times.failed_s),
        "censored": len(sample.times.going_s),
        "laws": [_law_record(law) for law in laws],
    }


def _law_record(law: Fitted) -> dict[str, Any]:
    scale_s, shape = law.parameters
    return {
        "law": law.family,
        "scale_s": scale_s,
        "shape": None if law.family == "exponential" else shape,
        "mean_s": law.mean_s,
        "log_likelihood": law.log_likelihood,
        "aic": law.aic,
    }


def _within(
    events: Sequence[MachineEvent], begin_s: float, end_s: float | None
) -> list[MachineEvent]:
    from rebat.core.units import FOREVER_US
    from rebat.models.failures.outages import window

    end_us = FOREVER_US if end_s is None else to_us(end_s)
    return window(events, to_us(begin_s), end_us)


def _lines(facts: dict[str, Any], names: Sequence[str]) -> list[str]:
    lines = [
        f"{counted(facts['dates'], 'failure')} of the machine; "
        f"{counted(facts['failures'], 'failure')} of single nodes, "
        f"on {counted(facts['nodes_hit'], 'node')}"
    ]
    if facts["mtbf_s"]:
        of_machine, of_nodes = (duration(facts[key]) for key in ("mtbf_s", "node_mtbf_s"))
        lines.append(
            f"MTBF of the machine          {of_machine} (--mtbf; failures at the same time count "
            "once)"
        )
        lines.append(f"  between node failures      {of_nodes} (each failed node counts)")
    if facts["mean_downtime_s"]:
        lines.append(f"mean downtime                {duration(facts['mean_downtime_s'])}")
    lines.append(f"share of node time down      {percent(facts['downtime_share'])}")
    busiest = ", ".join(
        f"{names[node] if names else node} ({count})" for node, count in facts["busiest_nodes"]
    )
    if busiest:
        lines.append(f"nodes with most failures     {busiest}")
    return lines


def _lemon_lines(worst: Sequence[Lemon], names: Sequence[str]) -> list[str]:
    if not worst:
        return ["no node fails significantly more often than the others"]
    count = "1 node fails" if len(worst) == 1 else f"{len(worst)} nodes fail"
    lines = [f"{count} significantly more often than the others (lemon nodes):"]
    for lemon in worst[:MOST_LEMONS]:
        others = (
            "the others: none"
            if lemon.factor is None
            else f"{number.with_digits(3)(lemon.factor)} x the others"
        )
        name = names[lemon.node] if names else str(lemon.node)
        lines.append(
            f"  {name:<25}  {counted(lemon.failures, 'failure')} ({others}), p = {probability(lemon.p)}"
        )
    if len(worst) > MOST_LEMONS:
        lines.append(f"  and {len(worst) - MOST_LEMONS} more (--json lists all)")
    return lines


def _mttf_table(mttf: Sequence[SizeMttf]) -> str:
    rows = [
        [*(number(n) for n in row[:3]), *(duration(time_s) for time_s in row[3:])] for row in mttf
    ]
    columns = ["nodes of a job", "jobs", "failures", "MTTF", "low", "high"]
    return Table("", "Mean time to failure by size of job", columns, rows, words=0).text()


def _together_line(groups: dict[int, int]) -> str:
    several = {size: count for size, count in groups.items() if size > 1}
    texts = ", ".join(f"{count} of {size} nodes" for size, count in several.items())
    return f"failures of several nodes    {sum(several.values())}" + (texts and f" ({texts})")


def _rate_table(parts: Sequence[PartRate], change: Trend | None) -> str:
    rows = [
        [duration(row.begin_s), duration(row.end_s), number(row.failures)]
        + [number(value) for value in row[3:]]
        for row in parts
    ]
    columns = ["from", "to", "failures", "rate", "low", "high"]
    note = ""
    if change is not None:
        way = "falls" if change.z < 0 else "rises"
        note = (
            f"Laplace test: the rate {way}, p = {probability(change.p)}"
            if change.p < SIGNIFICANT
            else (f"Laplace test: no significant change (p = {probability(change.p)})")
        )
    title = "Failures per 1,000 node-days over time"
    return Table("", title, columns, rows, note, words=0).text()


Fits = list[tuple["Sample", list["Fitted"]]]
N_FITS = 12
"""Number of fits: four families of laws for each of the three samples."""


def fits_of(events: Sequence[MachineEvent], n_nodes: int, end_s: float | None) -> Fits:
    from rebat.console.progress import counting_bar
    from rebat.models.failures.statistics import fits, samples

    fitted: Fits = []
    done = 0
    with counting_bar("laws fitted", N_FITS) as on_progress:

        def on_fit() -> None:
            nonlocal done
            done += 1
            on_progress(done)

        for sample in samples(events, n_nodes, None if end_s is None else to_us(end_s)):
            fitted.append((sample, fits(sample.times, on_fit)))
    return fitted


def fits_table(fitted: Fits) -> str:
    rows = []
    for sample, laws in fitted:
        name = f"{sample.name} ({_counts(sample)})"
        if not laws:
            rows.append([name, "too few to fit", "", "", "", ""])
        for rank, law in enumerate(laws):
            rows.append([name if rank == 0 else "", *_cells(law, best=rank == 0)])
    columns = ["times", "law", "scale", "shape", "mean", "AIC"]
    return Table("", "Fitted laws", columns, rows, words=2).text()


def _counts(sample: Sample) -> str:
    ended, going = len(sample.times.failed_s), len(sample.times.going_s)
    return f"{ended}" + (f", {going} censored" if going else "")


def _cells(law: Fitted, best: bool) -> list[str]:
    scale_s, shape = law.parameters
    return [
        f"{law.family}{' *' if best else ''}",
        duration(scale_s),
        "" if law.family == "exponential" else number(shape),
        duration(law.mean_s),
        decimal(law.aic),
    ]


def _width(figure: Path | None, width: float | None) -> float | None:
    """Return the width of the figure in inches, or None for the screen."""
    from rebat.figures.paper import inches

    if width is None:
        return None
    if figure is None:
        raise InputError("has no effect", "--figure-width", "--figure as well")
    return inches(width, "--figure-width")


def draw_fits(
    fitted: Fits, events: Sequence[MachineEvent], title: str, path: Path, width: float | None
) -> None:
    import numpy as np

    from rebat.core.units import US_PER_S
    from rebat.figures.canvas import save
    from rebat.figures.compare import FailurePanel, failures_figure
    from rebat.models.failures.statistics import empirical

    none = np.empty(0)
    panels = []
    for sample, laws in fitted:
        times_s, longer = empirical(sample.times) if len(sample.times.failed_s) else (none, none)
        curves = {law.family: law.survival(times_s) for law in laws}
        panels.append(FailurePanel(sample.name, times_s, longer, curves))
    dates_us = np.unique([event.at_us for event in events if not event.available])
    save(failures_figure(panels, dates_us / US_PER_S, title), path, width)
