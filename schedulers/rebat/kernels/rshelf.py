"""R-SHELF: shelves of rigid jobs with silent errors (RR-9296, Section 4.3, Algorithm 2)."""

from __future__ import annotations

import numpy as np
from numba import njit

from rebat.kernels.resilient_state import Ints, fill_queue, insert, new_queue, next_fit, next_waiting, remove


@njit(cache=True, nogil=True)
def shelves(
    t: Ints,
    p: Ints,
    failures: Ints,
    n_procs: int,
    backfill: bool,
    makespans: Ints,
    starts: Ints,
    cursor: Ints,
) -> None:
    """R-SHELF-B (`backfill`, first fit) or R-SHELF-NB (next fit).

    A shelf starts when the whole shelf before it has ended; errors are acted upon only then.
    Without backfilling the first job in the queue that does not fit closes the shelf. Arguments as
    in `rebat.kernels.rlist`.
    """
    n = t.size
    queue, left, shelf = new_queue(n), np.empty(n, np.int64), np.empty(n, np.int64)
    for scenario in range(failures.shape[0]):
        fill_queue(queue, p)
        left[:] = failures[scenario]
        now = 0
        while True:
            free, count, height = n_procs, 0, 0
            job = next_waiting(queue, 0)
            while job < n and p[job] <= free:
                free -= p[job]
                height = max(height, t[job])
                shelf[count] = job
                count += 1
                remove(queue, job)
                if starts.size:
                    starts[cursor[job]] = now
                    cursor[job] += 1
                if backfill:
                    job = next_fit(queue, job + 1, free)
                else:
                    job = next_waiting(queue, job + 1)
            if count == 0:
                break
            now += height
            for i in range(count):
                job = shelf[i]
                if left[job] > 0:
                    left[job] -= 1
                    insert(queue, job, p[job])
        makespans[scenario] = now
