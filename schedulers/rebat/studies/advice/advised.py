# SPDX-License-Identifier: Apache-2.0
"""The result of `rebat.advise`: simulations, answers, the page and the JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from rebat.api.remarks import of_findings, of_partitions, of_record_end
from rebat.api.workloads import LoadedWorkload
from rebat.console.output import print_remarks
from rebat.core.errors import InputError
from rebat.core.files import write_bytes, write_text
from rebat.core.numbers import (
    counted,
    decimal,
    duration,
    node_h,
    number,
    percent,
    points,
    ratio,
    share,
    spread,
)
from rebat.core.version import rebat_version
from rebat.figures.charts import Panel, lines_svg, ratio_title, ratios_svg
from rebat.models.failures.recorded import Recorded
from rebat.report.parts import Picture, Report, html, markdown
from rebat.report.runs_index import lines_of, sweeps
from rebat.report.table import Table
from rebat.results.catalogue import metric
from rebat.results.files.run_folder import OVERVIEW
from rebat.results.intervals import FEWEST, Interval
from rebat.runs.scenario import ScenarioOptions
from rebat.runs.staging import check_without_checkpoints
from rebat.studies.advice.answers import (
    AnsweredQuestion,
    answers,
    hours,
    period_hours,
    period_of,
    today_text,
)
from rebat.studies.advice.changed import changed_workloads
from rebat.studies.advice.design import SPARES, AdvisedSite, period_text, site_of
from rebat.studies.advice.evidence import (
    FLOW,
    LARGEST,
    USEFUL,
    EffectOfChoice,
    Evidence,
    WorkOwner,
    failures_cost,
    gather,
    notes_on_waits,
    owners_of,
    period_title,
    periods,
    rules,
    setting_of,
    simulated_losses,
)
from rebat.studies.advice.summary import as_html, as_pdf, summary_of
from rebat.studies.losses import MONTH_H, LostBy, RecordedLosses
from rebat.workloads.checkpoint_table import NONE, YOUNG_DALY
from rebat.workloads.site import Site

Row = TypeVar("Row", LostBy, WorkOwner)

PAGE, TEXT, RECORD = "advice.html", "advice.md", "advice.json"
SUMMARY, SUMMARY_PDF = "summary.html", "summary.pdf"
"""Files that an advice writes."""


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `advise`: the answers to six questions.

    Attributes
    ----------
    answers
        For each question: its text, a sentence, whether it is answered, and the numbers.
    checkpoints
        The checkpoints of the jobs today.
    recorded
        What failures cost in the recorded schedule (`RecordedLosses`), or None.
    assumed
        The assumptions of the simulations.
    page
        The file of the page.
    """

    workload: str
    sha256: str
    nodes: int
    policy: str
    mtbf_s: float
    seeds: int
    runs: int
    checkpoints: str
    recorded: RecordedLosses | None
    answers: list[AnsweredQuestion]
    assumed: list[str]
    page: Path

    @property
    def text(self) -> str:
        """The questions and answers, one per line."""
        return "\n".join(f"{answer.question} {answer.sentence}" for answer in self.answers)

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.page.read_text(encoding="utf-8")


