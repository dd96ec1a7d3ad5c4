# SPDX-License-Identifier: Apache-2.0
"""Rules: operations of an administrator, which drain nodes and move jobs off them.

The rules follow the seven steps of smigrate, section 3.3.1 of Rodríguez-Pascual et al., "Job
migration in HPC clusters by means of checkpoint/restart", 2019. A reaction carries out operations
before everything else. The policies that are asked use the same decisions
(`rebat.policies.reactions.operations`).

The argument ``operations`` is a `rebat.state.operations.Operations`, or None without operations.
"""

from __future__ import annotations

from typing import Any

from rebat.core.units import FOREVER_US
from rebat.kernels import pool
from rebat.kernels.jit import inlined_rule, rule
from rebat.rules.images import add_note
from rebat.rules.moves import begin_move
from rebat.rules.nodes import change_drains
from rebat.rules.waits import emit, kill, stop_of
from rebat.state import codes
from rebat.state.operations import N_DONE, N_EMPTYING, N_NOTES, N_READ, N_RECEIVED, WHY_NOT

# ---- the operations of an instant


@inlined_rule
def next_operation(operations: Any) -> int:
    """Return the time of the next operation."""
    if operations is not None and operations.own[N_RECEIVED] < len(operations.rows):
        return int(operations.rows[operations.own[N_RECEIVED]].at)
    return FOREVER_US


@inlined_rule
def count_due(operations: Any, now: int) -> int:
    """Return how many operations are to be received at a time."""
    k = 0
    if operations is not None:
        first = operations.own[N_RECEIVED]
        while first + k < len(operations.rows) and operations.rows[first + k].at == now:
            k += 1
    return k


@inlined_rule
def announces(operations: Any, state: Any) -> bool:
    """Return whether the operations that are due announce maintenance which is not yet read."""
    if operations is not None:
        own = operations.own
        last = own[N_RECEIVED] + state.n.n_operations_due
        for o in range(max(own[N_READ], own[N_RECEIVED]), last if state.n.reserving else 0):
            if operations.rows[o].kind == codes.ANNOUNCE and operations.rows[o].may:
                return True
    return False


@inlined_rule
def receive(operations: Any, state: Any, now: int) -> None:
    """Receive the operations of a time. They are carried out in the next reaction."""
    if operations is not None:
        k = count_due(operations, now)
        operations.own[N_RECEIVED] += k
        state.n.n_operations_left -= k
        state.n.news = 1


@inlined_rule
def are_due(operations: Any) -> bool:
    """Return whether operations are to be carried out."""
    if operations is not None:
        return bool(operations.own[N_DONE] < operations.own[N_RECEIVED])
    return False


@inlined_rule
def empties(operations: Any) -> bool:
    """Return whether jobs are to leave drained nodes."""
    if operations is not None:
        return bool(operations.own[N_EMPTYING] > 0)
    return False


@rule
def operate(operations: Any, state: Any, room: Any, n_hit: int, now: int) -> int:
    """Carry out new operations, and continue to empty nodes.

    Return the number of attempts hit that are not stopped.
    """
    if operations is not None:
        n, own, hit, n_left = state.n, operations.own, state.hits, 0
        n_before, first, last = n.n_kills, own[N_DONE], own[N_RECEIVED]
        own[N_DONE], n.n_operations_due = last, 0
        for o in range(first, last):
            carry_out(operations, state, room, o, n_hit, now)
        if own[N_EMPTYING]:
            empty(operations, state, n_hit, now)
        for i in range(n_hit):
            a, is_stopped = hit[i].attempt, False
            for k in range(n_before, n.n_kills):
                if state.kills[k].attempt == a:
                    is_stopped = True
                    note_failure_of(state.tiers, state.hangs, state, k)
            if is_stopped:
                state.attempts[a].step = codes.MIGRATION_OF_HIT
            else:
                hit[n_left].attempt, hit[n_left].cancelled = a, hit[i].cancelled
                hit[n_left].is_killed, hit[n_left].tier = hit[i].is_killed, hit[i].tier
                n_left += 1
        return n_left
    return n_hit


