# SPDX-License-Identifier: Apache-2.0
"""R-SHELF: shelves of rigid jobs with silent errors (RR-9296, Section 4.3, Algorithm 2)."""

from __future__ import annotations

import numpy as np

from rebat.kernels.jit import kernel
from rebat.kernels.resilient_state import (
    Batch,
    fill_queue,
    insert,
    new_queue,
    next_fit,
    next_waiting,
    note,
    remove,
)


@kernel
def shelves(batch: Batch, backfill: bool) -> None:
    """R-SHELF-B (`backfill`, first fit) or R-SHELF-NB (next fit).

    A shelf starts when the whole shelf before it has ended; errors are acted upon only then.
    Without backfilling the first job in the queue that does not fit closes the shelf.
    """
    p, n = batch.sizes, batch.sizes.size
    queue, left, shelf = new_queue(n), np.empty(n, np.int64), np.empty(n, np.int64)
    for scenario in range(len(batch.failures)):
        fill_queue(queue, p)
        left[:] = batch.failures[scenario]
        now = 0
        while True:
            free, count, height = batch.n_procs, 0, 0
            job = next_waiting(queue, 0)
            while job < n and p[job] <= free:
                free -= p[job]
                height = max(height, batch.times[job])
                shelf[count] = job
                count += 1
                remove(queue, job)
                note(batch, job, now)
                job = next_fit(queue, job + 1, free) if backfill else next_waiting(queue, job + 1)
            if count == 0:
                break
            now += height
            for i in range(count):
                job = shelf[i]
                if left[job] > 0:
                    left[job] -= 1
                    insert(queue, job, p[job])
        batch.makespans[scenario] = now
