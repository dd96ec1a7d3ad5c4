# SPDX-License-Identifier: Apache-2.0
"""Threads perform tasks like processes do, and share values that are created once."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import islice

import numpy as np
import pytest

from rebat.core.errors import InputError, RebatError
from rebat.drive.shared import Shared
from rebat.drive.simulate import Events
from rebat.executors.resources import Resources
from rebat.executors.table import EXECUTORS
from rebat.models.failures.renewal import Authors


def square(number: int) -> int:
    return number * number


def fail_on_three(number: int) -> int:
    if number == 3:
        raise InputError("is 3", "number", "another number")
    return number


def lost(number: int, reason: str) -> int:
    raise AssertionError(reason)


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_outcomes_and_errors(executor: str) -> None:
    perform, two = EXECUTORS[executor], Resources(workers=2)
    assert sorted(perform(range(20), square, lost, two)) == [n * n for n in range(20)]
    assert list(perform([], square, lost, two)) == []
    with pytest.raises(RebatError, match=r"^number: is 3 \(expected another number\)$") as error:
        list(perform(range(5), fail_on_three, lost, two))
    assert type(error.value) is RebatError


def test_closed_threads_end_their_tasks_and_begin_no_others() -> None:
    begun, ended = [], []

    def work(number: int) -> int:
        begun.append(number)
        time.sleep(0.05)
        ended.append(number)
        return number

    with closing(EXECUTORS["threads"](range(50), work, lost, Resources(workers=2))) as outcomes:
        assert len(list(islice(outcomes, 3))) == 3
    assert len(begun) < 10
    assert sorted(begun) == sorted(ended)


def test_shared_values_are_created_once_and_the_oldest_are_removed() -> None:
    created: list[int] = []

    def create(key: int) -> int:
        time.sleep(0.001)
        created.append(key)
        return key

    values = Shared[int](10, lambda value: value)
    with ThreadPoolExecutor(4) as pool:
        keys = [4, 3, 4, 3, 4, 3, 4, 3]
        assert list(pool.map(lambda key: values.get(key, lambda: create(key)), keys)) == keys
    assert sorted(created) == [3, 4]
    for key in (5, 5, 20, 20, 5):
        values.get(key, lambda key=key: create(key))
    assert created[2:] == [5, 20, 5]


def test_threads_that_share_failures_read_the_same_ones() -> None:
    law = Authors(600, 300)

    def columns(events: Events, rng: random.Random) -> None:
        for _ in range(20):
            until_us = rng.randrange(10**11)
            (at_us, *_, nodes), complete = events.columns(until_us, 64)
            assert not complete
            n = len(at_us)
            assert events_alone[0][:n].tolist() == at_us.tolist()
            assert (at_us > until_us).sum() <= len(at_us)
            assert n and events_alone[4][: len(nodes)].tolist() == nodes.tolist()
            assert len(events.happened(n)) == n

    events_alone = Events(law.events(64, 1)).columns(2 * 10**11, 64)[0]
    shared = Events(law.events(64, 1))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda seed: columns(shared, random.Random(seed)), range(8)))
    assert np.all(np.diff(events_alone[0]) >= 0)


def test_events_begin_again_after_an_interrupt() -> None:
    def drawn():
        yield from islice(law, 5)
        if interrupts:
            raise interrupts.pop()
        yield from islice(law, 5, 10)

    class Drawn:
        def __iter__(self):
            return drawn()

    law, interrupts = list(islice(Authors(600, 300).events(4, 1), 10)), [KeyboardInterrupt()]
    events = Events(Drawn())
    with pytest.raises(KeyboardInterrupt):
        events.columns(10**15, 4)
    (at_us, *_), complete = events.columns(10**15, 4)
    assert complete
    assert at_us.tolist() == [event.at_us for event in law]