@inlined_rule
def note_failure_of(tiers: Any, hangs: Any, state: Any, k: int) -> None:
    """Let a migrated attempt continue from its last checkpoint if its failure is known.

    Failures are known if checkpoints have several tiers or if recoveries have stages.
    """
    if tiers is not None or hangs is not None:
        state.kills[k].timing = codes.NOW
        for m in range(state.n.n_moves):
            if state.moves[m].attempt == state.kills[k].attempt:
                state.moves[m].timing = codes.NOW


@rule
def carry_out(
    operations: Any, state: Any, room: Any, o: int, n_hit: int, now: int
) -> None:  # fmt: skip
    """Carry out an operation, or note why not."""
    row = operations.rows[o]
    if row.kind == codes.MIGRATE:
        migrate(operations, state, o, now)
    elif row.kind != codes.OTHER and not row.may:  # step 1
        note(operations, state, o, codes.FORBIDDEN, -1, 0, now)
    elif row.kind == codes.ANNOUNCE and not state.n.reserving:
        note(operations, state, o, codes.NOT_ANNOUNCED, -1, 0, now)
    elif row.kind == codes.DRAIN:
        drain_nodes(operations, state, room, o, n_hit, now)
    elif row.kind == codes.UNDRAIN:
        undrain_nodes(operations, state, room, o, now)


@rule
def note(
    operations: Any, state: Any, o: int, why: int, attempt: int, detail: int, now: int
) -> None:  # fmt: skip
    """Note why an operation is not carried out."""
    add_note(operations, o, why, attempt, detail, now)
    emit(state, codes.NOTE, int(operations.own[N_NOTES]) - 1, 0)


# ---- jobs on nodes


@rule
def is_killed(state: Any, a: int) -> bool:
    """Return whether the kill of an attempt is not acknowledged."""
    for i in range(state.n.n_kills):
        if state.kills[i].attempt == a:
            return True
    return False


@rule
def is_on(state: Any, a: int, nodes: Any) -> bool:
    """Return whether an attempt runs on a node of a mask."""
    first = state.attempts[a].nodes_at
    for i in range(first, first + state.attempts[a].n_nodes_at):
        if nodes[state.nodes[i, 0] : state.nodes[i, 1] + 1].any():
            return True
    return False


@rule
def jobs_on(operations: Any, state: Any, nodes: Any, n_hit: int) -> int:
    """Write the attempts on nodes that are not being stopped now, in the order of their starts.

    Return their number. They are in the list ``spared``. Attempts that failures hit now are not
    included, because they will be stopped.
    """
    chosen, started, k = state.lists, operations.started, 0
    for i in range(state.n.n_running):
        a = state.lists[i].running
        is_hit = False
        for h in range(n_hit):
            is_hit |= state.hits[h].attempt == a
        if is_hit or not is_on(state, a, nodes) or is_killed(state, a):
            continue
        at = k
        while at > 0 and started[chosen[at - 1].spared] > started[a]:
            chosen[at].spared = chosen[at - 1].spared
            at -= 1
        chosen[at].spared = a
        k += 1
    return k


@inlined_rule
def why_not_move(image: int, is_down: bool, spans: bool, spanning: bool) -> int:
    """Return why a job cannot be moved off its nodes, or 0 if it can (step 3).

    ``image`` is why no image of it can be written, ``is_down`` whether one of its nodes is down,
    and ``spans`` whether it runs on several nodes.
    """
    if image:
        return image
    if is_down:
        return codes.ON_DOWN_NODE
    return codes.SPANS if spans and not spanning else 0


@rule
def why_not_image(operations: Any, state: Any, a: int, spanning: bool) -> int:
    """Return why an attempt cannot be moved off its nodes, or 0 if it can."""
    image = int(operations.jobs[state.attempts[a].job, WHY_NOT])
    first, k, cores = state.attempts[a].nodes_at, state.attempts[a].n_nodes_at, state.n.cores
    spans = state.nodes[first, 0] // cores != state.nodes[first + k - 1, 1] // cores
    return why_not_move(image, is_on(state, a, state.failed), spans, spanning)


