# SPDX-License-Identifier: Apache-2.0
"""The result of `rebat.advise`: simulations, answers, and the page."""

from __future__ import annotations

from pathlib import Path

import msgspec

from rebat.campaign.store import OVERVIEW
from rebat.console.output import print_remarks
from rebat.core.errors import InputError
from rebat.core.files import write_text
from rebat.library.advice.answer import AnsweredQuestion
from rebat.library.advice.answers import answers
from rebat.library.advice.compared import notes_on_waits
from rebat.library.advice.design import AdvisedSite, site_of
from rebat.library.advice.losses import RecordedLosses
from rebat.library.advice.owners import owners_of
from rebat.library.advice.page import assumptions, report_of
from rebat.library.advice.rounds import gather
from rebat.library.remarks import of_findings, of_partitions, of_record_end
from rebat.library.workloads import LoadedWorkload
from rebat.models.failures.recorded import Recorded
from rebat.report.parts import html, markdown
from rebat.results.intervals import FEWEST
from rebat.runs.scenario import ScenarioOptions
from rebat.runs.staging import check_without_checkpoints

PAGE, TEXT, RECORD = "advice.html", "advice.md", "advice.json"
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
    policy: str,
    past: Path | None,
    checkpoints: str,
    minutes: float,
    most_seeds: int,
    workers: int | None,
    out: Path,
) -> Advice:
    """Simulate, answer, and write the page and the numbers to ``out``."""
    if minutes <= 0:
        raise InputError(f"is {minutes:g}", "minutes", "more than 0")
    check_without_checkpoints(workload)
    if out.exists() and any(out.iterdir()) and not (out / OVERVIEW).exists():
        raise InputError("contains other files", str(out), "a new folder, or an earlier advice")
    site = site_of(workload, policy, options, checkpoints=checkpoints, past=past, folder=out)
    print_remarks([*of_findings(workload), *of_partitions(workload)])
    if options.mtbf_s is None:
        _note_end(site)
    evidence = gather(site, out, minutes, most_seeds, workers)
    print_remarks(notes_on_waits(site, evidence.runs))
    owners = owners_of(site, out, range(min(evidence.n_seeds, FEWEST)))
    answered = answers(site, evidence, owners)
    report = report_of(site, evidence, answered, owners)
    write_text(out / PAGE, html(report))
    write_text(out / TEXT, markdown(report))
    advice = Advice(
        workload=workload.name,
        sha256=workload.sha256,
        nodes=site.n_nodes,
        policy=policy,
        mtbf_s=site.mtbf_s,
        seeds=evidence.n_seeds,
        runs=evidence.n_runs,
        checkpoints=checkpoints,
        recorded=site.recorded,
        answers=answered,
        assumed=assumptions(site),
        page=out / PAGE,
    )
    record = {
        key: value
        for key, value in msgspec.to_builtins(advice, enc_hook=str).items()
        if key != "page"
    }
    write_text(out / RECORD, msgspec.json.format(msgspec.json.encode(record)).decode() + "\n")
    return advice


def _note_end(site: AdvisedSite) -> None:
    """Print a note if the failure record may end before the last submission."""
    law = site.options.failure_law()
    if isinstance(law, Recorded):
        file, length_s = str(Path(law.file).name), law.length_s
        remarks = of_record_end(file, site.mtbf_s, length_s, site.workload, 0.0, "--mtbf")
        print_remarks(remarks)
