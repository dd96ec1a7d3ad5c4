"""The engine as Batsim's side of the wire: any Batsim 4 scheduler runs against it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rebat.core.decisions import Reply
from rebat.core.errors import InputError
from rebat.core.events import Message
from rebat.core.files import write_text
from rebat.engine.engine import Engine, OnProgress
from rebat.models.failures.events import MachineEvent
from rebat.protocol import batsim4
from rebat.report.batsim_csv import jobs_csv, schedule_csv


def run_remote(
    engine: Engine, ask: Callable[[bytes], bytes], on_progress: OnProgress | None = None
) -> None:
    """Run an engine with the scheduler at the other end of ``ask``.

    Raises
    ------
    InputError
        When the scheduler answers what Batsim cannot read.
    Abort
        When it decides what Batsim aborts on.
    """

    def scheduler(message: Message) -> Reply:
        data = ask(batsim4.encode_message(message))
        try:
            return batsim4.decode_reply(data)
        except InputError as error:
            raise error.at("the scheduler's reply") from None

    engine.run(scheduler, on_progress)


def write_batsim_files(prefix: str, engine: Engine, events: list[MachineEvent]) -> list[Path]:
    """PREFIX_jobs.csv and PREFIX_schedule.csv, as Batsim names and fills them."""
    node_events = [(event.at_us, event.available, event.nodes) for event in events]
    files = {
        Path(f"{prefix}_jobs.csv"): jobs_csv(engine.ended),
        Path(f"{prefix}_schedule.csv"): schedule_csv(engine.ended, engine.n_nodes, node_events),
    }
    for path, text in files.items():
        write_text(path, text)
    return list(files)
