# SPDX-License-Identifier: Apache-2.0
"""The data of the explorer page: timelines in milliseconds, and the first different decision.

The columns of a run are one compressed text, which the page unpacks into typed arrays. A JSON head
contains the type and length of each array. The arrays follow. An array is stored as the
first bytes of all its numbers, then the second bytes, and so on. This order improves the
compression, because similar bytes are adjacent.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError
from rebat.figures.runs import HELD_COLOUR, kept_colour, lost_colour, tail_us
from rebat.results.compare.parting import SAME, around_us, difference_text, ends, parting
from rebat.results.measures.nodetime import Steps
from rebat.results.measures.timeline import CAUSES, Pattern, Timeline, series_of

Array = npt.NDArray[Any]


def page_data(timelines: Sequence[Timeline], window_us: tuple[int, int] | None) -> dict[str, Any]:
    """Return the data for the script of the page."""
    end_us = max((timeline.makespan_us for timeline in timelines), default=0)
    first, last = window_us or (0, max(end_us, 1))
    return {
        "nodes": max(timeline.n_nodes for timeline in timelines),
        "end": max(end_us, 1) / 1e3,
        "window": [first / 1e3, min(last, max(end_us, 1)) / 1e3],
        "heldColour": HELD_COLOUR,
        "causes": [
            {"name": str(cause), "kept": kept_colour(cause), "lost": lost_colour(cause)}
            for cause in CAUSES
        ],
        "runs": [run_data(timeline) for timeline in timelines],
    }


def run_data(timeline: Timeline) -> dict[str, Any]:
    """Return the data of a run. Attempts that never ran are last."""
    order = np.argsort(np.where(timeline.ran, timeline.start_us, 2**62), kind="stable")
    names, job = np.unique(np.array(timeline.job_id, dtype=object), return_inverse=True)
    words, why = np.unique(np.array(timeline.why, dtype=object), return_inverse=True)
    blocks, outages, series = timeline.blocks, timeline.outages, series_of(timeline)
    held = np.argsort(timeline.held.begin_us, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    by_owner = np.argsort(place[blocks.owner], kind="stable")
    counts = np.bincount(place[blocks.owner], minlength=len(order))
    milliseconds = {
        "submitted": timeline.submit_us,
        "queued": timeline.queued_us,
        "start": timeline.start_us,
        "end": timeline.end_us,
        "kept": timeline.kept_us,
        "lost": timeline.lost_us,
        "tail": tail_us(timeline),
        **pattern_data(timeline.pattern),
    }
    return {
        "name": timeline.name,
        "nodes": timeline.n_nodes,
        "ran": int(timeline.ran.sum()),
        "jobs": names.tolist(),
        "whys": words.tolist(),
        "job": job[order].astype(np.int32),
        "why": why[order].astype(np.int32),
        "number": timeline.number[order].astype(np.int32),
        "cause": timeline.cause[order].astype(np.uint8),
        **{name: _ms(values[order]) for name, values in milliseconds.items()},
        "offset": np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        "first": blocks.first[by_owner].astype(np.int32),
        "last": blocks.last[by_owner].astype(np.int32),
        "down": _ms(outages.begin_us),
        "up": _ms(outages.end_us),
        "downFirst": outages.first.astype(np.int32),
        "downLast": outages.last.astype(np.int32),
        "heldFrom": _ms(timeline.held.begin_us[held]),
        "heldTo": _ms(timeline.held.end_us[held]),
        "heldFirst": timeline.held.first[held].astype(np.int32),
        "heldLast": timeline.held.last[held].astype(np.int32),
        "heldFor": [timeline.held_for[at] for at in held],
        "failedAt": _ms(timeline.failures[0]),
        "failedNode": timeline.failures[1].astype(np.int32),
        "series": {
            "busy": _steps(series.busy),
            "queued": _steps(series.queued),
            "free": _steps(series.free),
        },
    }


def pattern_data(pattern: Pattern) -> dict[str, Array]:
    """Return the checkpoint times of attempts."""
    return {
        "recovery": pattern.recovery_us,
        "firstPeriod": pattern.first_us,
        "period": pattern.period_us,
        "cost": pattern.cost_us,
    }


def _ms(us: Array) -> Array:
    """Convert to milliseconds, the unit of Bokeh's time axes. Negative values stay negative."""
    return us.astype(np.float64) / 1e3


def _steps(steps: Steps) -> dict[str, Array]:
    times_us, values = steps
    return {"at": _ms(times_us), "value": values.astype(np.int32)}


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


_KINDS = {"float64": "Float64Array", "int32": "Int32Array", "uint8": "Uint8Array"}


def packed(value: Any) -> str:
    """Return lists, mappings and arrays as a text: a gzipped head and the arrays in base 64."""
    arrays: list[npt.NDArray[Any]] = []
    head = msgspec.json.encode(_without_arrays(value, arrays))
    parts = [len(head).to_bytes(4, "little"), head, *map(_shuffled, arrays)]
    return base64.b64encode(gzip.compress(b"".join(parts), 6, mtime=0)).decode()


def _without_arrays(value: Any, arrays: list[npt.NDArray[Any]]) -> Any:
    """Replace each array by its type and length, and append it to ``arrays``."""
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return {"array": _KINDS[str(value.dtype)], "length": len(value)}
    if isinstance(value, Mapping):
        return {key: _without_arrays(item, arrays) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_arrays(item, arrays) for item in value]
    return value


def _shuffled(array: npt.NDArray[Any]) -> bytes:
    """Return the lowest bytes of all numbers, then the next bytes, and so on."""
    plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return plain.view(np.uint8).reshape(len(array), plain.itemsize).T.tobytes()
