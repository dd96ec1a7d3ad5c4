# SPDX-License-Identifier: Apache-2.0
"""Node time of attempts that share nodes, compared with a count of every node in every second."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.core.attempts import Attempt, Cause
from rebat.core.nodes import NodeSet
from rebat.core.units import FOREVER_US, US_PER_S
from rebat.results.measures.nodetime import repeated_us, sharing
from rebat.results.measures.platform import backlog, free_steps, platform_time
from rebat.results.measures.summary import Measures, summarise
from rebat.state.ledger import AttemptRecord, Ledger, attempts_of

N_NODES, LAST_S = 5, 12

Span = tuple[int, int, frozenset[int], bool]
"""Start and end in seconds, nodes, and whether a failure ends the attempt."""

SPANS = st.lists(
    st.tuples(
        st.integers(0, LAST_S), st.integers(0, 6),
        st.frozensets(st.integers(0, N_NODES - 1), min_size=1), st.booleans(),
    ).map(lambda t: (t[0], min(t[0] + t[1], LAST_S), t[2], t[3])),
    min_size=1, max_size=7,
)  # fmt: skip


def ledger_of(spans: list[Span]) -> Ledger:
    records = []
    for number, (start, end, nodes, failed) in enumerate(spans):
        name = f"w0!{number}"
        attempt = Attempt(
            id=name, job_id=name, serial=number, job_serial=number, number=0, n_nodes=len(nodes),
            walltime_us=FOREVER_US, submit_us=0, queued_us=0,
        )  # fmt: skip
        cause, state = Cause.COMPLETED, "COMPLETED_SUCCESSFULLY"
        if failed:
            cause, state = Cause.NODE_FAILURE, "COMPLETED_KILLED"
        begin_us, end_us = start * US_PER_S, end * US_PER_S
        useful_us = 0 if failed else end_us - begin_us
        records.append(
            AttemptRecord(
                attempt, "delay", None, begin_us, end_us, cause, state, useful_us, NodeSet.of(nodes)
            )
        )
    return Ledger(attempts=attempts_of(records), shared=True)


def slow(spans: list[Span], first: int, last: int) -> tuple[list[Fraction], int]:
    """Count the node-seconds of each attempt, and those of nodes in use, second by second."""
    times, used = [Fraction(0)] * len(spans), 0
    for second in range(first, last):
        for node in range(N_NODES):
            users = [
                i for i, (a, b, nodes, _) in enumerate(spans) if a <= second < b and node in nodes
            ]
            used += bool(users)
            for i in users:
                times[i] += Fraction(1, len(users))
    return times, used


@given(spans=SPANS, window=st.tuples(st.integers(0, 5), st.integers(6, LAST_S)))
def test_every_node_second_counts_once(spans: list[Span], window: tuple[int, int]) -> None:
    ledger, (first, last) = ledger_of(spans), window
    times, used = slow(spans, first, last)
    window_us = first * US_PER_S, last * US_PER_S
    of = platform_time(ledger, N_NODES, window_us)
    lost = sum(t for t, span in zip(times, spans, strict=True) if span[3])
    assert of.useful == pytest.approx(float(sum(times) - lost), abs=1e-9)
    assert of.waste_failure == pytest.approx(float(lost), abs=1e-9)
    assert of.idle == N_NODES * (last - first) - used
    assert of.useful + of.waste_failure + of.idle == pytest.approx(of.total, abs=1e-9)


@given(spans=SPANS)
def test_jobs_have_their_shares(spans: list[Span]) -> None:
    ledger = ledger_of(spans)
    times, used = slow(spans, 0, LAST_S)
    _, rows = summarise(ledger, N_NODES, Measures())
    assert rows.column("node_seconds") == pytest.approx([float(t) for t in times], abs=1e-9)
    lost = [float(t) if span[3] else 0.0 for t, span in zip(times, spans, strict=True)]
    assert rows.column("wasted_node_seconds") == pytest.approx(lost, abs=1e-9)
    total = sum((b - a) * len(nodes) for a, b, nodes, _ in spans)
    assert repeated_us(ledger) == (total - used) * US_PER_S
    alone = [(b - a) * len(nodes) == t for (a, b, nodes, _), t in zip(spans, times, strict=True)]
    assert sharing(ledger).tolist() == [not single for single in alone]


@given(spans=SPANS)
def test_free_nodes_are_those_without_attempts(spans: list[Span]) -> None:
    at, free = free_steps(ledger_of(spans), N_NODES)
    for second in range(LAST_S):
        busy = {node for a, b, nodes, _ in spans if a <= second < b for node in nodes}
        assert free[at.searchsorted(second * US_PER_S, "right") - 1] == N_NODES - len(busy)


@given(spans=SPANS, window=st.tuples(st.integers(0, 5), st.integers(6, LAST_S)))
def test_the_backlog_is_the_work_of_the_shares(spans: list[Span], window: tuple[int, int]) -> None:
    ledger, (first, last) = ledger_of(spans), window
    of = backlog(ledger, (first * US_PER_S, last * US_PER_S))
    useful = [not span[3] for span in spans]
    after, _ = slow(spans, last, LAST_S)
    whole, _ = slow(spans, 0, LAST_S)
    assert of.end == pytest.approx(float(sum(t for t, u in zip(after, useful, strict=True) if u)))
    begin = slow(spans, first, LAST_S)[0] if first else whole
    total = of.begin + of.submitted
    assert total == pytest.approx(float(sum(t for t, u in zip(begin, useful, strict=True) if u)))
