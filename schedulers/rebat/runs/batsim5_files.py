# SPDX-License-Identifier: Apache-2.0
"""The output files of Batsim 5, written by the engine when it replaces Batsim."""

from __future__ import annotations

from pathlib import Path

from rebat.core.files import write_lines, write_text
from rebat.engine.engine import Engine
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.outages import node_events
from rebat.results.files.batsim_csv import jobs_csv5, schedule_json


def write_batsim5_files(
    prefix: str, engine: Engine, events: list[MachineEvent], schedule: bool = True
) -> list[Path]:
    """Write PREFIXjobs.csv and, if ``schedule`` is True, PREFIXschedule.json."""
    jobs, totals = Path(f"{prefix}jobs.csv"), Path(f"{prefix}schedule.json")
    write_lines(jobs, jobs_csv5(engine.ended))
    if not schedule:
        return [jobs]
    write_text(totals, schedule_json(engine.ended, engine.n_nodes, node_events(events)))
    return [jobs, totals]
