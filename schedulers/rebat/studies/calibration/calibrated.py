# SPDX-License-Identifier: Apache-2.0
"""The result of `rebat.calibrate`: the nearest configuration, its distance, and the page."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np

from rebat.api.remarks import OFFSET_S, of_findings
from rebat.api.workloads import LoadedWorkload, as_file
from rebat.console.output import json_text, print_remarks
from rebat.console.progress import compiling_notice, counting_bar
from rebat.core.arrays import Floats
from rebat.core.cores import groups_of
from rebat.core.errors import InputError, PolicyError, error_at
from rebat.core.files import write_text
from rebat.core.nodes import NodeSet
from rebat.core.numbers import (
    Form,
    about_percent,
    counted,
    decimal,
    duration,
    exact,
    factor,
    hundredths,
    number,
    percent,
    share,
    spread,
)
from rebat.core.units import to_s
from rebat.core.version import rebat_version
from rebat.figures.canvas import new_figure, policy_colours, svg_of
from rebat.models.failures.events import machine_mtbf_s
from rebat.policies.partitions import PartitionText, read_partitions
from rebat.policies.presets import schedulers
from rebat.records.hosts import folded
from rebat.report.parts import Picture, Report, html, markdown
from rebat.report.table import Table
from rebat.results.intervals import Interval, interval
from rebat.runs.scenario import ScenarioOptions
from rebat.studies.calibration import design
from rebat.studies.calibration.design import (
    CalibratedRun,
    Configuration,
)
from rebat.studies.calibration.distance import (
    N_PARTS,
    Nearness,
    Quantiles,
    RecordedUse,
    RecordedWaits,
    Unexplained,
    closer,
    groups,
    read_use,
    read_waits,
    unexplained,
)
from rebat.studies.calibration.explained import (
    LEAST_SHARE,
    LostInBoth,
    hours_of,
    losses_of,
    picture_of_rest,
    sentence_on_losses,
    sentence_on_rest,
    table_of_losses,
    table_of_rest,
)
from rebat.studies.calibration.rules import (
    Worth,
    sentences_on_rules,
    table_of_rules,
    unstated,
    with_and_without,
)
from rebat.studies.losses import recorded_events, recorded_losses
from rebat.workloads.checkpoint_table import UsualCosts, with_checkpoints_of
from rebat.workloads.machine import names_in
from rebat.workloads.site import (
    ENDING,
    NO_PARTITIONS,
    Scheduler,
    Site,
    SitePartition,
    checkpoint_rows,
    read_site,
    write_site,
)

PAGE, TEXT, RECORD = "calibration.html", "calibration.md", "calibration.json"
SITE = "site.toml"
"""Files of a calibration."""


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `calibrate`: how far simulated waits are from recorded waits.

    Attributes
    ----------
    workload, sha256 : str
    verdict : Verdict
        The configurations, with the nearest to the record first, and the waits by group under the
        nearest configuration.
    not_modelled : list of str
    """

    workload: str
    sha256: str
    verdict: Verdict
    not_modelled: list[str]
    report: Report
    site: Site
    """The site with the nearest configuration. Its file names are absolute."""

    @property
    def text(self) -> str:
        """The sentences, one per line."""
        return "\n".join(self.verdict.sentences)

    @property
    def json(self) -> str:
        """Return all numbers as JSON, with null for NaN."""
        hidden = ("report", "site")
        fields = {n: getattr(self, n) for n in self.__struct_fields__ if n not in hidden}
        return json_text(fields) + "\n"

    def write(self, out: Path, place: Path | None = None) -> None:
        """Write the page, the text, the numbers and the site.

        ``place`` is the folder to which ``out`` will be renamed.
        """
        write_text(out / SITE, self.site_text(place or out))
        write_text(out / PAGE, html(self.report))
        write_text(out / TEXT, markdown(self.report))
        write_text(out / RECORD, self.json)

    def site_text(self, folder: Path) -> str:
        """Return ``site.toml`` for a folder, with the names of files relative to the folder."""
        names = {
            name: os.path.relpath(text, folder.resolve())
            for name in ("jobs", "past", "failures", "checkpoints")
            if (text := getattr(self.site, name))
        }
        near = self.verdict.nearest
        comments = COMMENTS | {
            "partitions": "nodes in use; others are idle"
            if isinstance(self.site.partitions, dict)
            else "one pool of nodes is nearer to the record than its partitions",
            "policy": f"nearest to the record: distance {near.distance_text} ({near.grade})",
        }
        return write_site(msgspec.structs.replace(self.site, **names), comments)

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return html(self.report)