def advised(
    workload: LoadedWorkload,
    options: ScenarioOptions,
    *,
    policy: str | None,
    past: Path | None,
    checkpoints: str | None,
    minutes: float,
    most_seeds: int,
    workers: int | None,
    out: Path,
    site: Site | None = None,
    anonymous: bool = False,
) -> Advice:
    """Simulate, answer, and write the page and the numbers to ``out``.

    A site states the policy, the recorded schedule and the checkpoints that are not given. With
    ``anonymous``, pages and numbers contain no names of users.
    """
    policy = policy or (site.scheduler.policy if site else "easy")
    past = past or (site.file("past") if site else None)
    if checkpoints is None:
        checkpoints = str(workload.origin.file) if site and site.checkpoints else NONE
    if minutes <= 0:
        raise InputError(f"is {minutes:g}", "minutes", "more than 0")
    check_without_checkpoints(
        workload,
        "a workload without checkpoints: run 'rebat workload prepare WORKLOAD --drop-checkpoints "
        "-o FILE' first, and state the checkpoints with --checkpoints",
    )
    if out.exists() and any(out.iterdir()) and not (out / OVERVIEW).exists():
        raise InputError("contains other files", str(out), "a new folder, or an earlier advice")
    cluster = site_of(workload, policy, options, checkpoints=checkpoints, past=past, folder=out)
    cluster = msgspec.structs.replace(cluster, changed=changed_workloads(cluster, out))
    print_remarks([*of_findings(workload), *of_partitions(workload)])
    if options.mtbf_s is None:
        _note_end(cluster)
    evidence = gather(cluster, out, minutes, most_seeds, workers)
    print_remarks(notes_on_waits(cluster, evidence.runs))
    owners = owners_of(cluster, out, range(min(evidence.n_seeds, FEWEST)))
    if anonymous:
        cluster, owners = without_names(cluster, owners)
    answered = answers(cluster, evidence, owners)
    report = report_of(cluster, evidence, answered, owners)
    write_text(out / PAGE, html(report))
    write_text(out / TEXT, markdown(report))
    summary = summary_of(cluster, evidence, assumptions(cluster), site)
    write_text(out / SUMMARY, as_html(summary))
    write_bytes(out / SUMMARY_PDF, [as_pdf(summary)])
    advice = Advice(
        workload=workload.name,
        sha256=workload.sha256,
        nodes=cluster.n_nodes,
        policy=policy,
        mtbf_s=cluster.mtbf_s,
        seeds=evidence.n_seeds,
        runs=evidence.n_runs,
        checkpoints=checkpoints,
        recorded=cluster.recorded,
        answers=answered,
        assumed=assumptions(cluster),
        page=out / PAGE,
    )
    record = {
        key: value
        for key, value in msgspec.to_builtins(advice, enc_hook=str).items()
        if key != "page"
    }
    write_text(out / RECORD, msgspec.json.format(msgspec.json.encode(record)).decode() + "\n")
    return advice


def without_names(
    site: AdvisedSite, owners: Sequence[WorkOwner]
) -> tuple[AdvisedSite, list[WorkOwner]]:
    """Replace the names of users by numbers."""
    groups = site.recorded.groups if site.recorded else []
    names = [group.name for group in groups if group.kind == "user"]
    names += [owner.name for owner in owners if owner.kind == "user"]
    numbers = {name: str(i) for i, name in enumerate(dict.fromkeys(names), start=1)}

    def renamed(rows: Sequence[Row]) -> list[Row]:
        return [
            msgspec.structs.replace(row, name=numbers[row.name]) if row.kind == "user" else row
            for row in rows
        ]

    recorded = site.recorded and msgspec.structs.replace(site.recorded, groups=renamed(groups))
    return msgspec.structs.replace(site, recorded=recorded), renamed(owners)


def _note_end(site: AdvisedSite) -> None:
    """Print a note if the failure record may end before the last submission."""
    law = site.options.failure_law()
    if isinstance(law, Recorded):
        file, length_s = str(Path(law.file).name), law.length_s
        remarks = of_record_end(file, site.mtbf_s, length_s, site.workload, 0.0, "--mtbf")
        print_remarks(remarks)


MOST_OWNERS = 10
"""Maximum number of rows in each of the tables of users and queues."""