@inlined_rule
def stop(operations: Any, state: Any, a: int, then: int, step: int, now: int) -> bool:
    """Stop an attempt at an image. Return whether this is possible."""
    if state.jobs[state.attempts[a].job].once:
        emit(state, codes.REFUSE, a, 0)
        state.n.n_refused += 1
        return False
    state.attempts[a].step = step
    kill(state, a, now, codes.IMAGE, then, codes.MOVED, -1)
    return True


@rule
def empty(operations: Any, state: Any, n_hit: int, now: int) -> None:
    """Stop the jobs on drained nodes at images, and requeue them at the head of the queue (step 5).

    A job whose stop is already scheduled runs until then.
    """
    k = jobs_on(operations, state, operations.emptying, n_hit)
    for i in range(k):
        a = state.lists[i].spared
        if stop_of(state, a) < 0 and why_not_image(operations, state, a, True) == 0:
            stop(operations, state, a, codes.FAILED, codes.BY_DRAIN, now)
    if k == 0:  # step 6
        operations.own[N_EMPTYING] = 0
        operations.emptying[:] = False


# ---- nodes


@rule
def select(operations: Any, state: Any, o: int, drained: bool) -> Any:
    """Write the nodes of an operation that are drained by operations, or those that are not.

    Return the number of intervals, which are new ones, and the number of nodes.
    """
    row, k, count = operations.rows[o], 0, 0
    out = state.nodes[state.n.n_nodes_used :]
    for i in range(row.nodes_at, row.nodes_at + row.n_nodes_at):
        first, last = operations.nodes[i, 0], operations.nodes[i, 1]
        inside = operations.drained[first : last + 1]
        if inside.all() if drained else not inside.any():
            k = pool.extend(out, k, first, last)
            count += last + 1 - first
            continue
        for node in range(first, last + 1):
            if operations.drained[node] == drained:
                k = pool.extend(out, k, node, node)
                count += 1
    return k, count


@rule
def mark(state: Any, mask: Any, at: int, k: int, value: bool) -> None:
    """Write a value for all nodes of ``k`` intervals, which begin at ``at``."""
    for i in range(at, at + k):
        mask[state.nodes[i, 0] : state.nodes[i, 1] + 1] = value


@rule
def drain_nodes(
    operations: Any, state: Any, room: Any, o: int, n_hit: int, now: int
) -> None:  # fmt: skip
    """Start to empty the nodes of a drain (steps 2 to 5).

    If one of their jobs cannot move, the drain is refused.
    """
    n, at, spanning = state.n, state.n.n_nodes_used, operations.rows[o].spanning != 0
    k, count = select(operations, state, o, False)
    if count == 0:
        note(operations, state, o, codes.DRAINED, -1, 0, now)
        return
    n.n_nodes_used += k
    mark(state, operations.drained, at, k, True)
    # step 2 comes first, so that no job starts on these nodes
    change_drains(state, room, at, k, False, codes.FOR_ORDER, now)
    if not n.migrates:
        return
    mark(state, operations.chosen, at, k, True)
    n_on = jobs_on(operations, state, operations.chosen, n_hit)
    mark(state, operations.chosen, at, k, False)
    for i in range(n_on):
        a = state.lists[i].spared
        why = why_not_image(operations, state, a, spanning)
        if why:  # steps 3 and 4
            mark(state, operations.drained, at, k, False)
            change_drains(state, room, at, k, True, codes.FOR_ORDER, now)
            note(operations, state, o, codes.NOT_MOVABLE, a, why, now)
            return
    mark(state, operations.emptying, at, k, True)
    operations.own[N_EMPTYING] += count


@rule
def undrain_nodes(
    operations: Any, state: Any, room: Any, o: int, now: int
) -> None:  # fmt: skip
    """Return the nodes to service that operations drained."""
    at, own = state.n.n_nodes_used, operations.own
    k, count = select(operations, state, o, True)
    if count == 0:
        why = codes.DRAINED_LATER if is_drained_later(operations, o) else codes.NOT_DRAINED
        note(operations, state, o, why, -1, 0, now)
        return
    state.n.n_nodes_used += k
    for i in range(at, at + k if own[N_EMPTYING] else at):
        own[N_EMPTYING] -= operations.emptying[state.nodes[i, 0] : state.nodes[i, 1] + 1].sum()
    mark(state, operations.emptying, at, k, False)
    mark(state, operations.drained, at, k, False)
    change_drains(state, room, at, k, True, codes.FOR_ORDER, now)


