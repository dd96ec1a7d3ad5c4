# SPDX-License-Identifier: Apache-2.0
"""Long queues with gaps have the starts and reservations that a scan of the queue determines."""

from __future__ import annotations

import random

import numpy as np

from rebat.kernels import counts, deep_queue
from rebat.kernels.deep_queue import GAP


def arrays(n: int, *more: int) -> list[np.ndarray]:
    return [np.zeros((*more, n), dtype=np.int64) for _ in range(4)]


def check_queue(seed: int, n_jobs: int) -> None:
    """Let attempts enter and start in two queues, and compare them after each plan."""
    rng = random.Random(seed)
    depth, first, n_nodes = rng.choice([0, 1, 1, 2, 3]), rng.random() < 0.3, rng.choice([4, 64])
    size, length, queue, due = arrays(3 * n_jobs)
    index = np.zeros((4, deep_queue.groups_of(3 * n_jobs)), dtype=np.int64)
    t, f, after, low = arrays(9 * n_jobs + 100)
    expected: list[int] = []
    n_queued, lengths, sizes = 0, {}, {}
    for job in range(n_jobs):
        at = rng.choice([n_queued, rng.randint(0, n_queued)])
        live = [*(queue[:at][size[:at] < GAP]), job, *(queue[at:n_queued][size[at:n_queued] < GAP])]
        sizes[job], lengths[job] = rng.randint(1, n_nodes + 1), rng.randint(1, 50)
        at, gap = deep_queue.make_place(size, length, queue, n_queued, at)
        n_queued += gap == n_queued
        size[at], length[at], queue[at] = sizes[job], lengths[job], job
        deep_queue.set_least(index, size, length, n_queued, min(at, gap), max(at, gap))
        expected = [int(j) for j in live]
        assert queue[:n_queued][size[:n_queued] < GAP].tolist() == expected
        if rng.random() < 0.5:
            continue
        t[:3], f[:3] = (
            [job, job + rng.randint(1, 30), job + 40],
            sorted(rng.randint(0, n_nodes) for _ in range(3)),
        )
        profile = t.copy(), f.copy()
        n_due = deep_queue.backfill(
            t, f, 3, index, size, length, n_queued, depth, first, after, low, due
        )
        begun = [int(queue[at]) for at in due[:n_due]]
        start = np.zeros(len(expected), dtype=np.int64)
        counts.backfill(
            *profile, 3, np.array([sizes[j] for j in expected]),
            np.array([lengths[j] for j in expected]), start, len(expected), depth, first,
        )  # fmt: skip
        assert begun == [j for j, at in zip(expected, start, strict=True) if at == job]
        for at in due[:n_due]:
            size[at] = length[at] = GAP
            deep_queue.set_least(index, size, length, n_queued, at, at)
        if rng.random() < 0.1:
            n_queued = deep_queue.close_gaps(size, length, queue, n_queued)
            assert queue[:n_queued].tolist() == [j for j in expected if j not in begun]
            deep_queue.set_least(index, size, length, n_queued, 0, max(n_queued - 1, 0))


def test_starts_are_those_of_a_scan() -> None:
    for seed in range(150):
        check_queue(seed, 60)


def test_starts_of_long_queues_are_those_of_a_scan() -> None:
    for seed in range(3):
        check_queue(seed, 1200)