COMMENTS = {
    "title": "name of the site on pages",
    "jobs": "from 'rebat workload import'",
    "past": "the recorded schedule of these jobs",
    "failures": "from 'rebat failures import'",
    "time_zone": "of dates on pages",
    "checkpoints_file": 'checkpoints = "checkpoints.csv"',
    "checkpoints": """\
# Which jobs write checkpoints. The first row that describes a job counts.
# [[checkpoints]]
# user = "NAME"          # or queue = "NAME", job = "ID"
# period = "1h"          # or "young-daly"
# cost = "5min"          # time to write a checkpoint
# recovery = "5min"      # time to read it""",
    "price": """\
# What a node-hour costs, for the page of 'rebat advise'.
# [price]
# node_hour = 0.25
# currency = "EUR\"""",
}
"""Comments in ``site.toml``."""


def _site(
    workload: LoadedWorkload,
    past: Path,
    options: ScenarioOptions,
    run: CalibratedRun,
    checkpoints: Path | None,
) -> Site:
    """Return the site with the nearest configuration."""
    chosen, machine = run.configuration, workload.machine or {}
    given = Path(workload.origin.file or "")
    base = read_site(given) if given.suffix == ENDING else Site(jobs=str(given))
    partitions: dict[str, SitePartition] | str | None = None
    if chosen.places == "pool":
        partitions = NO_PARTITIONS
    elif chosen.nodes < chosen.of_nodes:
        names = names_in(machine.get("nodes"))
        rows = read_partitions(chosen.spec.rpartition("partitions=")[2])
        partitions = {row.name: _site_partition(row, names) for row in rows}
    return msgspec.structs.replace(
        base,
        title=base.title or workload.name,
        jobs=str(base.file("jobs") if base.folder != Path() else given),
        past=str(past.resolve()),
        failures=str(options.failures.resolve()) if options.failures else "",
        time_zone=base.time_zone or str(machine.get("time_zone") or ""),
        scheduler=Scheduler(chosen.policy),
        checkpoints=str(checkpoints.resolve()) if checkpoints else None,
        partitions=base.partitions if partitions is None else partitions,
    )


def _site_partition(row: PartitionText, names: Sequence[str]) -> SitePartition:
    nodes, words = NodeSet.parse(row.nodes), row.options
    times = {
        name.removesuffix("_us"): exact(to_s(words[name])).replace(" ", "")
        for name in ("max_time_us", "default_time_us")
        if name in words
    }
    others: dict[str, Any] = {n: words[n] for n in ("tier", "order", "max_nodes") if n in words}
    text = folded([names[node] for node in nodes]) if names else str(nodes)
    return SitePartition(text, **others | times)


def calibrated(
    workload: LoadedWorkload,
    past: Path,
    policies: Sequence[str],
    options: ScenarioOptions,
    workers: int | None,
    checkpoints: Path | None = None,
) -> Calibration:
    """Simulate all configurations, and compare their waits with the recorded waits.

    ``checkpoints`` is a table of the checkpoints that jobs write, see `workloads.checkpoint_table`.
    """
    with TemporaryDirectory() as folder:
        today = workload
        if checkpoints is not None:
            n_nodes = groups_of(options.nodes or workload.n_nodes, options.cores_per_node)
            events = recorded_events(options.failure_law())(n_nodes, YEARS_S)
            mtbf_s = machine_mtbf_s(events) or YEARS_S
            rows = checkpoint_rows(checkpoints, UsualCosts())
            made, _ = with_checkpoints_of(workload, rows, n_nodes, mtbf_s)
            today = as_file(made, Path(folder))
        return _calibrated(workload, today, past, policies, options, workers, checkpoints)


YEARS_S = 100 * 365 * 86_400.0
"""A time after the end of any record."""


