# SPDX-License-Identifier: Apache-2.0
"""A call after Ctrl-C, or after an error, has the result of a call in a new process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import rebat
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.models.failures.events import MachineEvent
from rebat.models.failures.history import Remembered
from rebat.models.failures.per_node_laws import Weibull, series_of
from rebat.models.failures.renewal import Authors
from rebat.policies.presets import preset
from tests.support.amount import few
from tests.support.asked import simulate
from tests.support.interrupts import CALLS, compare
from tests.support.scenarios import machine


@pytest.mark.sampled
def test_a_call_after_an_interrupt_has_the_same_result() -> None:
    """``python -m tests.support.interrupts`` interrupts more calls."""
    compare(few(12 * len(CALLS)))


class Interrupted:
    """Events that an exception interrupts before event ``at``, once or at every iteration."""

    def __init__(self, n: int, at: int, error: BaseException, always: bool = False) -> None:
        self._n, self._at, self._always = n, at, always
        self._errors = [error]

    def __iter__(self) -> Iterator[MachineEvent]:
        for k in range(self._n):
            if k == self._at and self._errors:
                raise self._errors[0] if self._always else self._errors.pop()
            yield MachineEvent(10 * k, k % 2 == 1, NodeSet.of([0]))


def test_events_are_complete_after_an_interrupt() -> None:
    events = Remembered(Interrupted(6, 3, KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        list(events)
    assert [event.at_us for event in events] == [0, 10, 20, 30, 40, 50]


def test_a_law_that_raises_has_the_same_error_each_time() -> None:
    workload = machine(2, (1, 20_000))
    for _ in range(3):
        failures = rebat.failures(mtbf="1h", downtime="1h", seed=0, begin=1)
        with pytest.raises(rebat.InputError, match="when all 2 nodes are down") as raised:
            rebat.run(workload, ["baseline"], failures=failures)
        assert "a failure at" in str(raised.value)


@pytest.mark.parametrize("how", ["compiled", "asked"])
def test_a_run_that_ends_before_the_error_of_its_law_has_a_result(how: str) -> None:
    workload = machine(2, (1, 20_000, 0, 10))
    events = Authors(3600, 3600).events(2, 0)
    with pytest.raises(rebat.InputError, match="when all 2 nodes are down"):
        list(events)
    result = simulate(workload, preset("baseline"), machine_events=events, how=how)
    assert [row.final_state for row in result.rows] == ["COMPLETED_WALLTIME_REACHED"]


@pytest.mark.parametrize("end", range(15, 105, 10))
def test_both_engines_have_a_result_until_the_same_event(end: int) -> None:
    """The law raises an error after its event at 50 us."""
    job_end = machine(2, (2, end / 1e6, 0, 1))
    outcomes = []
    for how in ("auto", "asked"):
        events = Interrupted(10, 6, rebat.InputError("no more"), always=True)
        try:
            result = simulate(job_end, preset("baseline"), machine_events=events, how=how)
            outcomes.append([*result.rows])
        except rebat.InputError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


def test_a_series_of_failures_is_complete_after_an_interrupt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    law = Weibull(scale_s=100, shape=1, scale_sigma_s=0, shape_sigma=0)
    series_of.cache_clear()
    series = series_of(law, 3, 0)
    series.reach(10**10)
    expected = series.at_us.tolist(), series.node.tolist()
    series_of.cache_clear()
    series, gaps_us, calls = series_of(law, 3, 0), Weibull.gaps_us, []

    def interrupted(self: Weibull, n_nodes: int, seed: int, chunk: int) -> object:
        calls.append(chunk)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return gaps_us(self, n_nodes, seed, chunk)

    monkeypatch.setattr(Weibull, "gaps_us", interrupted)
    with pytest.raises(KeyboardInterrupt):
        series.reach(10**10)
    series.reach(10**10)
    assert (series.at_us.tolist(), series.node.tolist()) == expected


def test_failures_of_a_file_that_changed_are_read_again(tmp_path: Path) -> None:
    file, totals = tmp_path / "node.events", []
    for nodes in ("0", "0-1"):
        file.write_text(
            f'{{"type": "machine_unavailable", "resources": "{nodes}", "timestamp": 50}}\n'
            f'{{"type": "machine_available", "resources": "{nodes}", "timestamp": 60}}\n'
        )
        failures = rebat.failures(file=file, begin=1)
        result = rebat.run(machine(2, (1, 100, 0, 300)), ["baseline"], failures=failures)
        totals.append([attempt.nodes for attempt in result.attempts.itertuples()])
    assert totals[0] != totals[1]


def raising(error: BaseException) -> Iterator[MachineEvent]:
    for at_s in (3, 13):
        yield MachineEvent(at_s * 10**6, available=False, nodes=NodeSet.of([0]))
        yield MachineEvent((at_s + 1) * 10**6, available=True, nodes=NodeSet.of([0]))
    raise error


@pytest.mark.parametrize("how", ["auto", "asked"])
def test_an_iterator_that_raises_does_not_end_the_failures(how: str) -> None:
    workload = machine(2, (1, 10), (2, 20, 5), (1, 30, 6))
    with pytest.raises(InputError, match="too many"):
        simulate(
            workload, preset("baseline"), machine_events=raising(InputError("too many")), how=how
        )


@pytest.mark.parametrize(
    ("error", "later"), [(InputError("too many"), "too many"), (KeyboardInterrupt(), "interrupt")]
)
def test_an_iterator_that_raised_raises_again(error: BaseException, later: str) -> None:
    events = Remembered(raising(error))
    with pytest.raises(type(error)):
        list(events)
    for _ in range(2):
        again = iter(events)
        assert len([next(again) for _ in range(4)]) == 4
        with pytest.raises(InputError, match=later):
            next(again)