def report_of(
    site: AdvisedSite,
    evidence: Evidence,
    answers: Sequence[AnsweredQuestion],
    owners: Sequence[WorkOwner],
) -> Report:
    """Return the page. It has a sentence and a figure for each question, and tables."""
    over = counted(evidence.n_seeds, "seed")
    return Report(
        title=f"Advice for {site.name}",
        lead=(
            f"{counted(len(site.workload.jobs), 'job')} on {counted(site.n_nodes, 'node')}, MTBF "
            f"of the machine {duration(site.mtbf_s)}. The scheduler today: {site.policy}. "
            f"Values are means over {over} with 95 % intervals; all policies have the same "
            "failures."
        ),
        judgements=[],
        tables=[*_tables(site, evidence, owners)],
        pictures=[*_pictures(site, evidence, over)],
        provenance=[
            f"rebat {rebat_version()}, {counted(evidence.n_runs, 'simulation')}",
            f"workload {site.name}, sha256 {site.workload.sha256}",
        ],
        remarks=[
            f"Assumptions: {'; '.join(assumptions(site))}.",
            *(f"Note: {note.text}." for note in notes_on_waits(site, evidence.runs)),
        ],
        figures_note="Points are means over seeds; lines and bands are their 95 % intervals.",
        claims=False,
        findings=[f"{answer.question} {answer.sentence}" for answer in answers],
    )


def assumptions(site: AdvisedSite) -> list[str]:
    """Return the assumptions of the simulations, each as a phrase."""
    model, failures = site.usual, site.options.failure_law()
    phrases = [
        "jobs are submitted at the recorded times and run as long as recorded",
        "priorities, limits and reservations apply only in policies with the axis rules",
        "a job that a failure interrupts is requeued at the head of the queue",
    ]
    every_job = (
        f"all jobs write checkpoints of {duration(model.cost_s)} by Young/Daly "
        f"({period_text(site)})"
    )
    if site.checkpoints == NONE:
        phrases.append("today, no job writes checkpoints (--checkpoints none)")
    elif site.checkpoints == YOUNG_DALY:
        phrases.append(f"today, {every_job}")
    else:
        phrases.append(
            f"{today_text(site)}: the recorded run times of these jobs include their checkpoints"
        )
    phrases.append(f"the alternative: {every_job}, and their run times grow by this time")
    if site.fitted is not None:
        phrases.append("each seed starts at a different time of the failure record")
    elif failures is not None:
        phrases.append(f"failures follow the law {failures.label() or 'of the MTBF'}")
    notes = (*of_findings(site.workload), *of_partitions(site.workload))
    return phrases + [note.text for note in notes]


# ---- pictures


def _pictures(site: AdvisedSite, evidence: Evidence, over: str) -> Iterator[Picture]:
    cost, compared = failures_cost(site, evidence.runs), rules(site, evidence.runs)
    yield _ratios(
        "What failures cost", [cost], [(FLOW, None), (LARGEST, None)], "no failures", over
    )
    yield _by_class("Who bears the cost", cost, over)
    yield _ratios(
        "Rules", compared, [(USEFUL, None), (FLOW, None), (LARGEST, None)], site.policy, over
    )
    runs = evidence.runs
    of_spares = setting_of(runs, SPARES)
    for sweep in sweeps(runs):
        if sweep.axis == "spares" and sweep.fixed == of_spares:
            panels = [Panel(name, lines_of(runs, sweep, name)) for name in (FLOW, LARGEST, USEFUL)]
            yield Picture("", "Spare nodes", lines_svg(panels, "spare nodes", False), over)
    changes = periods(site, runs)
    if changes:
        rows = {period_title(factor): change for factor, change in changes.items()}
        named = {f"{metric(USEFUL).title}, difference": rows}
        svg = ratios_svg(named, "Young/Daly's period", over, neutral=0.0)
        yield Picture("", "Checkpoint periods", svg, over)


def _ratios(
    title: str,
    compared: Sequence[EffectOfChoice],
    wanted: Sequence[tuple[str, str | None]],
    base: str,
    over: str,
) -> Picture:
    by_title = {
        ratio_title(name): {
            item.title: item.changes[name, of] for item in compared if (name, of) in item.changes
        }
        for name, of in wanted
    }
    return Picture("", title, ratios_svg(by_title, base, over), over)


