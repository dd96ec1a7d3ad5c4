# SPDX-License-Identifier: Apache-2.0
"""Effective training time and time to failure of the measured jobs, by size class."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from rebat.core.attempts import Cause, job_name
from rebat.core.units import to_s
from rebat.results.measures.flows import by_class
from rebat.results.measures.jobs import JobRows
from rebat.results.measures.recoveries import work_us
from rebat.session.ledger import AttemptRecord, Ledger


class Training(msgspec.Struct, frozen=True):
    """Effective training time of a group of jobs. Jobs are weighted by their nodes.

    Attributes
    ----------
    ettr
        Kept work, divided by the time from first start to end without waits in the queue.
    ettr_queued
        Kept work, divided by the time from submission to end. While a job does not run, it is
        weighted by its requested nodes.
    mttf_s
        Run time of the jobs, divided by the number of failures that hit them. None without
        failures.
    """

    ettr: float
    ettr_queued: float
    mttf_s: float | None


class _Tally(msgspec.Struct):
    """Sums over the attempts of a job.

    ``work`` is the useful time and ``node_s`` the run time, both in node-seconds. ``run_s`` is the
    run time in seconds.
    """

    work: float = 0.0
    node_s: float = 0.0
    run_s: float = 0.0
    failures: int = 0

    def add(self, record: AttemptRecord) -> None:
        n_nodes, run_s = record.attempt.n_nodes, to_s(record.end_us - record.start_us)
        self.work += to_s(work_us(record)) * n_nodes
        self.node_s += run_s * n_nodes
        self.run_s += run_s
        self.failures += is_hit(record)


def is_hit(record: AttemptRecord) -> bool:
    """Return whether a failure of a node hit the attempt."""
    return record.cause == Cause.NODE_FAILURE or record.hit


def training_by_class(ledger: Ledger, rows: JobRows, n_nodes: int) -> dict[str, Training | None]:
    """Return the metrics of each size class of the machine, and of all measured jobs (key 'all').

    Parameters
    ----------
    rows : JobRows
        The measured jobs.
    n_nodes : int
        Number of nodes of the machine.
    """
    tallies: dict[str, _Tally] = defaultdict(_Tally)
    for record in ledger.attempts:
        if record.start_us >= 0:
            tallies[job_name(record.attempt.job_id)].add(record)
    classes = {name: rows[places] for name, places in by_class(rows, n_nodes)} | {"all": rows}
    return {name: _training(jobs, tallies) for name, jobs in classes.items()}


def _training(rows: JobRows, tallies: Mapping[str, _Tally]) -> Training | None:
    if not rows:
        return None
    jobs = [tallies[name] for name in rows.column("job_id")]
    sizes, flow, waits = (rows.column(name) for name in ("size", "flow", "waiting_time"))
    stopped = flow - np.array([job.run_s for job in jobs])
    work, ran = sum(job.work for job in jobs), sum(job.node_s for job in jobs)
    held = ran + sum((sizes * (stopped - waits)).tolist())
    total = ran + sum((sizes * stopped).tolist())
    return Training(
        ettr=work / held if held else 0.0,
        ettr_queued=work / total if total else 0.0,
        mttf_s=_mttf_s(jobs),
    )


def _mttf_s(jobs: Sequence[_Tally]) -> float | None:
    """Return the run time divided by the number of failures, or None if there are none."""
    failures = sum(job.failures for job in jobs)
    return sum(job.run_s for job in jobs) / failures if failures else None
