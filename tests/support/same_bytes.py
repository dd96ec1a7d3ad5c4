# SPDX-License-Identifier: Apache-2.0
"""Session and wire driver behind the codecs of Batsim 4 and 5: their replies have the same bytes.

``python -m tests.support.same_bytes COUNT [FIRST]``
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from typing import Any

import msgspec

from rebat.core.errors import RebatError
from rebat.drive.ask import Session
from rebat.drive.simulate import Events
from rebat.drive.wire import Wire
from rebat.engine.batsim5 import Engine5
from rebat.engine.engine import Engine
from rebat.models.failures.events import texts_of
from rebat.policies.presets import preset
from rebat.wire.conversation import Conversation, greet, run_remote
from rebat.workloads.batsim5_json import with_failing_parts
from tests.support.batsim5 import options_of as options5
from tests.support.both_ways import Case
from tests.support.shadow import check_ledgers, options_of


def play(seed: int, protocol: int, totals: Counter[str]) -> None:
    """Compare the replies of a case, byte by byte, and the ledgers."""
    case, rng = Case(seed), random.Random(-seed)
    chosen, options = preset(case.policy), options_of(rng)
    if rng.random() < 0.5:
        options = msgspec.structs.replace(options, latency_us=0, acknowledge_dynamic_jobs=True)
    settings = msgspec.structs.replace(chosen.session, max_attempts=case.max_attempts)
    made: list[Any] = [Session(chosen.make(), settings), Wire(chosen.point, settings)]
    split = protocol == 5 and rng.random() < 0.5
    probes = split or rng.random() < 0.6
    session, wire = (Conversation(lambda *_, it=it: it, probes) for it in made)

    def ask(data: bytes) -> bytes:
        expected, ours = session.answer(data), wire.answer(data)
        totals["messages"] += 1
        assert ours == expected, f"seed {seed}: {data!r}\n{expected!r}\n{ours!r}"
        return expected

    events = Events(case.events).all
    try:
        if protocol == 5:
            settings5 = msgspec.structs.replace(options5(greet(ask)), split_failures=split)
            files = [texts_of(events, 0)] if events else []
            engine: Engine = Engine5(
                [with_failing_parts(case.workload)], n_nodes=case.n_nodes, files=files,
                options=settings5,
            )  # fmt: skip
        else:
            engine = Engine(case.workload, n_nodes=case.n_nodes, events=events, options=options)
        run_remote(engine, ask)
        totals["complete"] += 1
        check_ledgers(made[1].ledger, made[0].ledger)
    except RebatError as error:
        totals["aborted: " + str(error).split(" s: ")[-1].split("(")[0][:50]] += 1
    totals["probes"] += session.n_probes


def main(count: int, first: int = 0) -> None:
    """Compare this number of cases under each protocol."""
    for protocol in (4, 5):
        totals: Counter[str] = Counter()
        for seed in range(first, first + count):
            play(seed, protocol, totals)
        print(f"Batsim {protocol}: {count} runs with equal bytes: {dict(totals)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
