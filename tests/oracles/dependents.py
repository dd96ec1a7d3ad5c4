# SPDX-License-Identifier: Apache-2.0
"""The reservations that wait for each running job, computed with sets, one processor at a time."""

from __future__ import annotations


def dependents(idle: int, running: list[tuple[int, int]], reserved: list[tuple[int, int, int]]):
    """Return the number of reservations that wait for each running job, also indirectly.

    ``running`` has (end, size) of each job, ``reserved`` (start, end, size), sorted by start.
    """
    pool: list[int | None] = [None] * idle  # by processor: its last job or reservation
    waits: list[set[int]] = []  # by reservation: the jobs and reservations it waits for
    holders = [(end, i, size) for i, (end, size) in enumerate(running)]
    holders += [(end, len(running) + q, size) for q, (_, end, size) in enumerate(reserved)]
    holders.sort()
    given = 0
    for start, _, size in reserved:
        while given < len(holders) and holders[given][0] <= start:
            pool += [holders[given][1]] * holders[given][2]
            given += 1
        waits.append({who for who in pool[:size] if who is not None})
        del pool[:size]
    counts = []
    for job in range(len(running)):
        reached = {job}
        for q, others in enumerate(waits):
            if others & reached:
                reached.add(len(running) + q)
        counts.append(len(reached) - 1)
    return counts