def _by_class(title: str, cost: EffectOfChoice, over: str) -> Picture:
    rows = {
        f"{of} nodes": change for (name, of), change in cost.changes.items() if name == FLOW and of
    }
    svg = ratios_svg({ratio_title(FLOW): rows}, "no failures", over)
    return Picture("", title, svg, f"mean flow by size of the job, {over}")


# ---- tables


def _tables(site: AdvisedSite, evidence: Evidence, owners: Sequence[WorkOwner]) -> Iterator[Table]:
    yield _of_losses(site, evidence)
    yield from _of_record(site)
    wanted = ((USEFUL, None), (FLOW, None), (LARGEST, None))
    rows = [
        [item.title, *(spread(item.changes.get(where), ratio, 1.0) for where in wanted)]
        for item in rules(site, evidence.runs)
    ]
    titles = [metric(name).title for name, _ in wanted]
    yield Table("", f"Rules: ratios to {site.policy}", ["rule", *titles], rows)
    changes = periods(site, evidence.runs)
    shown = [[period_title(factor), spread(change, points)] for factor, change in changes.items()]
    if shown:
        title = "Checkpoint periods: useful utilisation, points above Young/Daly's period"
        yield Table("", title, ["period", "change"], shown)
    for kind in ("user", "queue"):
        listed = [owner for owner in owners if owner.kind == kind][:MOST_OWNERS]
        cells = [
            [owner.name, share(owner.used), share(owner.lost), decimal(owner.interruptions)]
            for owner in listed
        ]
        if len(listed) > 1:
            columns = [kind, "share of node time", "share of lost node time", "failures per run"]
            yield Table(
                "", f"{kind.capitalize()}s that lose the most work, simulated", columns, cells
            )


def _of_losses(site: AdvisedSite, evidence: Evidence) -> Table:
    """Return the recorded loss and the simulated losses under both assumptions."""
    losses = simulated_losses(site, evidence.runs)
    simulated = (
        ("simulated, no job writes checkpoints", losses.without),
        ("simulated, all jobs write Young/Daly checkpoints", losses.with_all),
        ("difference of both", losses.less),
        ("time to write and read these checkpoints", losses.overhead),
        ("net saving", losses.net),
    )
    per_month = MONTH_H / period_hours(site)
    rows = [
        [
            name,
            hours(site, part),
            node_h.bare(_mean_hours(site, part) * per_month),
            percent(part.mean),
        ]
        for name, part in simulated
    ]
    if (record := site.recorded) is not None:
        cells = [node_h(record.lost_h), node_h.bare(record.per_month_h)]
        rows.insert(0, ["recorded", *cells, percent(record.lost_h / record.total_h)])
        if record.down_h is not None:
            cells = [node_h(record.down_h), node_h.bare(record.down_h * per_month)]
            share_down = percent(record.down_h / record.total_h)
            rows.insert(1, ["recorded, nodes that were down", *cells, share_down])
    columns = ["", f"in {period_of(site)}", "node-hours per month (30 d)", "share of node time"]
    return Table("", "Work destroyed by failures", columns, rows)


def _mean_hours(site: AdvisedSite, share: Interval) -> float:
    return share.mean * site.n_nodes * period_hours(site)


def _of_record(site: AdvisedSite) -> Iterator[Table]:
    """Yield the recorded losses by month, size, user and queue."""
    if site.recorded is None:
        return
    total_h = site.recorded.lost_h
    for kind in ("month", "size", "user", "queue"):
        groups = [group for group in site.recorded.groups if group.kind == kind]
        shown = groups if kind in ("month", "size") else groups[:MOST_OWNERS]
        rows = [
            [
                group.name,
                number(group.attempts),
                node_h.bare(group.lost_h),
                share(group.lost_h / total_h) if total_h else "-",
                share(group.lost_h / group.used_h) if group.used_h else "-",
            ]
            for group in shown
        ]
        columns = [
            kind,
            "attempts ended by failures",
            "node-hours destroyed",
            "share of all lost work",
            "share of the node-hours used",
        ]
        if rows:
            yield Table("", f"Work destroyed by failures in the record, by {kind}", columns, rows)