@rule
def is_drained_later(operations: Any, o: int) -> bool:
    """Return whether a later operation of the same instant drains nodes of an operation."""
    row, nodes = operations.rows[o], operations.nodes
    for other in range(o + 1, operations.own[N_RECEIVED]):
        later = operations.rows[other]
        if later.kind != codes.DRAIN:
            continue
        for i in range(row.nodes_at, row.nodes_at + row.n_nodes_at):
            for k in range(later.nodes_at, later.nodes_at + later.n_nodes_at):
                if nodes[i, 0] <= nodes[k, 1] and nodes[k, 0] <= nodes[i, 1]:
                    return True
    return False


# ---- migration


@rule
def running_of(operations: Any, state: Any, o: int) -> int:
    """Return the first running attempt of the jobs that an operation names, or -1.

    The result is also -1 if a stop of this attempt is under way or scheduled.
    """
    row, first = operations.rows[o], -1
    for i in range(state.n.n_running):
        a, is_named = state.lists[i].running, False
        for k in range(row.named_at, row.named_at + row.n_named):
            is_named |= operations.named[k] == state.attempts[a].job
        if is_named and (first < 0 or operations.started[a] < operations.started[first]):
            first = a
    if first >= 0 and (is_killed(state, first) or stop_of(state, first) >= 0):
        return -1
    return first


@rule
def target(operations: Any, state: Any, o: int, a: int) -> Any:
    """Write the lowest free nodes of an operation to which an attempt moves.

    Its own nodes count as free. Return the number of intervals, which are new ones (0: too few
    nodes are free), and whether it already runs there.
    """
    row, out, wanted = operations.rows[o], state.nodes[state.n.n_nodes_used :], 0
    size, k, is_same = state.jobs[state.attempts[a].job].size, 0, True
    for i in range(row.nodes_at, row.nodes_at + row.n_nodes_at):
        for node in range(operations.nodes[i, 0], operations.nodes[i, 1] + 1):
            owner = state.owner[node]
            if wanted < size and not state.down[node] and owner in (codes.FREE, a + 1):
                k = pool.extend(out, k, node, node)
                wanted += 1
                is_same &= owner == a + 1
    return k if wanted == size else 0, is_same


@inlined_rule
def why_not_migrate(runs: bool, may: bool, why: int, has_target: bool, is_same: bool) -> int:
    """Return why a job is not migrated, or -1 if it is.

    Parameters
    ----------
    runs : bool
        Whether the job runs, and no stop of it is under way or scheduled.
    may : bool
        Whether the user may request operations, or owns the job.
    why : int
        The result of `why_not_move`.
    has_target, is_same : bool
        Whether enough of the nodes are free, and whether the job already runs on them.
    """
    if not runs:
        return codes.NOT_RUNNING
    if not may:
        return codes.FORBIDDEN
    if why:
        return codes.NOT_MOVABLE
    if not has_target:
        return codes.TOO_FEW_FREE
    return codes.RUNS_THERE if is_same else -1


@rule
def migrate(operations: Any, state: Any, o: int, now: int) -> None:
    """Stop a job at an image. It moves to given nodes, or is requeued at the head of the queue."""
    row, a, at = operations.rows[o], running_of(operations, state, o), state.n.n_nodes_used
    may, why, k, is_same = row.may != 0, 0, 1, False
    if a >= 0:
        may |= row.user > 0 and row.user == state.jobs[state.attempts[a].job].user
        why = why_not_image(operations, state, a, row.spanning != 0)
        if not row.anywhere:
            k, is_same = target(operations, state, o, a)
    refusal = why_not_migrate(a >= 0, may, why, k > 0, is_same)
    if refusal >= 0:
        note(operations, state, o, refusal, a, why, now)
    elif row.anywhere:
        stop(operations, state, a, codes.FAILED, codes.BY_MIGRATION, now)
    elif stop(operations, state, a, codes.MOVES, codes.BY_MIGRATION, now):
        state.n.n_nodes_used += k
        begin_move(state, a, at, k, codes.IMAGE, now)
