# SPDX-License-Identifier: Apache-2.0
"""The judgement of a record: facts that can shape an answer, with the option that changes each.

Each finding is a sentence that begins with `MARK`. The workload keeps the findings as notes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from rebat.core.counted import counted
from rebat.core.units import format_duration
from rebat.records.clock import Floats

MARK = "check: "
"""Begin of the note of a finding."""

MAX_LISTED = 10
"""Maximum number of ids that a finding lists."""

LEAST_JOBS = 10
"""Records with fewer jobs have no usual rate of submissions."""

USUAL_JOBS = 20
"""The rate is compared in the time in which this number of jobs is usual."""

USUAL_SHARE = 0.25
"""Share of the usual number of jobs from which a rate is usual."""

EARLY_SHARE = 0.05
"""Largest share of jobs that are stragglers, and smallest share of time that they add."""


def finding(text: str, option: str) -> str:
    """Return a finding as a note: what is in the record, and the option that changes it."""
    return f"{MARK}{text}; {option}"


def is_finding(note: str) -> bool:
    """Return whether a note of a workload is a finding."""
    return note.startswith(MARK)


def listed(ids: Sequence[str]) -> str:
    """Return ids as a list of limited length.

    >>> listed([str(n) for n in range(12)])
    '0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...'
    """
    return ", ".join(ids[:MAX_LISTED]) + (", ..." if len(ids) > MAX_LISTED else "")


def record_begin_s(submit_s: Floats) -> float:
    """Return the first time from which the rate of submissions is usual.

    An export of a period also contains jobs that were submitted before the period and ran in it.
    The usual rate is the rate of the middle half of the jobs. If the jobs before this time are more
    than a few, or add little time, the record begins with its first job.
    """
    n = len(submit_s)
    if n < LEAST_JOBS:
        return -np.inf
    times = np.sort(submit_s)
    low, high = times[n // 4], times[n - 1 - n // 4]
    if not high > low:
        return -np.inf
    rate = n / 2 / (high - low)
    n_usual = min(USUAL_JOBS, n // 2)
    after = np.searchsorted(times, times + n_usual / rate, "right") - np.arange(n)
    usual = np.flatnonzero(after >= max(USUAL_SHARE * n_usual, 2))
    first = int(usual[0]) if len(usual) else 0
    added_s, rest_s = times[first] - times[0], times[-1] - times[first]
    few = first <= max(EARLY_SHARE * n, 1)
    return float(times[first]) if few and added_s > EARLY_SHARE * rest_s else -np.inf


def stragglers_note(times: Floats, begin_s: float, ids: Sequence[str], all_jobs: bool) -> str:
    """Return the finding about jobs submitted before the record begins.

    Parameters
    ----------
    times : array
        Submissions in order.
    begin_s : float
        Begin of the record.
    ids : sequence of str
        Ids of the jobs in the order of ``times``.
    all_jobs : bool
        Whether these jobs are part of the workload.
    """
    count = int(np.searchsorted(times, begin_s))
    jobs, were = ("job", "was") if count == 1 else ("jobs", "were")
    text = (
        f"{count} of {counted(len(times), 'job')} {were} submitted up to "
        f"{format_duration(begin_s - times[0])} before all others "
        f"({jobs} {listed(ids[:count])})"
    )
    if all_jobs:
        return finding(f"{text}: kept", "without --all the record begins with the others")
    return finding(f"{text}: left out, the record begins with the others", "--all keeps them")


def early_note(ids: Sequence[str]) -> str:
    """Return the finding about jobs that started before their submission."""
    return finding(
        f"{counted(len(ids), 'job')} started before the submission "
        f"({'job' if len(ids) == 1 else 'jobs'} {listed(ids)}): the workload has the submission",
        "in a recorded schedule (--schedule) they start at the submission",
    )


def runaway_note(ids: Sequence[str], how: str) -> str:
    """Return the finding about jobs that run far longer than their limit."""
    done = {
        "next": "ended at the next start of a job on their nodes, and at their limit at the latest",
        "limit": "ended at their limit",
        "drop": "dropped",
        "keep": "kept",
    }[how]
    return finding(
        f"{counted(len(ids), 'job')} without an end ran more than twice the limit "
        f"({'job' if len(ids) == 1 else 'jobs'} {listed(ids)}): {done}",
        "--runaway next, limit, drop or keep changes this",
    )


def stale_note(nodes: Iterable[str], count: int, how: str) -> str:
    """Return the finding about node events without an end although the node lived later."""
    done = {
        "next": "ended at the next job or event of the node",
        "drop": "dropped",
        "keep": "kept: the node stays down",
    }[how]
    return finding(
        f"{counted(count, 'node event')} without an end, but the node was alive later "
        f"({listed(list(dict.fromkeys(nodes)))}): {done}",
        "--stale next, drop or keep changes this",
    )
