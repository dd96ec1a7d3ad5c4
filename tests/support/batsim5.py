# SPDX-License-Identifier: Apache-2.0
"""The engine in place of Batsim 5, in recorded conversations and in random cases."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec

from rebat.core.errors import RebatError
from rebat.core.events import Message
from rebat.engine.batsim5 import Engine5
from rebat.engine.engine import EngineOptions
from rebat.models.failures.events import in_order, read_texts, texts_of
from rebat.results.files.batsim_csv import jobs_csv
from rebat.wire.batsim5 import Features, decode_hello, decode_message, decode_reply, encode_message
from rebat.wire.conversation import Conversation, greet, run_remote, session_for
from rebat.wire.recording import read_frames
from rebat.workloads.batsim5_json import with_failing_parts
from rebat.workloads.load import load_workload
from tests.support.coincidences import Case


class Differs(AssertionError):
    """A message of the engine that differs from the message recorded from Batsim."""


def options_of(features: Features) -> EngineOptions:
    """Return the engine options for the features that a scheduler requests."""
    return EngineOptions(
        dynamic_jobs=features.dynamic_registration,
        acknowledge_dynamic_jobs=features.acknowledge_dynamic_jobs,
        profile_reuse=features.profile_reuse,
        forward_profiles=features.forward_profiles_on_job_submission,
    )


def engine_of(case: Path, hello: bytes, begins: bytes) -> Engine5:
    """Return an engine with the inputs of a recorded conversation."""
    features = decode_hello(hello)
    (began, *_) = decode_message(begins).events
    return Engine5(
        [load_workload(path) for path in sorted(case.glob("workload*.json"))],
        n_nodes=began.n_nodes,
        files=[read_texts(path, n) for n, path in enumerate(sorted(case.glob("events*.txt")))],
        options=options_of(features),
        arguments=msgspec.structs.asdict(features),
    )


def replay_on_engine(case: Path, plain: Callable[[bytes], dict]) -> Engine5:
    """Run the engine with the recorded replies; each of its messages must equal the recorded one.

    If Batsim ended with an error, the engine must refuse the last reply, or find a deadlock.
    """
    _, hello, *rest = read_frames(case / "conversation.jsonl")
    engine = engine_of(case, hello.data, rest[0].data)
    recorded, ended = iter(rest), True

    def scheduler(message: Message):
        expected = next(recorded, None)
        if expected is None:
            raise Differs("the engine sends more messages")
        ours, theirs = (begin_alike(plain(x)) for x in (encode_message(message), expected.data))
        if ours != theirs:
            raise Differs(f"line {expected.line}: {ours} instead of {theirs}")
        return decode_reply(next(recorded).data)

    try:
        engine.run(scheduler)
    except RebatError:
        ended = False
    assert next(recorded, None) is None, "the engine ended too early"
    assert ended == (json.loads((case / "result.json").read_text())["exit_status"] == 0)
    return engine


def begin_alike(message: dict) -> dict:
    """Return a message without the names of hosts and files, and without Batsim's arguments."""
    for event in message["events"]:
        if event["event_type"] == "SimulationBeginsEvent":
            fields = event["event"]
            names = [workload["name"] for workload in fields["workloads"]]
            event["event"] = [fields["host_number"], names, fields["profiles"]]
    return message


# ---- random cases


def play5(
    case: Case, listen: Callable[[bytes], None] = lambda _: None, split: bool = False
) -> tuple[Engine5, Conversation]:
    """Run a case over Batsim 5's protocol in strict mode; check the session at each message.

    With ``split``, each line of the event file is in a separate message, and failures are before
    the repairs of the same time, because Batsim 5's sort of lines is not stable.
    """
    conversation = Conversation(
        lambda _, began: session_for(case.policy, case.told, began, strict=True), probes=split
    )

    def ask(data: bytes) -> bytes:
        reply = conversation.answer(data)
        listen(reply)
        if conversation.session:
            conversation.session.validate()
        return reply

    options = msgspec.structs.replace(options_of(greet(ask)), split_failures=split)
    events = in_order([*case.events, *case.operations])
    if split:
        events.sort(key=lambda event: (event.at_us, getattr(event, "available", False)))
    files = [texts_of(events, 0)] if events else []
    workload = with_failing_parts(case.workload)
    engine = Engine5([workload], n_nodes=case.n_nodes, files=files, options=options)
    run_remote(engine, ask)
    return engine, conversation


def rows4(engine: Engine5) -> list[str]:
    """Return the rows of jobs.csv in the form of Batsim 4: profiles without the workload's name."""
    return [row.replace(",w0!", ",") for row in jobs_csv(engine.ended)]