def _calibrated(
    workload: LoadedWorkload,
    today: LoadedWorkload,
    past: Path,
    policies: Sequence[str],
    options: ScenarioOptions,
    workers: int | None,
    checkpoints: Path | None,
) -> Calibration:
    """Calibrate. ``today`` is the workload with its checkpoints."""
    recorded = read_waits(past, workload)
    print_remarks(of_findings(workload))
    n_nodes = options.nodes or workload.n_nodes
    runs = dict[Configuration, CalibratedRun]()
    with error_at("--policy"):
        schedulers(policies)
    cores = options.cores_per_node
    first = design.on_all_nodes(policies, workload, n_nodes, cores)
    if not first:
        raise InputError("no policy is given", expected="a name from 'rebat policies'")
    simulate = partial(design.simulated, today, options, workers)
    runs |= _performed(first, simulate)
    near = design.nearest_first(runs, recorded)
    worth = with_and_without(near, workload)
    more = [
        *design.with_fewer_nodes(near, workload, cores),
        *design.in_one_pool(near, workload, cores),
    ]
    more += [row for row in worth.values() if row not in runs]
    runs |= _performed([*dict.fromkeys(more)], simulate)
    failed = {run.configuration.title: run.error for run in runs.values() if run.error}
    ranked = design.nearest_first(runs, recorded)
    if not ranked:
        reasons = "; ".join(failed.values()) or "no part of the record has enough jobs"
        raise PolicyError(f"no configuration can be compared: {reasons}")
    verdict = verdict_of(ranked, recorded, read_use(past), failed, workload.n_nodes)
    (nearest, _), *_ = ranked
    losses: list[LostInBoth] = []
    if (law := options.failure_law()) is not None:
        lost = recorded_losses(past, workload, recorded_events(law), today)
        losses = losses_of(workload, lost.by_job, nearest.lost_h)
    verdict = msgspec.structs.replace(
        verdict,
        unexplained=unexplained(*nearest.compared(recorded), hours_of(workload)),
        losses=losses,
        rules=_worth(worth, {run.configuration: near for run, near in ranked}),
    )
    return Calibration(
        site=_site(workload, past, options, nearest, checkpoints),
        workload=workload.name,
        sha256=workload.sha256,
        verdict=verdict,
        not_modelled=[*unstated(workload), *NOT_MODELLED],
        report=_report(workload, verdict, ranked, recorded),
    )


def _worth(
    chosen: dict[str, Configuration],
    ranked: dict[Configuration, Nearness],
) -> list[Worth]:
    """Return the distances with all rules of the site, and without each of them."""
    rows = []
    for rule, configuration in chosen.items():
        if configuration in ranked and chosen[""] in ranked:
            near, with_all = ranked[configuration], ranked[chosen[""]]
            distance = _text_of(interval(near.distance))
            ratio = f"x {_text_of(interval(closer(with_all, near)))}" if rule else ""
            policy = configuration.policy
            rows.append(Worth(rule, policy, distance, ratio, near.correlation, near.same_order))
    return rows


def _text_of(estimate: Interval | None) -> str:
    value, low, high = _factors(estimate)
    return "" if value is None else _text(value, low, high)


def _performed(
    todo: Sequence[Configuration],
    simulate: Callable[
        [Sequence[Configuration], Callable[[int, int], None]], Iterator[CalibratedRun]
    ],
) -> dict[Configuration, CalibratedRun]:
    if not todo:
        return {}
    with compiling_notice(), counting_bar("runs", len(todo)) as on_done:
        return {run.configuration: run for run in simulate(todo, on_done)}


def _report(
    workload: LoadedWorkload,
    verdict: Verdict,
    ranked: Sequence[tuple[CalibratedRun, Any]],
    recorded: RecordedWaits,
) -> Report:
    shown = ranked[:MOST_LINES]
    waits = {run.configuration.title: run.compared(recorded)[1] for run, _ in shown}
    notes = [note.text for note in of_findings(workload)]
    missing = [*unstated(workload), *NOT_MODELLED]
    return report_of(
        workload.name, workload.sha256, verdict, recorded.wait_s, waits, notes, missing
    )


GOOD, FAIR = 1.5, 2.5
"""The largest distances that are called good and fair."""


