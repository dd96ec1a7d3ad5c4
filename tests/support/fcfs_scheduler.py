# SPDX-License-Identifier: Apache-2.0
"""The scheduler ``fcfs`` of Batsched 1.4, as a program with the options of Batsched.

Like Batsched, it registers no jobs, and does not report that the registration of jobs is finished.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import zmq


class Fcfs:
    """The state of the machine and the queue."""

    def __init__(self) -> None:
        self.n_nodes = 0
        self.free: set[int] = set()
        self.queue: list[tuple[str, int]] = []
        self.running: dict[str, list[int]] = {}

    def decide(self, events: list[dict[str, Any]], now: float) -> list[dict[str, Any]]:
        """Return the decisions about the events of a message."""
        new: list[tuple[str, int]] = []
        ended, decisions = False, []
        for event in events:
            data = event["data"]
            if event["type"] == "SIMULATION_BEGINS":
                self.n_nodes = data["nb_resources"]
                self.free = set(range(self.n_nodes))
            elif event["type"] == "JOB_SUBMITTED":
                new.append((data["job_id"], data["job"]["res"]))
            elif event["type"] == "JOB_COMPLETED":
                self.free |= set(self.running.pop(data["job_id"]))
                ended = True
        while ended and self.queue and self.queue[0][1] <= len(self.free):
            decisions.append(self.start(*self.queue.pop(0), now))
        for job_id, size in new:
            if size > self.n_nodes:
                data = {"job_id": job_id}
                decisions.append({"timestamp": now, "type": "REJECT_JOB", "data": data})
            elif not self.queue and size <= len(self.free):
                decisions.append(self.start(job_id, size, now))
            else:
                self.queue.append((job_id, size))
        return decisions

    def start(self, job_id: str, size: int, now: float) -> dict[str, Any]:
        """Start a job on the lowest free nodes, and return the decision."""
        nodes = sorted(self.free)[:size]
        self.free -= set(nodes)
        self.running[job_id] = nodes
        data = {"job_id": job_id, "alloc": " ".join(map(str, nodes))}
        return {"timestamp": now, "type": "EXECUTE_JOB", "data": data}


def main(options: dict[str, str]) -> None:
    """Answer the messages of a simulator until the simulation ends."""
    assert options.keys() == {"-v", "-s", "--verbosity"}, options
    assert options["-v"] == "fcfs"
    scheduler, ends = Fcfs(), False
    with zmq.Context() as context, context.socket(zmq.REP) as socket:
        socket.bind(options["-s"])
        while not ends:
            message = json.loads(socket.recv())
            events, now = message["events"], message["now"]
            socket.send_json({"now": now, "events": scheduler.decide(events, now)})
            ends = any(event["type"] == "SIMULATION_ENDS" for event in events)


if __name__ == "__main__":
    main(dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True)))
