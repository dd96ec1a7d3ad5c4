# SPDX-License-Identifier: Apache-2.0
"""Rules of the loop that replace text: six digits, and the order of ids."""

from __future__ import annotations

import random

from rebat.core.units import to_us
from rebat.models.interruptions import written
from rebat.rules import stops
from rebat.rules.queue import text_first
from rebat.state.tables import Attempt, Job


def numbers(rng: random.Random):
    """Yield numbers of all magnitudes, and numbers between two neighbours with six digits."""
    for _ in range(2000):
        yield rng.random() * 10 ** rng.randint(-5, 9)
        yield rng.randint(1, 10**7) / 10 ** rng.randint(0, 6)
        yield float(f"{rng.randint(100000, 999999)}5e{rng.randint(-12, 3)}")
        yield 10.0 ** rng.randint(-5, 9)
        yield -rng.random()


def test_six_digits_are_those_of_text() -> None:
    for number in [0.0, *numbers(random.Random(0))]:
        assert written(number) == float(f"{number:.6g}"), number
        assert stops.to_us(number) == to_us(number), number


def test_ids_of_attempts_are_compared_as_text() -> None:
    names, rng = ["7", "70", "10", "9-a", "a"], random.Random(0)
    jobs = [Job() for _ in names]
    for field, ending in (("by_name", ""), ("by_prefix", "-")):
        ranked = sorted(name + ending for name in names)
        for name, job in zip(names, jobs, strict=True):
            setattr(job, field, ranked.index(name + ending))
    attempts = [Attempt(), Attempt()]
    for _ in range(2000):
        texts = []
        for row in attempts:
            row.job, row.number = rng.randrange(len(names)), rng.choice([0, 1, 2, 9, 10, 12, 101])
            name, number = names[row.job], row.number
            texts.append(f"resubmit!{name}-{number}" if number else f"w0!{name}")
        assert text_first(attempts, jobs, 0, 1) == (texts[0] <= texts[1]), texts  # ties: by row
