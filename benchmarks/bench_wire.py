# SPDX-License-Identifier: Apache-2.0
"""Decisions per second over ZeroMQ, alternately in the protocols of Batsim 4 and 5.

Run: ``python -m benchmarks.bench_wire [REPETITIONS]``. The scheduler is a separate process. The
times include the engine, which replaces Batsim.
"""

from __future__ import annotations

import multiprocessing
import socket
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial

from rebat.core.decisions import Reply
from rebat.core.jobs import Workload
from rebat.engine.batsim5 import Engine5
from rebat.engine.engine import Engine, EngineOptions
from rebat.models.checkpoint import add_young_daly
from rebat.models.failures.events import MachineEvent, texts_of
from rebat.models.failures.law import generate_events
from rebat.models.failures.renewal import Authors
from rebat.wire import batsim4, batsim5
from rebat.wire.conversation import Conversation, greet, run_remote, session_for
from rebat.wire.zmq_link import connect, serve
from rebat.workloads.generate import synthetic

POLICY = "sfsj"
Ask = Callable[[bytes], bytes]


def scheduler(endpoint: str, count: int) -> None:
    """Serve ``count`` simulations, one after another."""
    for _ in range(count):
        conversation = Conversation(lambda _: session_for(POLICY, {}), probes=True)
        serve(endpoint, conversation.answer, conversation.finished, timeout_s=60)


def play4(workload: Workload, events: list[MachineEvent], ask: Ask) -> None:
    """Run a simulation in the protocol of Batsim 4."""
    options = EngineOptions(acknowledge_dynamic_jobs=True)
    run_remote(Engine(workload, events=events, options=options), ask)


def play5(workload: Workload, events: list[MachineEvent], ask: Ask) -> None:
    """Run a simulation in the protocol of Batsim 5."""
    features = greet(ask)
    options = EngineOptions(
        dynamic_jobs=features.dynamic_registration,
        profile_reuse=features.profile_reuse,
        forward_profiles=features.forward_profiles_on_job_submission,
    )
    run_remote(Engine5([workload], files=[texts_of(events, 0)], options=options), ask)


def decisions_in(replies: list[bytes], decode: Callable[[bytes], Reply]) -> int:
    """Return the number of decisions in replies."""
    return sum(len(decode(reply).decisions) for reply in replies)


def timed(
    version: int, endpoint: str, play: Callable[[Ask], None], decode: Callable[[bytes], Reply]
) -> tuple[float, float]:
    """Run a simulation. Return messages and decisions per second."""
    replies: list[bytes] = []
    with connect(endpoint, timeout_s=60) as ask:

        def noted(data: bytes) -> bytes:
            replies.append(ask(data))
            return replies[-1]

        start = time.perf_counter()
        play(noted)
        seconds = time.perf_counter() - start
    made = decisions_in(replies[1:] if version == 5 else replies, decode)
    print(f"Batsim {version}: {len(replies)} messages, {made} decisions, {seconds:.2f} s")
    return len(replies) / seconds, made / seconds


def main(repetitions: int = 7) -> None:
    """Time both protocols alternately, after a warm-up run of each."""
    workload = add_young_daly(
        synthetic(1, n_jobs=2000), n_nodes=128, mtbf_s=1800, cost_s=60.0, recovery_s=60.0
    )
    events = generate_events(Authors(1800, 600), 128, horizon_s=1_000_000, seed=2)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        endpoint = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    turns = [(4, play4, batsim4.decode_reply), (5, play5, batsim5.decode_reply)]
    server = multiprocessing.get_context("spawn").Process(
        target=scheduler, args=(endpoint, 2 * (repetitions + 1))
    )
    server.start()
    rates: dict[int, list[tuple[float, float]]] = {4: [], 5: []}
    for _ in range(repetitions + 1):
        for version, play, decode in turns:
            played = partial(play, workload, events)
            rate = timed(version, endpoint, played, decode)
            rates[version].append(rate)
    server.join()
    for place, unit in enumerate(("messages/s", "decisions/s")):
        four, five = ([rate[place] for rate in rates[version][1:]] for version in (4, 5))
        pairs = [b / a for a, b in zip(four, five, strict=True)]
        print(
            f"{unit}: Batsim 4 {statistics.median(four):,.0f}, Batsim 5 "
            f"{statistics.median(five):,.0f}; 5 / 4 in pairs {statistics.median(pairs):.2f} "
            f"({min(pairs):.2f} to {max(pairs):.2f})"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
