# SPDX-License-Identifier: Apache-2.0
"""Checks of single rows of a job table, for any scheduler."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from rebat.results.files.batsim_files import REJECTED, SUCCESS, WALLTIME, JobRecord
from rebat.results.validate.findings import ROUNDING_US, Reference, seconds

Wrong = tuple[str, str]
"""Kind and text of a finding."""

_LAST_DIGIT = 1e-6
"""Maximum rounding error of a stretch, which Batsim prints with six digits."""


def _outside(row: JobRecord, reference: Reference) -> Iterator[Wrong]:
    last = int(row.nodes.intervals[-1, 1]) if len(row.nodes) else -1
    if reference.n_nodes is not None and last >= reference.n_nodes:
        yield "outside", f"runs on node {last}, but the machine has {reference.n_nodes} nodes"


def _twice(row: JobRecord, _: Reference) -> Iterator[Wrong]:
    if row.duplicate_node is not None:
        yield "node twice", f"lists node {row.duplicate_node} twice"


def _size(row: JobRecord, _: Reference) -> Iterator[Wrong]:
    if row.ran and row.n_nodes is not None and len(row.nodes) != row.n_nodes:
        yield "size", f"ran on {len(row.nodes)} nodes, but requested {row.n_nodes}"
    elif row.ran and not len(row.nodes):
        yield "size", "ran without nodes"
    elif not row.ran and len(row.nodes):
        yield "size", f"never started, but has {len(row.nodes)} nodes"


def _walltime(row: JobRecord, reference: Reference) -> Iterator[Wrong]:
    run = row.held_us
    if run is None or row.walltime_us is None:
        return
    if run > row.walltime_us + ROUNDING_US + reference.slack_us:
        yield "walltime", f"ran {seconds(run)}, but its walltime is {seconds(row.walltime_us)}"


def _state(row: JobRecord, reference: Reference) -> Iterator[Wrong]:
    if row.success is not None and row.success != (row.state == SUCCESS):
        yield "state", f"success is {int(row.success)}, but final_state is {row.state}"
    if row.ran == (row.state == REJECTED):
        yield "state", f"is {row.state}, but {'ran' if row.ran else 'never started'}"
    if row.state != WALLTIME or row.start_us is None or row.end_us is None:
        return
    if row.walltime_us is None:
        if row.walltime_listed:
            yield "state", "reached its walltime, but has none"
    elif row.end_us - row.start_us < row.walltime_us - ROUNDING_US - reference.slack_us:
        ran = seconds(row.end_us - row.start_us)
        yield "state", f"reached its walltime of {seconds(row.walltime_us)}, but ran {ran}"


def _order(row: JobRecord, _: Reference) -> Iterator[Wrong]:
    if row.start_us is None or row.end_us is None:
        return
    starts = f"starts at {seconds(row.start_us)}"
    if row.submit_us is not None and row.start_us < row.submit_us:
        yield "early start", f"{starts}, but is submitted at {seconds(row.submit_us)}"
    if row.end_us < row.start_us:
        yield "negative run", f"finishes at {seconds(row.end_us)}, but {starts}"


def _times(row: JobRecord, _: Reference) -> Iterator[Wrong]:
    for name, value, later, earlier in (
        ("execution_time", row.run_us, row.end_us, row.start_us),
        ("waiting_time", row.wait_us, row.start_us, row.submit_us),
        ("turnaround_time", row.flow_us, row.end_us, row.submit_us),
    ):
        if value is None or later is None or earlier is None:
            continue
        if abs(value - (later - earlier)) > ROUNDING_US:
            difference = seconds(later - earlier)
            yield "times", f"{name} is {seconds(value)}, but its times differ by {difference}"


def _stretch(row: JobRecord, _: Reference) -> Iterator[Wrong]:
    """Check that the stretch is turnaround divided by run time, up to the rounding error."""
    if row.stretch is None or row.start_us is None or row.end_us is None or row.submit_us is None:
        return
    run, flow = row.end_us - row.start_us, row.end_us - row.submit_us
    if run < 0:
        return
    least = (flow - ROUNDING_US) / (run + ROUNDING_US)
    most = (flow + ROUNDING_US) / (run - ROUNDING_US) if run > ROUNDING_US else math.inf
    if not least - _LAST_DIGIT <= row.stretch <= most + _LAST_DIGIT:
        actual = f"its times result in {flow / run:.6f}" if run else "its run time is 0"
        yield "times", f"stretch is {row.stretch:.6f}, but {actual}"


Check = Callable[[JobRecord, Reference], Iterator[Wrong]]

CHECKS: tuple[Check, ...] = (
    _outside,
    _twice,
    _size,
    _walltime,
    _state,
    _order,
    _times,
    _stretch,
)
