# SPDX-License-Identifier: Apache-2.0
"""What one row of a job table must fulfil by itself, whoever wrote it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from rebat.results.files.batsim_files import REJECTED, SUCCESS, WALLTIME, JobRecord
from rebat.results.validate.findings import ROUNDING_US, Reference, seconds

Wrong = tuple[str, str]
"""Kind and text of what is wrong."""

_LAST_DIGIT = 1e-6
"""Batsim prints a stretch with six digits, ours is rounded from whole microseconds."""


def _outside(row: JobRecord, reference: Reference) -> Iterator[Wrong]:
    last = int(row.nodes.intervals[-1, 1]) if len(row.nodes) else -1
    if reference.n_nodes is not None and last >= reference.n_nodes:
        yield "outside", f"node {last} of a machine of {reference.n_nodes}"


def _twice(row: JobRecord, _: Reference) -> Iterator[Wrong]:
    if row.twice is not None:
        yield "node twice", f"lists node {row.twice} twice"


def _size(row: JobRecord, _: Reference) -> Iterator[Wrong]:
    if row.ran and row.n_nodes is not None and len(row.nodes) != row.n_nodes:
        yield "size", f"{len(row.nodes)} nodes, requested {row.n_nodes}"
    elif row.ran and not len(row.nodes):
        yield "size", "ran on no node"
    elif not row.ran and len(row.nodes):
        yield "size", f"never started, has {len(row.nodes)} nodes"


def _walltime(row: JobRecord, reference: Reference) -> Iterator[Wrong]:
    run = row.held_us
    if run is None or row.walltime_us is None:
        return
    if run > row.walltime_us + ROUNDING_US + reference.slack_us:
        yield "walltime", f"ran {seconds(run)}, walltime {seconds(row.walltime_us)}"


def _state(row: JobRecord, reference: Reference) -> Iterator[Wrong]:
    if row.success is not None and row.success != (row.state == SUCCESS):
        yield "state", f"success is {int(row.success)}, final_state {row.state}"
    if row.ran == (row.state == REJECTED):
        yield "state", f"{row.state}, and {'ran' if row.ran else 'never started'}"
    if row.state != WALLTIME or row.start_us is None or row.end_us is None:
        return
    if row.walltime_us is None:
        if row.walltime_told:
            yield "state", "reached its walltime, and has none"
    elif row.end_us - row.start_us < row.walltime_us - ROUNDING_US - reference.slack_us:
        ran = seconds(row.end_us - row.start_us)
        yield "state", f"reached its walltime of {seconds(row.walltime_us)}, ran {ran}"


def _order(row: JobRecord, _: Reference) -> Iterator[Wrong]:
    if row.start_us is None or row.end_us is None:
        return
    starts = f"starts at {seconds(row.start_us)}"
    if row.submit_us is not None and row.start_us < row.submit_us:
        yield "early start", f"{starts}, submitted at {seconds(row.submit_us)}"
    if row.end_us < row.start_us:
        yield "negative run", f"finishes at {seconds(row.end_us)}, {starts}"


def _times(row: JobRecord, _: Reference) -> Iterator[Wrong]:
    for name, told, later, earlier in (
        ("execution_time", row.run_us, row.end_us, row.start_us),
        ("waiting_time", row.wait_us, row.start_us, row.submit_us),
        ("turnaround_time", row.flow_us, row.end_us, row.submit_us),
    ):
        if told is None or later is None or earlier is None:
            continue
        if abs(told - (later - earlier)) > ROUNDING_US:
            yield "times", f"{name} is {seconds(told)}, its dates give {seconds(later - earlier)}"


def _stretch(row: JobRecord, _: Reference) -> Iterator[Wrong]:
    """A stretch is turnaround over run time: what dates that are rounded leave possible of it."""
    if row.stretch is None or row.start_us is None or row.end_us is None or row.submit_us is None:
        return
    run, flow = row.end_us - row.start_us, row.end_us - row.submit_us
    if run < 0:
        return
    least = (flow - ROUNDING_US) / (run + ROUNDING_US)
    most = (flow + ROUNDING_US) / (run - ROUNDING_US) if run > ROUNDING_US else math.inf
    if not least - _LAST_DIGIT <= row.stretch <= most + _LAST_DIGIT:
        given = f"its dates give {flow / run:.6f}" if run else "it ran for no time"
        yield "times", f"stretch is {row.stretch:.6f}, {given}"


Check = Callable[[JobRecord, Reference], Iterator[Wrong]]

CHECKS: tuple[Check, ...] = (
    _outside, _twice, _size, _walltime, _state, _order, _times, _stretch,
)  # fmt: skip
