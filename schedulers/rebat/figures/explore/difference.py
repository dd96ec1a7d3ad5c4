# SPDX-License-Identifier: Apache-2.0
"""The first decision that differs between the two policies of an explorer page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rebat.core.errors import InputError
from rebat.results.compare.parting import SAME, around_us, difference_text, ends, parting
from rebat.results.measures.timeline import Timeline


def first_difference(timelines: Sequence[Timeline]) -> dict[str, Any] | None:
    """Return where two runs differ, for the script of the page. Times are in milliseconds.

    If there are not exactly two runs, or if their workloads differ, the result is None. If the runs
    never differ, the time in the result is None.
    """
    if len(timelines) != 2:
        return None
    first, second = timelines
    try:
        parted = parting(first, second)
    except InputError:
        return None
    names = (first.name, second.name)
    if parted is None:
        return {"at": None, "lines": [SAME.format(*names)]}
    text = difference_text(names, parted, ends(first, second))
    lines = [*text.decisions, text.knowledge, text.end]
    around_ms = around_us(first, second) / 1e3
    return {"at": parted.at_us / 1e3, "around": around_ms, "lines": lines}
