# SPDX-License-Identifier: Apache-2.0
"""The text of rows of a CSV file, from columns of integers and a pool of texts.

Row ``i`` of column ``c`` is described by ``first[c, i]`` and ``last[c, i]``:

- ``last`` is `NOTHING`: the field is empty.
- ``last`` is `NUMBER`: the field is the number ``first``, in the form that ``forms[c]`` states.
- Otherwise, in a column of form `NODES`, the field is the set of nodes with the intervals from
  ``first`` to ``last - 1``. In all other columns, it is the text ``pool[first:last]``.
"""

from __future__ import annotations

from typing import Any

from rebat.kernels.jit import kernel

NOTHING, NUMBER = -2, -1

WHOLE, SECONDS, NODES = range(3)
"""Forms: whole numbers, millionths with six decimals, and sets of nodes.

Sets of nodes are in Batsim's notation, like ``0-3 5``.
"""

WIDEST = 28
"""Maximum number of bytes of a number, or of an interval of nodes, with its separator."""


@kernel
def write_rows(
    forms: Any, first: Any, last: Any, pool: Any, intervals: Any, out: Any, ends: Any
) -> None:
    """Write rows into ``out``, and the position of the end of each row into ``ends``.

    Parameters
    ----------
    out : uint8 array
        It must have `WIDEST` bytes for each number and interval, and a byte more than its length
        for each text.
    """
    k, n = first.shape
    at = 0
    for i in range(n):
        for c in range(k):
            form, begin, end = forms[c], first[c, i], last[c, i]
            if end == NUMBER:
                lines = 1
            elif end == NOTHING:
                lines = 0
            elif form == NODES:
                lines = 2 * (end - begin)
            else:
                lines = 0
                for place in range(begin, end):
                    out[at] = pool[place]
                    at += 1
            for line in range(lines):
                value, decimals = begin, 0
                if form == NODES:
                    interval = begin + line // 2
                    value = intervals[interval, line % 2]
                    if line % 2 and value == intervals[interval, 0]:
                        continue
                    if line:
                        out[at] = 45 if line % 2 else 32  # '-' or ' '
                        at += 1
                elif form != WHOLE:
                    decimals = 6
                if value < 0:
                    out[at] = 45
                    at += 1
                    value = abs(value)
                length, rest = 1, value // 10
                while rest > 0:
                    length, rest = length + 1, rest // 10
                if decimals:
                    length = max(length, 7) + 1
                for place in range(at + length - 1, at - 1, -1):
                    if decimals and place == at + length - 7:
                        out[place] = 46  # '.'
                        continue
                    out[place] = 48 + value % 10
                    value //= 10
                at += length
            out[at] = 44 if c < k - 1 else 10  # ',' or a line end
            at += 1
        ends[i] = at
