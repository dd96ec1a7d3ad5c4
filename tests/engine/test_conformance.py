# SPDX-License-Identifier: Apache-2.0
"""With the recorded replies of real schedulers, the engine sends the messages of the real
Batsim."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from rebat.core.node_events import NodeEvents
from rebat.engine.engine import Engine, EngineOptions
from rebat.models.failures.events import read_event_file
from rebat.models.failures.outages import node_events
from rebat.results.files.batsim_csv import schedule_csv
from rebat.wire.batsim4 import decode_reply, encode_message
from rebat.workloads.batsim_json import read_workload
from tests.results.files.test_batsim_csv import OURS
from tests.support.recordings import folder_of

# Recordings on flat platforms without latency. The engine does not know the delays of others.
FLAT = [
    "events_filler_flat",
    "kill_exec_same_msg_flat",
    "dyn_same",
    "dyn_requeue",
    "dyn_full",
    "py_fault",
    "walltime",
    "easy_bf_250",
    "conservative_bf_250",
    "generic_events",
    "migrate_resize",
    "moldable_start",
    *(
        f"ties_{number}_{policy}"
        for number in (701, 703, 704, 706, 707, 709)
        for policy in ("sfsj", "h322")
    ),
]


def replay(folder: Path, name: str) -> tuple[Engine, list[tuple[dict, dict]]]:
    """Return the engine after a conversation, and pairs of (message of Batsim, of the engine)."""
    lines = [json.loads(line) for line in (folder / f"{name}.jsonl").open()]
    said = [line["msg"] for line in lines if line["dir"] == "batsim->sched"]
    answers = iter([line["raw"] for line in lines if line["dir"] == "sched->batsim"])
    began = said[0]["events"][0]["data"]
    config = began["config"]
    events_file = events_of(folder, name)
    engine = Engine(
        read_workload(folder / f"{name}.workload.json"),
        n_nodes=began["nb_compute_resources"],
        events=read_event_file(events_file).events if events_file.exists() else (),
        options=EngineOptions(
            dynamic_jobs=config["dynamic-jobs-enabled"],
            acknowledge_dynamic_jobs=config["dynamic-jobs-acknowledged"],
            profile_reuse=config["profile-reuse-enabled"],
            forward_profiles=config["profiles-forwarded-on-submission"],
            forward_unknown_events=config["forward-unknown-events"],
        ),
    )
    heard: list[dict] = []

    def scheduler(message):
        heard.append(json.loads(encode_message(message)))
        return decode_reply(next(answers).encode())

    engine.run(scheduler)
    assert len(heard) == len(said)
    return engine, list(zip(said, heard, strict=True))


def events_of(folder: Path, name: str) -> Path:
    """Return the event file of a recording, which may be absent."""
    return folder / ("events_filler.events" if name == "py_fault" else f"{name}.events")


@pytest.mark.parametrize("name", FLAT)
def test_messages_equal_batsims(name: str) -> None:
    for expected, got in replay(folder_of(name), name)[1]:
        for event in expected["events"]:
            if event["type"] == "SIMULATION_BEGINS":
                for key in ("compute_resources", "workloads"):  # names of hosts and files
                    event["data"].pop(key), got["events"][0]["data"].pop(key)
        assert rounded(got) == rounded(expected)


@pytest.mark.parametrize("name", FLAT)
def test_the_totals_are_batsims(name: str) -> None:
    """In ``events_filler_flat``, a job runs for 10 s on a node that is down."""
    folder = folder_of(name)
    engine, _ = replay(folder, name)
    assert (engine.dead_us > 0) == (name == "events_filler_flat")
    events = events_of(folder, name)
    told = node_events(read_event_file(events).machine_events) if events.exists() else NodeEvents()
    text = schedule_csv(engine.ended, engine.n_nodes, told, engine.dead_us)
    (made,), (real,) = map(
        csv.DictReader, (text.splitlines(), (folder / f"{name}_schedule.csv").open())
    )
    assert {column for column in real if made[column] != real[column]} <= OURS


def rounded(value):
    """Round numbers to six decimals, like Batsim's messages."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return round(value, 6) if isinstance(value, float) else value
