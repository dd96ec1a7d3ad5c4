# SPDX-License-Identifier: Apache-2.0
"""Policies with one bug each, and the check that must find this bug."""

from __future__ import annotations

from typing import NamedTuple

HEAD = '''
import random, time, traceback
from datetime import datetime
import numpy as np
from rebat.contract import Cause, End, NodeSet, Policy, Start, Stop

def lowest(mask, n):
    return NodeSet.of(np.flatnonzero(mask)[:n].tolist())

class Fcfs(Policy):
    """First come, first served: correct."""

    def jobs(self, view, changes):
        return [*view.queue.values()]

    def plan(self, view, changes):
        free = view.n_free
        for attempt in self.jobs(view, changes):
            if attempt.n_nodes > free:
                break
            free -= attempt.n_nodes
            yield Start(attempt.id)

class Mine(Fcfs):
'''


class Bug(NamedTuple):
    """The methods of a class ``Mine``, the check that finds the bug, and a part of its message."""

    code: str
    check: str
    problem: str


BUGS = {
    "starts on a dead node": Bug(
        """
    def plan(self, view, changes):
        held = view.machine.tags >= 0
        for attempt in [*view.queue.values()][:1]:
            if attempt.n_nodes <= (~held).sum():
                yield Start(attempt.id, lowest(~held, attempt.n_nodes))
""",
        "safety", "node",
    ),
    "starts on a busy node": Bug(
        """
    def plan(self, view, changes):
        for attempt in [*view.queue.values()][:1]:
            if attempt.n_nodes <= view.n_free:
                yield Start(attempt.id, NodeSet.of(range(attempt.n_nodes)))
""",
        "safety", "node",
    ),
    "starts a job twice": Bug(
        """
    def plan(self, view, changes):
        for start in super().plan(view, changes):
            yield start
            yield start
""",
        "safety", "is not in the queue",
    ),
    "starts more than is free": Bug(
        """
    def plan(self, view, changes):
        yield from (Start(name) for name in view.queue)
""",
        "safety", "free",
    ),
    "uses a wrong number of nodes": Bug(
        """
    def plan(self, view, changes):
        for attempt in [*view.queue.values()][:1]:
            if attempt.n_nodes < view.n_free:
                yield Start(attempt.id, lowest(view.machine.free, attempt.n_nodes + 1))
            elif attempt.n_nodes == view.n_free:
                yield Start(attempt.id)
""",
        "safety", "node",
    ),
    "kills a job that ended": Bug(
        """
    def react(self, view, news):
        for running in news.ended:
            yield Stop(running.attempt.id, Cause.PREEMPTED, then=End())
""",
        "safety", "cannot be stopped: it is not running",
    ),
    "raises for an empty queue": Bug(
        """
    def plan(self, view, changes):
        if [*view.queue.values()][0].n_nodes <= view.n_free:
            yield Start([*view.queue][0])
""",
        "safety", "IndexError",
    ),
    "does not expect repairs": Bug(
        """
    def __init__(self):
        self.down = 0
    def react(self, view, news):
        self.down += len(news.failed)
        assert self.down < view.n_nodes
        return ()
""",
        "safety", "AssertionError",
    ),
    "never returns": Bug(
        """
    def plan(self, view, changes):
        while view.queue:
            pass
        return ()
""",
        "safety", "does not return within 5 s",
    ),
    "ends the process": Bug(
        """
    def plan(self, view, changes):
        import os
        os._exit(0)
""",
        "safety", "exit status 0",
    ),
    "waits for a key": Bug(
        """
    def plan(self, view, changes):
        print("continue?")
        input()
        return super().plan(view, changes)
""",
        "safety", "EOFError",
    ),
    "forgets a job": Bug(
        """
    def jobs(self, view, changes):
        return [*changes.arrived, *changes.resubmitted]
""",
        "ends", "does not start",
    ),
    "never restarts a failed job": Bug(
        """
    def jobs(self, view, changes):
        return [attempt for attempt in view.queue.values() if attempt.number == 0]
""",
        "ends", "#1",
    ),
    "starves large jobs": Bug(
        """
    def plan(self, view, changes):
        free = view.n_free
        for attempt in view.queue.values():
            if attempt.n_nodes <= free:
                free -= attempt.n_nodes
                yield Start(attempt.id)
""",
        "starvation", "job w0!other",
    ),
    "starves small jobs": Bug(
        """
    def jobs(self, view, changes):
        return sorted(view.queue.values(), key=lambda a: -a.n_nodes)
""",
        "starvation", "job w0!other of 1 node",
    ),
    "starves old jobs": Bug(
        """
    def jobs(self, view, changes):
        return [*view.queue.values()][::-1]
""",
        "starvation", "waits",
    ),
    "changes the fields of a job": Bug(
        """
    def plan(self, view, changes):
        for start in super().plan(view, changes):
            view.job(view.queue[start.attempt_id].job_id).fields["seen"] = True
            yield start
""",
        "view", "fields of jobs",
    ),
    "changes the queue": Bug(
        """
    def plan(self, view, changes):
        if len(view.queue) > 1:
            queue = view._jobs.queue
            queue[next(iter(queue))] = queue.pop(next(iter(queue)))
        return super().plan(view, changes)
""",
        "view", "queue",
    ),
    "hides a failure": Bug(
        """
    def react(self, view, news):
        news.hit.clear()
        return ()
""",
        "view", "news.hit",
    ),
    "draws from the global generator": Bug(
        """
    def jobs(self, view, changes):
        jobs = [*view.queue.values()]
        random.shuffle(jobs)
        return jobs
""",
        "repeat", "second run",
    ),
    "keeps state of an earlier run": Bug(
        """
    seen = set()
    def jobs(self, view, changes):
        new = [a for a in view.queue.values() if a.id not in self.seen]
        self.seen.update(a.id for a in new)
        return new + [a for a in view.queue.values() if a not in new]
""",
        "repeat", "second run",
    ),
    "depends on the order of a set": Bug(
        """
    def jobs(self, view, changes):
        return [view.queue[name] for name in {*view.queue}]
""",
        "hash-seed", "another hash seed",
    ),
    "depends on the hour": Bug(
        """
    def jobs(self, view, changes):
        jobs = super().jobs(view, changes)
        return jobs if datetime.now().hour % 2 else jobs[::-1]
""",
        "clock", "another time of day",
    ),
    "plans for ten milliseconds": Bug(
        """
    def jobs(self, view, changes):
        begin = time.perf_counter()
        jobs = super().jobs(view, changes)
        return [job for job in jobs if time.perf_counter() - begin < 0.01]
""",
        "clock", "another time of day",
    ),
    "counts messages": Bug(
        """
    count = 0
    def __init__(self):
        self.count = 0
    def react(self, view, news):
        self.count += 1
        return ()
    def jobs(self, view, changes):
        jobs = super().jobs(view, changes)
        return jobs if self.count % 3 else jobs[::-1]
""",
        "messages", "additional messages",
    ),
    "recognises the embedded engine": Bug(
        """
    def jobs(self, view, changes):
        jobs = super().jobs(view, changes)
        remote = any("conversation" in f.f_code.co_filename for f, _ in traceback.walk_stack(None))
        return jobs[::-1] if remote else jobs
""",
        "wire", "Batsim's protocol",
    ),
}  # fmt: skip
