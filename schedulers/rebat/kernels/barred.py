# SPDX-License-Identifier: Apache-2.0
"""Kernels for queues in which limits bar some attempts. Plans see only the other attempts.

The start of a barred attempt is `BARRED`.
"""

from __future__ import annotations

from typing import Any

from rebat.kernels.counts import NEVER
from rebat.kernels.jit import kernel

BARRED = NEVER + 1
"""The start of an attempt that a limit bars. It is later than that of all others."""


@kernel
def bar(queue: Any, size: Any, start: Any, n: int, client_of: Any, allowed: Any) -> bool:
    """Bar the attempts that are larger than what is allowed to their clients, and no others.

    Return whether an attempt is newly barred, or no longer.
    """
    changed = False
    for i in range(n):
        is_barred = size[i] > allowed[client_of[queue[i]]]
        if is_barred != (start[i] == BARRED):
            start[i] = BARRED if is_barred else NEVER
            changed = True
    return changed


@kernel
def n_visible(start: Any, n: int) -> int:
    """Return the number of attempts that are not barred."""
    count = 0
    for i in range(n):
        count += start[i] != BARRED
    return count


@kernel
def is_last(start: Any, at: int, n: int) -> bool:
    """Return whether all attempts after a position are barred."""
    while n - 1 > at and start[n - 1] == BARRED:
        n -= 1
    return n - 1 == at


@kernel
def pack(size: Any, duration: Any, start: Any, n: int, out: Any) -> int:
    """Copy the attempts that are not barred, with their positions. Return their number."""
    k = 0
    for i in range(n):
        if start[i] != BARRED:
            out[0, k], out[1, k], out[2, k], out[3, k] = size[i], duration[i], start[i], i
            k += 1
    return k


@kernel
def unpack(packed: Any, n: int, start: Any) -> None:
    """Copy the starts of the attempts that are not barred back into the queue."""
    for k in range(n):
        start[packed[3, k]] = packed[2, k]
