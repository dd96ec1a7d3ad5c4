# SPDX-License-Identifier: Apache-2.0
"""Random dependencies and arrays, and a check of a ledger against them."""

from __future__ import annotations

import random
from collections import Counter

import msgspec

from rebat.core.attempts import Cause, job_name
from rebat.core.dependencies import KINDS, array_limit, conditions_of
from rebat.core.jobs import Workload
from rebat.state.ledger import AttemptRecord, Ledger


def dependent(rng: random.Random, workload: Workload) -> Workload:
    """Return a workload in which many jobs depend on others, or are tasks of an array.

    A job can depend on a job that is submitted later.
    """
    order = [*range(len(workload.jobs))]
    rng.shuffle(order)
    jobs = [*workload.jobs]
    for place, at in enumerate(order):
        extra = dict(jobs[at].extra)
        others = [jobs[other].id for other in order[:place]]
        if others and rng.random() < 0.6:
            parts = [
                ":".join([rng.choice([*KINDS]), *rng.sample(others, min(len(others), n))])
                for n in rng.choice([(1,), (1,), (2,), (1, 1)])
            ]
            extra["dependency"] = ",".join(parts)
        if rng.random() < 0.4:
            extra["array"] = rng.choice(["a%1", "b%2"])
        jobs[at] = msgspec.structs.replace(jobs[at], extra=extra)
    return msgspec.structs.replace(workload, jobs=tuple(jobs))


def check_dependent(ledger: Ledger, workload: Workload) -> None:
    """Check that no dependency is violated, no limit exceeded, and no job blocked too long."""
    records: dict[str, list[AttemptRecord]] = {}
    for record in ledger.attempts:
        records.setdefault(job_name(record.attempt.job_id), []).append(record)
    refused = {job_name(job): why for job, why in ledger.rejections if "dependency" in why}
    events: dict[str, list[tuple[int, int]]] = {}
    for job in workload.jobs:
        of = sorted(records[job.id], key=lambda record: record.attempt.number)
        over_us, possible, since_us = 0, True, job.submit_us
        for kind, other in conditions_of(job.extra.get("dependency", "")):
            before = sorted(records[other], key=lambda record: record.attempt.number)
            ok = before[-1].cause == Cause.COMPLETED
            possible &= kind in ("after", "afterany") or ok == (kind == "afterok")
            us = [r.start_us if kind == "after" else r.end_us for r in before if r.start_us >= 0]
            reached_us = max(before[-1].attempt.submit_us, before[-1].attempt.queued_us)
            if us:
                reached_us = min(us) if kind == "after" else max(us)
            over_us = max(over_us, reached_us)
        if job.id in refused:
            assert not possible, f"job {job.id} is rejected, but its dependency could hold"
            continue
        assert possible, f"the dependency of job {job.id} can never hold"
        queued_us = of[0].attempt.queued_us
        assert queued_us >= max(since_us, over_us), f"job {job.id} is queued too early"
        array = job.extra.get("array", "")
        if array and of[0].start_us >= 0:
            events.setdefault(array, []).extend([(queued_us, 1), (of[-1].end_us, -1)])
        rejected = any(r.cause == Cause.REJECTED for rows in records.values() for r in rows)
        waited = {job_name(job) for job in ledger.given_up}  # given up at the end of a wait
        others = {other for _, other in conditions_of(job.extra.get("dependency", ""))}
        if not array and not rejected and not others & waited:
            assert queued_us == max(since_us, over_us), f"job {job.id} is queued too late"
    for array, rows in events.items():
        active = Counter[int]()
        for at_us, change in rows:
            active[at_us] += change
        n_active = 0
        for at_us in sorted(active):
            n_active += active[at_us]
            assert n_active <= array_limit(array), f"array {array} exceeds its limit"
