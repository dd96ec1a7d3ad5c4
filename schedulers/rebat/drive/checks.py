# SPDX-License-Identifier: Apache-2.0
"""Checks of proposals. Each check returns a refusal, or None if the proposal passes.

The checks refuse every proposal at which a real Batsim would abort.
"""

from __future__ import annotations

from rebat.contract import Drain, Move, Refusal, Start, Stop, Undrain, Wait, When
from rebat.core.attempts import Attempt, Running
from rebat.core.nodes import NodeSet
from rebat.core.numbers import exactly
from rebat.drive.lifecycle import Lifecycle
from rebat.drive.machine import Nodes
from rebat.kernels.pool import FREE


def why_not_start(attempt: Attempt | None, start: Start, machine: Nodes) -> Refusal | None:
    """Check that an attempt is queued, and that its nodes are usable and free."""
    reason = ""
    if attempt is None:
        return Refusal(start.attempt_id, "is not in the queue")
    size = start.size(attempt.n_nodes)
    if start.n_nodes not in (None, size):
        reason = f"cannot start: nodes has {size} nodes, but n_nodes is {start.n_nodes}"
    elif size < 1:
        reason = "cannot start without nodes"
    elif start.nodes is not None:
        obstacle = machine.obstacle(start.nodes)
        return obstructed(start.attempt_id, "start", obstacle) if obstacle >= 0 else None
    elif size > machine.n_free:
        reason = f"needs {exactly(size, 'node')}, but the number of free nodes is {machine.n_free}"
    return Refusal(start.attempt_id, reason) if reason else None


def obstructed(attempt_id: str, action: str, node: int) -> Refusal:
    """Return the refusal of a start or move because a node is not free."""
    return Refusal(attempt_id, f"cannot {action}: node {node} is not up and free")


def why_not_stop(stop: Stop, jobs: Lifecycle) -> Refusal | None:
    """Check that an attempt runs, and that it is not being stopped."""
    then, reason = stop.then, ""
    if stop.attempt_id not in jobs.running or stop.attempt_id in jobs.stopping:
        reason = "cannot be stopped: it is not running"
    elif stop.attempt_id in jobs.scheduled:
        reason = "cannot be stopped: a stop is already scheduled"
    elif stop.when == When.RESIZE and not isinstance(then, Move):
        reason = "cannot be resized: the stop does not move it to other nodes"
    elif isinstance(then, Wait) and then.on and then.on not in jobs.scheduled:
        reason = f"cannot wait for {then.on}: no stop of {then.on} is scheduled"
    return Refusal(stop.attempt_id, reason) if reason else None


def why_not_move(move: Move, running: Running, machine: Nodes, jobs: Lifecycle) -> Refusal | None:
    """Check that each target node of a move is usable, and will be free at the time of the move."""
    nodes, attempt = move.nodes, running.attempt
    if not nodes.size:
        return Refusal(attempt.id, "cannot move: the move has no target nodes")
    last = int(nodes.intervals[-1, 1])
    if last >= machine.n_nodes:
        return Refusal(attempt.id, f"cannot move: node {last} is not on the machine")
    n_lost = nodes.size - machine.usable(nodes).size
    if n_lost:
        return Refusal(attempt.id, f"cannot move: {n_lost} target nodes are down or drained")
    leaving = {
        stopping.running.attempt.serial
        for stopping in jobs.stopping.values()
        if not isinstance(stopping.stop.then, Wait)  # the waiting job still holds its nodes
    }
    tags = machine.tags(nodes)
    others = (tags != FREE) & (tags != attempt.serial)
    for serial in leaving if others.any() else ():
        others &= tags != serial
    if others.any():
        held = nodes.ids[others][0]
        return Refusal(attempt.id, f"cannot move: node {held} is used or held by another job")
    return _conflicting_move(attempt.id, nodes, jobs)


def _conflicting_move(attempt_id: str, nodes: NodeSet, jobs: Lifecycle) -> Refusal | None:
    stops = [scheduled.stop for scheduled in jobs.scheduled.values()]
    stops += [stopping.stop for stopping in (*jobs.stopping.values(), *jobs.moving.values())]
    for stop in stops:
        if isinstance(stop.then, Move) and nodes.meets(stop.then.nodes):
            return Refusal(attempt_id, f"cannot move: {stop.attempt_id} moves to the same nodes")
    return None


def why_not_drain(change: Drain | Undrain, machine: Nodes) -> Refusal | None:
    """Check that the nodes exist, and that a drain or undrain for this reason changes them."""
    nodes, drains, reason = change.nodes, isinstance(change, Drain), ""
    if nodes.size and int(nodes.intervals[-1, 1]) >= machine.n_nodes:
        reason = f"are not all on the machine, which has {machine.n_nodes} nodes"
    elif (nodes.of_each(machine.drained_for(change.why)) == drains).any():
        reason = "are already drained" if drains else "are not drained"
    return Refusal(f"nodes {nodes}", reason) if reason else None