class ComparedConfiguration(msgspec.Struct, frozen=True):
    """A configuration with its distance to the recorded waits.

    Attributes
    ----------
    title, policy : str
    nodes : int
    jobs : int
        Number of jobs compared.
    distance, low, high : float
        Mean factor between recorded and simulated waits at the same quantile, with its interval.
        There is no interval if too few parts of the record have a distance.
    farther, farther_low, farther_high : float, optional
        The distance divided by that of the nearest configuration, with its interval.
    factor_of_job, correlation, same_order : float
        See `Nearness`.
    utilisation : float
        Useful node time, divided by the node time of all nodes of the recorded machine.
    """

    title: str
    policy: str
    nodes: int
    jobs: int
    distance: float
    low: float | None
    high: float | None
    farther: float | None
    farther_low: float | None
    farther_high: float | None
    factor_of_job: float
    correlation: float
    same_order: float
    utilisation: float

    @property
    def distance_text(self) -> str:
        """The distance and its interval, as text."""
        return _text(self.distance, self.low, self.high)

    @property
    def farther_text(self) -> str:
        """The distance divided by that of the nearest configuration, as text.

        The text is empty for the nearest configuration.
        """
        if self.farther is None:
            return ""
        return _text(self.farther, self.farther_low, self.farther_high, factor)

    @property
    def grade(self) -> str:
        """The distance in a word."""
        return "good" if self.distance <= GOOD else "fair" if self.distance <= FAIR else "poor"

    @property
    def as_near(self) -> bool:
        """Whether the configuration is not significantly farther than the nearest one."""
        return self.farther is not None and not (self.farther_low and self.farther_low > 1)


class Verdict(msgspec.Struct, frozen=True):
    """The result of a calibration. The nearest configuration is first."""

    configurations: list[ComparedConfiguration]
    groups: list[Quantiles]
    """Waits under the nearest configuration."""
    utilisation: float
    """Useful node time of the record, divided by the node time of all nodes of the machine."""
    shared: int
    """Number of recorded attempts that share nodes."""
    failed: dict[str, str] = {}
    """Reasons why configurations could not be simulated, by title of the configuration."""
    recorded_jobs: int = 0
    """Number of recorded jobs that can be compared, after the first part of the record."""
    unexplained: list[Unexplained] = []
    """Partitions, sizes, users and hours, with their distance under the nearest configuration."""
    losses: list[LostInBoth] = []
    """Node-hours that failures destroyed, by partition. Empty without failures."""
    rules: list[Worth] = []
    """Distances with and without the rules that the site states. Empty if it states none."""

    @property
    def nearest(self) -> ComparedConfiguration:
        """The nearest configuration."""
        return self.configurations[0]

    @property
    def has_poor_parts(self) -> bool:
        """Whether the distance is not good, or that of an important part of the record is poor."""
        poor = [row for row in self.unexplained if row.share >= LEAST_SHARE and row.factor > FAIR]
        return self.nearest.grade != "good" or bool(poor)

    @property
    def sentences(self) -> list[str]:
        """The verdict in sentences."""
        return [
            *_nearest(self),
            *_left_out(self),
            *_others(self),
            *sentences_on_rules(self.rules),
            _of_jobs(self.nearest),
            *_means(self),
            *_used(self),
            *(sentence_on_rest(self.unexplained) if self.has_poor_parts else ()),
            *sentence_on_losses(self.losses),
            *(f"{title} failed: {reason}" for title, reason in self.failed.items()),
        ]


def verdict_of(
    ranked: Sequence[tuple[CalibratedRun, Nearness]],
    recorded: RecordedWaits,
    used: RecordedUse,
    failed: dict[str, str],
    n_nodes: int,
) -> Verdict:
    """Return the verdict on simulated configurations, which are sorted by distance.

    ``n_nodes`` is the size of the recorded machine.
    """
    (first, nearest), *_ = ranked
    rows = [_row(run, near, nearest, n_nodes) for run, near in ranked]
    waits = list(groups(*first.compared(recorded)))
    return Verdict(rows, waits, *used, failed, len(recorded.ids))


