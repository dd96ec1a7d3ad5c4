# SPDX-License-Identifier: Apache-2.0
"""R-SHELF: shelves of jobs that start together.

Section 4.3, Algorithm 2 of Benoit, Le Fèvre, Raghavan, Robert and Sun, Inria RR-9296, 2020. A new
shelf is built only when no job runs. Jobs that arrive or return to the queue before that wait for
the new shelf. If jobs arrive over time, this method is called batch scheduling (Shmoys et al.,
section 2.1). A job that would exceed a limit waits for a later shelf.
"""

from __future__ import annotations

from typing import Any

from rebat.kernels.jit import rule
from rebat.rules.fifo import find_nodes
from rebat.rules.limits import exceeds
from rebat.rules.starts import start_on
from rebat.rules.usage import charge_start
from rebat.state import codes


@rule
def fill_shelf(
    state: Any, room: Any, cells: Any, recorder: Any, p: int, size: Any, n_queue: int, now: int
) -> int:  # fmt: skip
    """Start a shelf if no job of the group runs. Write and count the positions of its attempts.

    Without backfilling (b = 0), the first attempt that does not fit completes the shelf.
    """
    n, n_due = state.n, 0
    for i in range(n.n_running):
        if state.jobs[state.attempts[state.lists[i].running].job].part == p:
            return 0
    for at in range(n_queue):
        a, first, k = room.queue[p][room.visible[3, at] if n.limited else at], n.n_nodes_used, -1
        if size[at] <= state.parts[p].n_free:
            if n.accounted and exceeds(state, recorder, a):
                # another plan follows, so that the attempt is known to be barred (see `charge_due`)
                n.is_exceeded, state.parts[p].withdrawn = n.limited, 1
                continue
            k = find_nodes(state, room, cells, recorder, p, a, size[at], now)
        if k < 0:
            if n.shelf == codes.WITHOUT_BACKFILL:
                break
            continue
        if n.accounted:
            charge_start(state, recorder, a, size[at], now)
        start_on(state, a, p, first, k, size[at], now)
        room.positions[n_due] = at
        n_due += 1
    return n_due
