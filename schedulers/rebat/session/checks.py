# SPDX-License-Identifier: Apache-2.0
"""Why a proposal cannot be carried out; an empty text where it can.

Whatever a real Batsim would abort on is found here.
"""

from __future__ import annotations

from rebat.contract import Move, Start, Stop, Wait, When
from rebat.core.attempts import Attempt, Running
from rebat.core.nodes import NodeSet
from rebat.kernels.pool import FREE
from rebat.session.claims import Claims
from rebat.session.lifecycle import Lifecycle


def why_not_start(attempt: Attempt | None, start: Start, claims: Claims) -> str:
    """An attempt must be queued, its nodes usable and free."""
    if attempt is None:
        return "is not in the queue"
    size = start.size(attempt.n_nodes)
    if start.n_nodes not in (None, size):
        return f"starts on {size} nodes, and on {start.n_nodes}"
    if size < 1:
        return "cannot start on no node"
    if start.nodes is None:
        return f"needs {size} nodes, {claims.n_free} are free" if size > claims.n_free else ""
    return not_free(start.nodes, claims)


def not_free(nodes: NodeSet, claims: Claims) -> str:
    """Which node stands in the way of a start."""
    obstacle = claims.obstacle(nodes)
    return f"node {obstacle} is not up and free" if obstacle >= 0 else ""


def why_not_stop(stop: Stop, jobs: Lifecycle) -> str:
    """An attempt must run, and not be stopped already."""
    if stop.attempt_id not in jobs.running or stop.attempt_id in jobs.stopping:
        return "cannot be stopped: it is not running"
    if stop.attempt_id in jobs.scheduled:
        return "cannot be stopped: it will be already"
    then = stop.then
    if stop.when == When.RESIZE and not isinstance(then, Move):
        return "cannot be resized: it is not to move"
    if isinstance(then, Wait) and then.on and then.on not in jobs.scheduled:
        return f"cannot wait for {then.on}: no stop of that is to come"
    return ""


def why_not_alive(running: Running, claims: Claims) -> str:
    """What runs on a dead node cannot be saved any more."""
    down = running.nodes.of_each(claims.down)
    return "cannot be checkpointed: a node of its is down" if down.any() else ""


def why_not_move(move: Move, running: Running, claims: Claims, jobs: Lifecycle) -> str:
    """The target must be usable, and its own, free or being vacated."""
    nodes = move.nodes
    if not nodes.size:
        return "cannot move to no node"
    if int(nodes.intervals[-1, 1]) >= claims.n_nodes:
        return f"cannot move: node {int(nodes.intervals[-1, 1])} is not on the machine"
    lost = claims.usable(nodes)
    if lost.size < nodes.size:
        return f"cannot move: {nodes.size - lost.size} of its nodes are down or drained"
    leaving = {
        stopping.running.attempt.serial
        for stopping in jobs.stopping.values()
        if not isinstance(stopping.stop.then, Wait)  # whose nodes stay held
    }
    tags = claims.tags(nodes).tolist()
    others = set(tags) - leaving - {FREE, running.attempt.serial}
    if others:
        held = next(node for node, tag in zip(nodes, tags, strict=True) if tag in others)
        return f"cannot move: node {held} is held"
    return _wanted_twice(nodes, jobs)


def _wanted_twice(nodes: NodeSet, jobs: Lifecycle) -> str:
    stops = [scheduled.stop for scheduled in jobs.scheduled.values()]
    stops += [stopping.stop for stopping in (*jobs.stopping.values(), *jobs.moving.values())]
    for stop in stops:
        if isinstance(stop.then, Move) and nodes.meets(stop.then.nodes):
            return f"cannot move: {stop.attempt_id} moves there"
    return ""


def why_not_drain(nodes: NodeSet, claims: Claims, drained: bool, why: str) -> str:
    """Nodes must be on the machine, and in the other state, as far as this reason goes."""
    if nodes.size and int(nodes.intervals[-1, 1]) >= claims.n_nodes:
        return f"is not on the machine of {claims.n_nodes} nodes"
    if (nodes.of_each(claims.drained_for(why)) == drained).any():
        return "is drained already" if drained else "is not drained"
    return ""
