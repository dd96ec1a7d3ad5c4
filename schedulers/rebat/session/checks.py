# SPDX-License-Identifier: Apache-2.0
"""Why a proposal cannot be carried out; None where it can.

Whatever a real Batsim would abort on is found here.
"""

from __future__ import annotations

from rebat.contract import Drain, Move, Refusal, Start, Stop, Undrain, Wait, When
from rebat.core.attempts import Attempt, Running
from rebat.core.nodes import NodeSet
from rebat.kernels.pool import FREE
from rebat.session.claims import Claims
from rebat.session.lifecycle import Lifecycle


def why_not_start(attempt: Attempt | None, start: Start, claims: Claims) -> Refusal | None:
    """An attempt must be queued, its nodes usable and free."""
    reason = ""
    if attempt is None:
        return Refusal(start.attempt_id, "is not in the queue")
    size = start.size(attempt.n_nodes)
    if start.n_nodes not in (None, size):
        reason = f"starts on {size} nodes, and on {start.n_nodes}"
    elif size < 1:
        reason = "cannot start on no node"
    elif start.nodes is not None:
        return not_free(start.attempt_id, start.nodes, claims)
    elif size > claims.n_free:
        reason = f"needs {size} nodes, {claims.n_free} are free"
    return Refusal(start.attempt_id, reason) if reason else None


def not_free(attempt_id: str, nodes: NodeSet, claims: Claims) -> Refusal | None:
    """Which node stands in the way of a start."""
    obstacle = claims.obstacle(nodes)
    return Refusal(attempt_id, f"node {obstacle} is not up and free") if obstacle >= 0 else None


def why_not_stop(stop: Stop, jobs: Lifecycle) -> Refusal | None:
    """An attempt must run, and not be stopped already."""
    then, reason = stop.then, ""
    if stop.attempt_id not in jobs.running or stop.attempt_id in jobs.stopping:
        reason = "cannot be stopped: it is not running"
    elif stop.attempt_id in jobs.scheduled:
        reason = "cannot be stopped: it will be already"
    elif stop.when == When.RESIZE and not isinstance(then, Move):
        reason = "cannot be resized: it is not to move"
    elif isinstance(then, Wait) and then.on and then.on not in jobs.scheduled:
        reason = f"cannot wait for {then.on}: no stop of that is to come"
    return Refusal(stop.attempt_id, reason) if reason else None


def why_not_alive(running: Running, claims: Claims) -> Refusal | None:
    """What runs on a dead node cannot be saved any more."""
    if not running.nodes.of_each(claims.down).any():
        return None
    return Refusal(running.attempt.id, "cannot be checkpointed: a node of its is down")


def why_not_move(move: Move, running: Running, claims: Claims, jobs: Lifecycle) -> Refusal | None:
    """The target must be usable, and its own, free or being vacated."""
    nodes, attempt = move.nodes, running.attempt
    if not nodes.size:
        return Refusal(attempt.id, "cannot move to no node")
    last = int(nodes.intervals[-1, 1])
    if last >= claims.n_nodes:
        return Refusal(attempt.id, f"cannot move: node {last} is not on the machine")
    n_lost = nodes.size - claims.usable(nodes).size
    if n_lost:
        return Refusal(attempt.id, f"cannot move: {n_lost} of its nodes are down or drained")
    leaving = {
        stopping.running.attempt.serial
        for stopping in jobs.stopping.values()
        if not isinstance(stopping.stop.then, Wait)  # whose nodes stay held
    }
    tags = claims.tags(nodes).tolist()
    others = set(tags) - leaving - {FREE, attempt.serial}
    if others:
        held = next(node for node, tag in zip(nodes, tags, strict=True) if tag in others)
        return Refusal(attempt.id, f"cannot move: node {held} is held")
    return _wanted_twice(attempt.id, nodes, jobs)


def _wanted_twice(attempt_id: str, nodes: NodeSet, jobs: Lifecycle) -> Refusal | None:
    stops = [scheduled.stop for scheduled in jobs.scheduled.values()]
    stops += [stopping.stop for stopping in (*jobs.stopping.values(), *jobs.moving.values())]
    for stop in stops:
        if isinstance(stop.then, Move) and nodes.meets(stop.then.nodes):
            return Refusal(attempt_id, f"cannot move: {stop.attempt_id} moves there")
    return None


def why_not_drain(change: Drain | Undrain, claims: Claims) -> Refusal | None:
    """Nodes must be on the machine, and in the other state, as far as this reason goes."""
    nodes, drains, reason = change.nodes, isinstance(change, Drain), ""
    if nodes.size and int(nodes.intervals[-1, 1]) >= claims.n_nodes:
        reason = f"is not on the machine of {claims.n_nodes} nodes"
    elif (nodes.of_each(claims.drained_for(change.why)) == drains).any():
        reason = "is drained already" if drains else "is not drained"
    return Refusal(f"nodes {nodes}", reason) if reason else None