def _row(
    run: CalibratedRun, near: Nearness, nearest: Nearness, n_nodes: int
) -> ComparedConfiguration:
    distance, low, high = _factors(interval(near.distance))
    low = low and max(low, 1.0)  # a factor of 1 means equal waits
    farther = (None, None, None) if near is nearest else _factors(interval(closer(nearest, near)))
    configuration = run.configuration
    return ComparedConfiguration(
        configuration.title,
        configuration.policy,
        configuration.nodes,
        near.jobs,
        distance or math.nan,
        low,
        high,
        *farther,
        near.factor_of_job,
        near.correlation,
        near.same_order,
        run.useful_nodes / n_nodes,
    )


def _factors(estimate: Interval | None) -> tuple[float | None, float | None, float | None]:
    """Convert a mean of binary logarithms and its interval to factors."""
    if estimate is None:
        return None, None, None
    low, high = (None if x is None else 2.0**x for x in (estimate.low, estimate.high))
    return 2.0**estimate.mean, low, high


def _text(value: float, low: float | None, high: float | None, form: Form = hundredths) -> str:
    return spread(Interval(value, low, high), form)


def _nearest(verdict: Verdict) -> Iterator[str]:
    near = verdict.nearest
    yield (
        f"{near.title} is nearest: at the same quantile, its waits and the recorded waits of "
        f"{near.jobs} jobs differ by a factor of {near.distance_text} on average. This is "
        f"{near.grade}."
    )


def _left_out(verdict: Verdict) -> Iterator[str]:
    near, total = verdict.nearest, verdict.recorded_jobs
    if near.jobs < total:
        yield (
            f"{total - near.jobs} of {total} recorded jobs are left out: in this simulation they "
            f"do not start, for example because they need more than {counted(near.nodes, 'node')}."
        )
    fewest = min(verdict.configurations, key=lambda item: item.jobs)
    if fewest.jobs < near.jobs:
        yield (
            f"Not all configurations are compared on the same jobs: {fewest.title} leaves out "
            f"{total - fewest.jobs} of {total} recorded jobs."
        )


def _others(verdict: Verdict) -> Iterator[str]:
    equal = [item.title for item in verdict.configurations[1:] if item.as_near]
    if equal:
        names = ", ".join(equal[:3]) + (f" and {len(equal) - 3} more" if len(equal) > 3 else "")
        yield f"These configurations are not significantly farther: {names}."
    elif len(verdict.configurations) > 1:
        second = verdict.configurations[1]
        yield (
            f"The next configuration, {second.title}, is farther by a factor of "
            f"{second.farther_text[2:]}."
        )


def _of_jobs(near: ComparedConfiguration) -> str:
    return (
        f"Single jobs: half of the waits differ by a factor of more than "
        f"{decimal(near.factor_of_job)}; the rank correlation is {hundredths(near.correlation)}. "
        "Use the simulation for distributions, not for single jobs."
    )


def _means(verdict: Verdict) -> Iterator[str]:
    row = verdict.groups[0]
    if row.recorded_mean_s > 0:
        change = row.simulated_mean_s / row.recorded_mean_s - 1
        direction = "longer" if change > 0 else "shorter"
        size = about_percent(abs(change))
        yield f"The simulated mean wait is {size} {direction} than the recorded one."


def _used(verdict: Verdict) -> Iterator[str]:
    if not (math.isnan(verdict.utilisation) or math.isnan(verdict.nearest.utilisation)):
        yield (
            "Useful node time, as a share of the node time of all nodes of the recorded machine: "
            f"{share(verdict.utilisation)} recorded, {share(verdict.nearest.utilisation)} "
            "simulated."
        )
    if verdict.shared:
        yield (
            f"In the record {verdict.shared} attempts share nodes. In the simulation jobs never "
            "share nodes, so the simulated machine has a higher load."
        )


MOST_LINES = 3
"""Number of configurations in the figure."""

NOT_MODELLED = (
    "qualities of service (QOS), and preemption between them",
    "features of nodes",
    "memory, if jobs share nodes",
    "dependencies that the record does not contain, and holds by users or administrators",
)


