# SPDX-License-Identifier: Apache-2.0
"""The judgement of a record: facts that can shape an answer, with the option that changes each.

A finding states what is in the record, how often, in which rows, and what the import does (see
`records.findings`). The workload keeps the findings as notes. Other commands repeat them, so the
options are those of ``import``. Records of several clusters in one file share ids of jobs, but must
not share nodes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from rebat.core.errors import InputError
from rebat.core.numbers import exactly, node_hours, rounded
from rebat.records.clock import Floats
from rebat.records.findings import finding
from rebat.records.hosts import expanded
from rebat.records.table import Rows

MAX_LISTED = 10
"""Maximum number of ids that a finding lists."""

LEAST_JOBS = 10
"""Records with fewer jobs have no usual rate of submissions."""

USUAL_JOBS = 20
"""The rate is compared in the time in which this number of jobs is usual."""

USUAL_SHARE = 0.25
"""Share of the usual number of jobs from which a rate is usual."""

EARLY_SHARE = 0.05
"""Largest share of jobs that are stragglers, and smallest share of time that they add.

Stragglers that hold more than this share of the node time are a part of the load: they are kept.
"""


def listed(ids: Sequence[str]) -> str:
    """Return ids as a list of limited length.

    >>> listed([str(n) for n in range(12)])
    '0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...'
    """
    return ", ".join(ids[:MAX_LISTED]) + (", ..." if len(ids) > MAX_LISTED else "")


def _jobs(ids: Sequence[str]) -> str:
    return f"{'job' if len(ids) == 1 else 'jobs'} {listed(ids)}"


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


def stragglers_note(
    times: Floats, begin_s: float, ids: Sequence[str], node_s: Floats, all_jobs: bool
) -> tuple[str, bool]:
    """Return the finding about jobs submitted before the record begins, and whether they are kept.

    Parameters
    ----------
    times : array
        Submissions in order.
    begin_s : float
        Begin of the record.
    ids : sequence of str
        Ids of the jobs in the order of ``times``.
    node_s : array
        Node times of the jobs in the same order, in seconds.
    all_jobs : bool
        Whether to keep these jobs in any case.
    """
    count = int(np.searchsorted(times, begin_s))
    held_s, total_s = float(node_s[:count].sum()), float(node_s.sum())
    share = held_s / total_s if total_s else 0.0
    text = (
        f"{count} of {exactly(len(times), 'job')} {'was' if count == 1 else 'were'} submitted up "
        f"to {rounded(begin_s - times[0])} before all others ({_jobs(ids[:count])}; "
        f"{node_hours(held_s)}, {100 * share:.2g} % of the node time)"
    )
    if all_jobs or share > EARLY_SHARE:
        text += ": kept, so the record begins with the first of these"
        advice = f"import with --first {begin_s - times[0]:.0f}s to leave them out"
        return finding(text, advice), True
    text += ": left out, so the record begins with the others"
    return finding(text, "import with --all to keep them"), False


def early_note(ids: Sequence[str], longest_s: float) -> str:
    """Return the finding about jobs that started up to ``longest_s`` before their submission."""
    return finding(
        f"{exactly(len(ids), 'job')} started up to {rounded(longest_s)} before the "
        f"submission ({_jobs(ids)}): the submission is kept, and a recorded schedule (--schedule) "
        "starts them at the submission",
        "if the times are wrong, correct them in the record",
    )


def eligible_note(ids: Sequence[str], longest_s: float) -> str:
    """Return the finding about jobs that became eligible up to ``longest_s`` after submission."""
    return finding(
        f"{exactly(len(ids), 'job')} became eligible after the submission, up to "
        f"{rounded(longest_s)} later ({_jobs(ids)}), because of a dependency, a begin "
        "time, a hold or an array limit: the workload uses the later time as the submission",
        "import with --submission submitted to use the users' submissions",
    )


def runaway_note(ids: Sequence[str], run_s: Floats, limit_s: Floats, how: str) -> str:
    """Return the finding about jobs that run far longer than their limit."""
    done = {
        "next": "ended at the next start of a job on the same nodes, or at the limit if earlier",
        "limit": "ended at the limit",
        "drop": "left out",
        "keep": "kept with the recorded run time",
    }[how]
    worst = int(np.argmax(run_s))
    ran, limit = rounded(run_s[worst]), rounded(limit_s[worst])
    longest = f"the longest ran {ran}" if len(ids) > 1 else f"it ran {ran}"
    return finding(
        f"{exactly(len(ids), 'job')} without an end ran more than twice the limit ({_jobs(ids)}; "
        f"{longest} with a limit of {limit}): {done}",
        f"import with --runaway {_others(('next', 'limit', 'drop', 'keep'), how)}",
    )


def stale_note(nodes: Iterable[str], count: int, how: str) -> str:
    """Return the finding about node events without an end although the node lived later."""
    done = {
        "next": "ended at this job or event",
        "drop": "left out",
        "keep": "kept, so the node stays down",
    }[how]
    names = list(dict.fromkeys(nodes))
    return finding(
        f"{exactly(count, 'node event')} without an end, but the node had a job or an event later "
        f"({listed(names)}): {done}",
        f"import with --stale {_others(('next', 'drop', 'keep'), how)}",
    )


def open_note(nodes: Iterable[str], jobs: bool) -> str:
    """Return the finding about events without an end, whose nodes show no later sign of life."""
    names = list(dict.fromkeys(nodes))
    option = "import with --attempts to use later jobs as signs of life"
    return finding(
        f"{exactly(len(names), 'node')} had an event without an end and no later sign of life "
        f"({listed(names)}): down to the end of the record",
        "if they live, correct the events" if jobs else option,
    )


def down_note(ids: Sequence[str], n_jobs: int) -> str:
    """Return the finding about jobs whose last attempt started while one of its nodes was down."""
    return finding(
        f"the last attempt of {len(ids)} of {exactly(n_jobs, 'job')} started while one of its "
        f"nodes was down ({_jobs(ids)}): left out",
        "if there are many, the clocks of the two files may differ: import with --zone if one has "
        "local times, or without --events",
    )


def _others(choices: Sequence[str], how: str) -> str:
    """Return the other choices of an option as text."""
    *first, last = [choice for choice in choices if choice != how]
    return f"{', '.join(first)} or {last} to change this"


def of_cluster(table: Rows, cluster: str | None) -> Rows:
    """Return the rows of a cluster. With None, check that all node names are of one cluster."""
    clusters = table.text("cluster")
    names = sorted(set(clusters.tolist()) - {""})
    if cluster is not None:
        if cluster not in names:
            expected = f"one of: {', '.join(names)}" if names else "records with a column Cluster"
            raise InputError(f"has no records of cluster {cluster!r}", table.where, expected)
        return table.taken(clusters == cluster)
    if len(names) > 1:
        check_clusters(table)
        text = (
            f"the records are of {len(names)} clusters ({listed(names)}): imported as one machine"
        )
        table.notes.append(finding(text, "import with --cluster NAME to use one of them"))
    return table


def check_clusters(table: Rows) -> None:
    """Check that no node name occurs in several clusters."""
    lists: defaultdict[str, set[str]] = defaultdict(set)
    columns = (table.text(name).tolist() for name in ("cluster", "hosts"))
    for cluster, hosts in set(zip(*columns, strict=True)):
        lists[cluster].add(hosts)
    clusters: dict[str, str] = {}
    for cluster, texts in sorted(lists.items()) if len(lists) > 1 else ():
        for name in sorted({name for text in texts for name in expanded(text)}):
            other = clusters.setdefault(name, cluster)
            if other != cluster:
                raise InputError(
                    f"node {name} is in the clusters {other} and {cluster}",
                    table.where,
                    f"--cluster with one of: {', '.join(sorted(lists))}",
                )
