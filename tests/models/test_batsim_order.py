# SPDX-License-Identifier: Apache-2.0
"""The order of an event file equals that of C++'s sort."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from rebat.models.failures.events import batsim_order

PROGRAM = """
#include <algorithm>
#include <cstdio>
#include <vector>
struct Event { int date, type, number; };
int main() {
  int n;
  while (std::scanf("%d", &n) == 1) {
    std::vector<Event> events(n);
    for (int i = 0; i < n; i++) {
      if (std::scanf("%d %d", &events[i].date, &events[i].type) != 2) return 1;
      events[i].number = i;
    }
    std::sort(events.begin(), events.end(), [](const Event & a, const Event & b) {
      return a.date == b.date ? a.type < b.type : a.date < b.date;
    });
    for (const Event & event : events) std::printf("%d ", event.number);
    std::printf("\\n");
  }
}
"""


@pytest.fixture(scope="module")
def cpp_sort(tmp_path_factory) -> Path:
    """Compile a program that sorts as Batsim does."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("needs g++ to compile the program that is compared with")
    folder = tmp_path_factory.mktemp("sort")
    (folder / "sort.cpp").write_text(PROGRAM)
    subprocess.run([compiler, "-O1", "-o", "sort", "sort.cpp"], cwd=folder, check=True)
    return folder / "sort"


def files(rng: random.Random) -> list[list[tuple[int, int]]]:
    """Return keys of event files of many sizes: nearly sorted (as from generators) or shuffled."""
    made = []
    for _ in range(400):
        n, span = rng.randint(1, 300), rng.randint(1, 200)
        keys = [(rng.randint(0, span), rng.randint(0, 2)) for _ in range(n)]
        if rng.random() < 0.6:
            keys.sort(key=lambda key: key[0] + rng.randint(0, 3))
        made.append(keys)
    return made


def test_equals_come_as_from_the_standard_sort(cpp_sort: Path) -> None:
    cases = files(random.Random(8))
    told = "".join(f"{len(keys)} {' '.join(f'{d} {t}' for d, t in keys)}\n" for keys in cases)
    done = subprocess.run([cpp_sort], input=told, capture_output=True, text=True, check=True)
    moved = 0
    for keys, line in zip(cases, done.stdout.splitlines(), strict=True):
        numbers = list(range(len(keys)))
        order = batsim_order(numbers, keys)
        assert order == [int(number) for number in line.split()]
        moved += order != sorted(numbers, key=keys.__getitem__)
    assert moved > 50  # otherwise a stable sort would pass


def test_keys_that_differ_are_sorted() -> None:
    assert batsim_order("abc", [(3, 0), (1, 1), (1, 0)]) == ["c", "b", "a"]