def report_of(
    name: str,
    sha256: str,
    verdict: Verdict,
    recorded_s: Floats,
    simulated_s: dict[str, Floats],
    notes: Sequence[str],
    missing: Sequence[str] = NOT_MODELLED,
) -> Report:
    """Return the page. It has sentences, a figure of the distributions, tables, and notes.

    ``missing`` is what the simulation does not model.
    """
    return Report(
        title=f"How close is the simulation to {name}?",
        lead=(
            "This page compares the recorded waits with simulations of the recorded jobs. A "
            "configuration is a policy and a number of nodes. Its distance is the mean factor "
            "between recorded and simulated waits (plus one minute) at the same quantile: 1 means "
            f"equal, up to {GOOD} is good, up to {FAIR} is fair. Brackets contain 95 % intervals "
            f"over {N_PARTS} equal parts of the recorded time. The first part is left out, because "
            "the simulated machine is empty at the beginning."
        ),
        judgements=[],
        tables=[
            _configurations(verdict),
            *([table_of_rules(verdict.rules)] if verdict.rules else ()),
            *table_of_losses(verdict.losses),
            _groups(verdict.groups),
            *([table_of_rest(verdict.unexplained)] if verdict.unexplained else ()),
        ],
        pictures=[
            _picture(recorded_s, simulated_s),
            *filter(None, [picture_of_rest(verdict.unexplained)]),
        ],
        provenance=[
            f"rebat {rebat_version()}, {len(verdict.configurations)} simulations",
            f"workload {name}, sha256 {sha256}",
        ],
        remarks=[f"Not modelled: {'; '.join(missing)}.", *map(_sentence, notes)],
        figures_note="Share of the jobs whose wait is at most the time on the horizontal axis.",
        claims=False,
        findings=verdict.sentences,
    )


def _sentence(note: str) -> str:
    return f"In the record, {note}."


def _configurations(verdict: Verdict) -> Table:
    columns = [
        "configuration",
        "distance",
        "farther than the nearest",
        "factor of a job",
        "rank correlation",
        "same order",
        "useful node time",
        "jobs compared",
    ]
    rows = [_table_row(item) for item in verdict.configurations]
    used = "" if math.isnan(verdict.utilisation) else percent(verdict.utilisation)
    note = f"recorded useful node time {used}" if used else "all jobs"
    return Table(note, "Configurations, nearest first", columns, rows)


def _table_row(item: ComparedConfiguration) -> list[str]:
    return [
        item.title,
        item.distance_text,
        item.farther_text,
        decimal(item.factor_of_job),
        hundredths(item.correlation),
        percent(item.same_order),
        percent(item.utilisation),
        number(item.jobs),
    ]


def _groups(rows: Sequence[Quantiles]) -> Table:
    shares = list(rows[0].recorded_s)
    columns = ["jobs of", "jobs", "mean, recorded", "simulated"]
    for part in shares:
        columns += [f"{about_percent(float(part))} quantile, recorded", "simulated"]
    return Table("nearest configuration", "Waits", columns, [_group(row, shares) for row in rows])


def _group(row: Quantiles, shares: Sequence[str]) -> list[str]:
    pairs = [(row.recorded_mean_s, row.simulated_mean_s)]
    pairs += [(row.recorded_s[part], row.simulated_s[part]) for part in shares]
    return [row.group, number(row.jobs), *(duration(round(s)) for pair in pairs for s in pair)]


def _picture(recorded_s: Floats, simulated_s: dict[str, Floats]) -> Picture:
    figure = new_figure(7.0, 3.6)
    axes = figure.subplots()
    shades = policy_colours(list(simulated_s))
    for name, waits_s in _lines(recorded_s, simulated_s):
        recorded = name == "recorded"
        axes.plot(
            np.sort(waits_s) + OFFSET_S,
            np.linspace(0, 1, len(waits_s)),
            label=name,
            color="#b8b8b8" if recorded else shades[name],
            linewidth=5.0 if recorded else 1.3,
        )
    axes.set_xscale("log")
    ticks = {60: "0", 660: "10 min", 3660: "1 h", 36060: "10 h", 360060: "100 h"}
    axes.set_xticks(list(ticks), list(ticks.values()), minor=False)
    axes.minorticks_off()
    axes.set_xlabel("wait")
    axes.set_ylabel("share of jobs")
    axes.legend(frameon=False, fontsize=9)
    return Picture("", "Waits", svg_of(figure), "recorded and simulated")


def _lines(recorded_s: Floats, simulated_s: dict[str, Floats]) -> Iterator[tuple[str, Floats]]:
    yield "recorded", recorded_s
    yield from list(simulated_s.items())[:MOST_LINES]
