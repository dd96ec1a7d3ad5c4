# SPDX-License-Identifier: Apache-2.0
"""The result of `rebat.calibrate`: simulations, and how far their waits are from the record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from rebat.console.json_text import json_text
from rebat.console.output import print_remarks
from rebat.console.progress import compiling_notice, counting_bar
from rebat.core.errors import InputError, PolicyError
from rebat.core.files import write_text
from rebat.core.jobs import Workload
from rebat.library.calibration import design
from rebat.library.calibration.design import CalibratedRun, Configuration
from rebat.library.calibration.distance import RecordedWaits
from rebat.library.calibration.page import MOST_LINES, NOT_MODELLED, report_of
from rebat.library.calibration.partitions import separate_parts, simulated_in_parts
from rebat.library.calibration.record import read_use, read_waits
from rebat.library.calibration.verdict import Verdict, verdict_of
from rebat.library.checks import error_at
from rebat.library.remarks import of_findings
from rebat.library.workloads import LoadedWorkload
from rebat.policies.presets import schedulers
from rebat.report.parts import Report, html, markdown
from rebat.runs.scenario import ScenarioOptions

PAGE, TEXT, RECORD = "calibration.html", "calibration.md", "calibration.json"
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

    @property
    def text(self) -> str:
        """The sentences, one per line."""
        return "\n".join(self.verdict.sentences)

    @property
    def json(self) -> str:
        """Return all numbers as JSON, with null for NaN."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__ if name != "report"}
        return json_text(fields) + "\n"

    def write(self, out: Path) -> None:
        """Write the page, the text and the numbers."""
        write_text(out / PAGE, html(self.report))
        write_text(out / TEXT, markdown(self.report))
        write_text(out / RECORD, self.json)

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return html(self.report)


def calibrated(
    workload: LoadedWorkload,
    past: Path,
    policies: Sequence[str],
    options: ScenarioOptions,
    workers: int | None,
) -> Calibration:
    """Simulate all configurations, and compare their waits with the recorded waits."""
    recorded = read_waits(past, workload)
    print_remarks(of_findings(workload))
    n_nodes = options.nodes or workload.n_nodes
    runs = dict[Configuration, CalibratedRun]()
    with error_at("--policy"):
        schedulers(policies)
    first = [Configuration(policy, n_nodes, n_nodes) for policy in policies]
    if not first:
        raise InputError("no policy is given", expected="a name from 'rebat policies'")
    parts = [] if options.failure_law() or options.nodes else separate_parts(workload)
    runs |= _simulated(workload, options, first, workers)
    near = design.nearest_first(runs, recorded)
    fewer = design.with_fewer_nodes(near, n_nodes, options.cores_per_node)
    runs |= _simulated(workload, options, fewer, workers)
    runs |= _in_parts(parts, options, design.in_parts(near, n_nodes, len(parts)), workers)
    failed = {run.configuration.title: run.error for run in runs.values() if run.error}
    ranked = design.nearest_first(runs, recorded)
    if not ranked:
        reasons = "; ".join(failed.values()) or "no part of the record has enough jobs"
        raise PolicyError(f"no configuration can be compared: {reasons}")
    verdict = verdict_of(ranked, recorded, read_use(past), failed, workload.n_nodes)
    return Calibration(
        workload=workload.name,
        sha256=workload.sha256,
        verdict=verdict,
        not_modelled=list(NOT_MODELLED),
        report=_report(workload, verdict, ranked, recorded),
    )


def _simulated(
    workload: LoadedWorkload,
    options: ScenarioOptions,
    todo: Sequence[Configuration],
    workers: int | None,
) -> dict[Configuration, CalibratedRun]:
    if not todo:
        return {}
    with compiling_notice(), counting_bar("runs", len(todo)) as on_done:
        runs = design.simulated(workload, options.scenario(), todo, workers, on_done)
        return {run.configuration: run for run in runs}


def _in_parts(
    parts: Sequence[Workload],
    options: ScenarioOptions,
    todo: Sequence[Configuration],
    workers: int | None,
) -> dict[Configuration, CalibratedRun]:
    if not todo:
        return {}
    with counting_bar("runs in partitions", len(todo)) as on_done:
        runs = simulated_in_parts(parts, options.scenario(), todo, workers, on_done)
        return {run.configuration: run for run in runs}


def _report(
    workload: LoadedWorkload,
    verdict: Verdict,
    ranked: Sequence[tuple[CalibratedRun, Any]],
    recorded: RecordedWaits,
) -> Report:
    shown = ranked[:MOST_LINES]
    waits = {run.configuration.title: run.compared(recorded)[1] for run, _ in shown}
    notes = [note.text for note in of_findings(workload)]
    return report_of(workload.name, workload.sha256, verdict, recorded.wait_s, waits, notes)
