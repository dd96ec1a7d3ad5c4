# SPDX-License-Identifier: Apache-2.0
"""Reading the output folder of a run, or of several policies, as timelines for pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError, short, unknown_name
from rebat.core.files import read_text
from rebat.core.nodes import NodeSet
from rebat.core.sizes import MAX_NODES
from rebat.results.files.rows import Rows
from rebat.results.files.run_csv import HOLD_COLUMNS
from rebat.results.measures.timeline import (
    CAUSES,
    Blocks,
    NodeEvents,
    Pattern,
    Spans,
    Timeline,
    blocks_of,
    outages_of,
    spans_of,
)

OnRows = Callable[[int, int], None]
"""Told how many rows are read, and of how many."""

ATTEMPTS, EVENTS, SUMMARY = "rebat_attempts.csv", "node_events.csv", "summary.json"
HOLDS = "rebat_holds.csv"
"""Only there where nodes were held."""
REQUIRED = (
    "job_id", "attempt", "submission_time", "queued_time", "start_time", "finish_time", "cause",
    "why", "kept_seconds", "lost_seconds", "nodes",
)  # fmt: skip
CHECKPOINTS = (
    "recovery_seconds", "first_period_seconds", "period_seconds", "checkpoint_seconds",
)  # fmt: skip
"""Columns that older results lack."""


def run_folders(out: Path, wanted: Sequence[str] = (), most: int = 2) -> list[Path]:
    """The folders of the policies to show: those wanted, or the first ``most`` of all.

    ``out`` is what ``rebat run`` wrote, or the folder of one of its policies.

    Raises
    ------
    InputError
        When there is none, or none of that name.
    """
    if not out.is_dir():
        raise InputError("is no folder", str(out), "what rebat run --out has written")
    if (out / SUMMARY).is_file():
        found = {policy_of(out): out}
    else:
        places = sorted(path.parent for path in out.glob(f"*/{SUMMARY}"))
        known = {policy_of(place): place for place in places}
        found = {name: known[name] for name in in_order(out, known)}
    if not found and (out / "seeds.csv").is_file():
        what = "a run of many seeds keeps no single runs"
        raise InputError(what, str(out), "a run of one seed, without --seeds")
    if not found:
        raise InputError(f"holds no {SUMMARY}", str(out), "what rebat run --out has written")
    for name in wanted:
        if name not in found:
            raise unknown_name("policy", name, found).at(str(out))
    return [found[name] for name in dict.fromkeys(wanted)] or list(found.values())[:most]


def in_order(out: Path, policies: Iterable[str]) -> list[str]:
    """As the policies were given to rebat run: comparison.csv has them so."""
    try:
        told = Rows(out / "comparison.csv", ("policy",)).names("policy")
    except InputError:
        told = []  # it is not needed for anything else
    rank = {name: at for at, name in enumerate(dict.fromkeys(told))}
    return sorted(policies, key=lambda name: (rank.get(name, len(rank)), name))


def policy_of(folder: Path) -> str:
    """The policy of a run, as its summary says."""
    return str(_summary(folder)["policy"])


def _summary(folder: Path) -> dict[str, Any]:
    path = folder / SUMMARY
    try:
        found = msgspec.json.decode(read_text(path), type=dict[str, Any])
        n_nodes = found["metrics"]["n_nodes"]
        if not isinstance(n_nodes, int) or not 0 < n_nodes < MAX_NODES:
            raise InputError(f"metrics.n_nodes is {short(n_nodes)}", str(path), "a number of nodes")
        found["policy"]
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(what, str(path), "the summary of a run") from None
    return found


def read_timeline(folder: Path, on_rows: OnRows = lambda done, of: None) -> Timeline:
    """The timeline of one run.

    Raises
    ------
    InputError
        For files that are missing, and with file and line for rows that are broken.
    """
    summary = _summary(folder)
    n_nodes, path = int(summary["metrics"]["n_nodes"]), folder / ATTEMPTS
    if not path.is_file():
        raise InputError(
            f"holds no {ATTEMPTS}", str(folder), "a result of this version: run it again"
        )
    rows = Rows(path, REQUIRED)
    start_us = rows.times("start_time", empty=-1)
    end_us = rows.times("finish_time", empty=-1)
    rows.refuse((start_us >= 0) & (end_us < 0), "a start_time and no finish_time")
    rows.refuse((start_us >= 0) & (end_us < start_us), "finish_time is before start_time")
    blocks = _blocks(rows, n_nodes, on_rows)
    outages, failures = outages_of(
        read_node_events(folder / EVENTS, n_nodes), int(end_us.max(initial=0))
    )
    return Timeline(
        str(summary["policy"]), n_nodes, rows.names("job_id"), rows.counts("attempt"),
        rows.times("submission_time"), rows.times("queued_time"), start_us, end_us,
        _causes(rows), rows.names("why"), rows.times("kept_seconds"), rows.times("lost_seconds"),
        blocks, outages, failures, _pattern(rows),
        *_holds(folder / HOLDS, n_nodes, int(end_us.max(initial=0))),
    )  # fmt: skip


def _holds(path: Path, n_nodes: int, until_us: int) -> tuple[Spans, list[str]]:
    """Nodes held and for which jobs; those without an end up to a time."""
    if not path.is_file():
        none = np.empty(0, dtype=np.int64)
        return Spans(none, none, none, none), []
    rows = Rows(path, HOLD_COLUMNS)
    begin_us, end_us = rows.times("start_time"), rows.times("finish_time", empty=until_us)
    rows.refuse(end_us < begin_us, "finish_time is before start_time")
    blocks, names = _blocks(rows, n_nodes, lambda done, of: None), rows.texts("job_id")
    return spans_of(begin_us, end_us, blocks), [names[at] for at in blocks.owner]


def _blocks(rows: Rows, n_nodes: int, on_rows: OnRows) -> Blocks:
    sets, texts = [], rows.texts("nodes")
    for at, text in enumerate(texts):
        if at % 1000 == 0:
            on_rows(at, len(texts))
        try:
            nodes = NodeSet.parse(text)
        except InputError as error:
            raise error.at(rows.place(at)) from None
        if len(nodes) and nodes.intervals[-1, 1] >= n_nodes:
            what = f"node {nodes.intervals[-1, 1]} is outside the machine"
            raise InputError(what, rows.place(at), f"below {n_nodes}")
        sets.append(nodes.intervals)
    return blocks_of(sets)


def _causes(rows: Rows) -> npt.NDArray[np.int64]:
    number = {str(cause): at for at, cause in enumerate(CAUSES)}
    found = np.array([number.get(text, -1) for text in rows.texts("cause")], dtype=np.int64)
    rows.refuse(found < 0, "unknown cause", f"one of: {', '.join(number)}")
    return found


def _pattern(rows: Rows) -> Pattern:
    """Without the columns of older results: no recovery and no checkpoints are known."""
    if not all(name in rows for name in CHECKPOINTS):
        none = np.full(len(rows), -1, dtype=np.int64)
        return Pattern(none + 1, none, none, none)
    recovery, *rest = CHECKPOINTS
    return Pattern(rows.times(recovery), *(rows.times(name, empty=-1) for name in rest))


def read_node_events(path: Path, n_nodes: int) -> NodeEvents:
    """The events of node_events.csv; InputError with file and line for broken ones."""
    rows = Rows(path, ("time", "event", "nodes"))
    dates, words = rows.times("time"), rows.texts("event")
    up = np.array([word == "rejuvenated" for word in words], dtype=np.bool_)
    failed = np.array([word == "failed" for word in words], dtype=np.bool_)
    rows.refuse(~(up | failed), "unknown event", "failed or rejuvenated")
    rows.refuse(np.diff(dates, prepend=0) < 0, "is before the event above it", "ascending dates")
    blocks = _blocks(rows, n_nodes, lambda done, of: None)
    sets = np.split(
        np.stack([blocks.first, blocks.last], axis=1),
        np.searchsorted(blocks.owner, np.arange(1, len(words))),
    )
    return [
        (int(at), bool(is_up), NodeSet(nodes))
        for at, is_up, nodes in zip(dates, up, sets, strict=False)
    ]
