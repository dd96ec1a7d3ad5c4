# SPDX-License-Identifier: Apache-2.0
"""The plan of a group of partitions: its upkeep, its reservations and the starts.

List scheduling reserves nodes in the order of the queue: for all attempts (conservative
backfilling), or for the first ``depth`` of them. A plan contains one of these:

- the number of free nodes over time (``base_t`` to ``plan_f``, `rebat.kernels.counts`),
- the lowest nodes that stay free (``table``, `rebat.kernels.blocks`),
- nodes that a placement chooses (``places``, `rebat.policies.placement.places`),
- the free nodes of each cell over time (``cells``, `rebat.rules.windows`), in addition to one of
  the first two: if nodes are reserved, or if partitions share nodes.

`rebat.rules.fifo` and `rebat.rules.shelves` choose starts without reservations (``unplanned``).
"""

from __future__ import annotations

from typing import Any

from rebat.core.units import FOREVER_US
from rebat.kernels import blocks, cell_plan, counts, deep_queue, named, named_lists, pool, slices
from rebat.kernels.barred import BARRED, is_last, n_visible, pack, unpack
from rebat.kernels.deep import renew, reserve
from rebat.kernels.jit import inlined_rule, rule
from rebat.rules.by_value import place_by_value, set_values, sort_by_value
from rebat.rules.fifo import serve
from rebat.rules.limits import is_barred
from rebat.rules.predict import later_end, predicted
from rebat.rules.queue import place_in_queue, planned, pop, push
from rebat.rules.shelves import fill_shelf
from rebat.rules.starts import lowest_free_of, start_on
from rebat.rules.usage import charge_due
from rebat.rules.waits import reject
from rebat.rules.windows import plan_in_cells
from rebat.state import codes


@rule
def sort_nodes(nodes: Any, n: int) -> None:
    """Sort node numbers, which are nearly sorted."""
    for i in range(1, n):
        node, k = nodes[i], i
        while k > 0 and nodes[k - 1] > node:
            nodes[k] = nodes[k - 1]
            k -= 1
        nodes[k] = node


@inlined_rule
def is_held(attempts: Any, a: int, key: int) -> bool:
    """Return whether an entry of the heap of planned ends is still valid."""
    return attempts[a].held_until >= 0 and attempts[a].held_key == key


@inlined_rule
def end_at(state: Any, holds: Any, n_holds: int, a: int, until: int) -> int:
    """Set the planned end of an attempt. Return the new number of entries of the heap."""
    state.n.key += 1
    state.attempts[a].held_until, state.attempts[a].held_key = until, state.n.key
    return push(holds, n_holds, until, state.n.key, a)


@inlined_rule
def nodes_in_plan(attempts: Any, a: int) -> Any:
    """Return where the nodes that the plan knows begin, and the number of their intervals."""
    if attempts[a].number == codes.HOLD:
        return attempts[a].planned_at, attempts[a].n_planned_at
    return attempts[a].nodes_at, attempts[a].n_nodes_at


@rule
def is_new_hold(state: Any, h: int) -> bool:
    """Return whether a row represents nodes that no plan knew to be held before."""
    is_new = False
    for i in range(state.n.n_new_holds):
        is_new |= state.lists[i].new_hold == h
    return is_new


@rule
def without_ended(attempts: Any, overdue: Any, n_overdue: int) -> int:
    """Remove the attempts that have ended from the overdue ones, and count the others."""
    k = 0
    for i in range(n_overdue):
        a, key = overdue[i, 0], overdue[i, 1]
        if is_held(attempts, a, key):
            overdue[k, 0], overdue[k, 1] = a, key
            k += 1
    return k


@inlined_rule
def leave_gaps(state: Any, room: Any, p: int, n_queue: int, n_due: int) -> int:
    """Remove the attempts that started from an indexed queue. Return its new length."""
    part, size, duration, index = state.parts[p], room.size[p], room.duration[p], room.index[p]
    for i in range(n_due):
        at = room.positions[i]
        size[at] = duration[at] = deep_queue.GAP
        deep_queue.set_least(index, size, duration, n_queue, at, at)
    part.n_gaps += n_due
    n_left = n_queue - part.n_gaps
    if n_left >= max(part.n_gaps, state.n.scanned // 2):
        return n_queue
    deep_queue.close_gaps(size, duration, room.queue[p], n_queue)
    part.indexed, part.n_gaps = int(n_left > state.n.scanned // 2), 0
    if part.indexed:
        deep_queue.set_least(index, size, duration, n_left, 0, n_left - 1)
    return n_left


@inlined_rule
def clear(table: Any, places: Any) -> None:
    """Delete all reservations of a plan of particular nodes."""
    if table is not None:
        named.clear(table)
    if places is not None:
        places.clear()


@inlined_rule
def enqueue(state: Any, room: Any, p: int, a: int, n_queue: int, now: int) -> Any:
    """Insert an attempt into the queue. Return its position, and the new length of the queue."""
    part, attempts, jobs = state.parts[p], state.attempts, state.jobs
    queue, value, index = room.queue[p], room.value[p], room.index[p]
    size, duration, start = room.size[p], room.duration[p], room.start[p]
    by_value, margin = state.n.order == codes.BY_VALUE, state.n.margin
    own = 0.0
    if by_value:
        queue[n_queue] = a
        set_values(state, room, queue[n_queue:], 1, now, value[n_queue:])
        own = value[n_queue]
        at = place_by_value(state, queue, value, n_queue, a, own)
        counts.move_on(value, n_queue, at)
        value[at] = own
    else:
        at = place_in_queue(state, queue, n_queue, a)
    gap = n_queue
    if part.indexed:
        at, gap = deep_queue.make_place(size, duration, queue, n_queue, at)
    else:
        counts.make_place(size, duration, start, queue, n_queue, at)
    size[at], queue[at] = jobs[attempts[a].job].size, a
    attempts[a].predicted = predicted(state, a)
    duration[at], start[at] = planned(attempts[a].predicted, margin), counts.NEVER
    if gap == n_queue:
        n_queue += 1
    else:
        part.n_gaps -= 1
    if part.indexed:
        deep_queue.set_least(index, size, duration, n_queue, min(at, gap), max(at, gap))
    return at, n_queue


@inlined_rule
def plan(
    state: Any, room: Any, table: Any, cells: Any, places: Any, p: int, failures: bool,
    repairs: bool, recorder: Any, now: int,
) -> int:  # fmt: skip
    """Update the plan of a group, and start what is due. Return DONE if this was possible.

    If there is a recorder (see `rebat.rules.instant.decide`), the queue has no gaps. ``places`` is
    a plan of the nodes that a placement chooses (see `rebat.policies.placement.places`), or None.
    Machine code has none.
    """
    n, parameters, jobs, attempts = state.n, state.n, state.jobs, state.attempts
    nodes, owner, down, free = state.nodes, state.owner, state.down, state.free
    depth, margin, unplanned = parameters.depth, parameters.margin, parameters.unplanned != 0
    lists, scratch, part = state.lists, room.scratch, state.parts[p]
    holds, overdue, queue = room.holds[p], room.overdue[p], room.queue[p]
    size, duration, start = room.size[p], room.duration[p], room.start[p]
    index = room.index[p]
    base_t, base_f, plan_t, plan_f = room.base_t[p], room.base_f[p], room.plan_t[p], room.plan_f[p]
    n_queue, n_holds, n_overdue = part.n_queued, part.n_planned_ends, part.n_overdue
    opened, planned_at, base_n, plan_n = part.opened, part.planned, part.base_n, part.plan_n
    upkeep, by_node = codes.APPEND, table is not None or places is not None
    # ---- the plan: ends, held nodes, failures and repairs
    if not unplanned:
        if table is not None:
            named.drop_begun(table, planned_at)
            if now > planned_at:
                slices.forget(table, now)
        if places is not None:
            places.advance(now)
        planned_at = now
        while n_holds and holds[0].at <= now:
            if n_overdue == overdue.shape[0]:
                n_overdue = without_ended(attempts, overdue, n_overdue)
            overdue[n_overdue, 0], overdue[n_overdue, 1] = holds[0].attempt, holds[0].key
            if is_held(attempts, holds[0].attempt, holds[0].key):
                n_overdue += 1
            n_holds = pop(holds, n_holds)
        for i in range(n.n_left):
            a = lists[i].left
            if jobs[attempts[a].job].part != p:
                continue
            held, attempts[a].held_until = attempts[a].held_until, -1
            if cells is not None:
                cell_plan.let_go(cells, p, a)
            if places is not None:
                places.end(a)
            elif table is not None:
                first, k = nodes_in_plan(attempts, a)
                slices.give_nodes(table, nodes[first : first + k], now, held)
            else:
                until, nodes_back = max(held, now), attempts[a].held_size
                base_n = counts.change(base_t, base_f, base_n, now, until, nodes_back)
                plan_n = counts.change(plan_t, plan_f, plan_n, now, until, nodes_back)
            opened = max(opened, held)
            upkeep = parameters.on_end
        for i in range(n.n_new_holds):
            a = lists[i].new_hold
            if jobs[attempts[a].job].part != p:
                continue
            if attempts[a].number != codes.HOLD:  # it started without a plan
                attempts[a].predicted = predicted(state, a)
            until = attempts[a].start + planned(attempts[a].predicted, margin)
            if until <= now:  # it lost a node after its planned end, so it is a new hold
                until = later_end(attempts, a, margin, now)
            first, k = attempts[a].nodes_at, attempts[a].n_nodes_at
            attempts[a].planned_at, attempts[a].n_planned_at = first, k
            attempts[a].held_size = attempts[a].size_of_hold
            if cells is not None:
                cell_plan.hold(cells, p, a, first, k, nodes, until)
            clear(table, places)
            if places is not None:
                places.hold(a, nodes[first : first + k], until)
            elif table is not None:
                slices.take_nodes(table, nodes[first : first + k], now, until)
            else:
                nodes_held = attempts[a].held_size
                base_n = counts.change(base_t, base_f, base_n, now, until, -nodes_held)
            n_holds = end_at(state, holds, n_holds, a, until)
            upkeep = max(upkeep, parameters.on_priority)
        if failures:
            clear(table, places)
            if by_node:
                sort_nodes(room.changed, n.n_changed)
            first = n.n_nodes_used
            lost = k = 0
            for i in range(n.n_changed):
                node = room.changed[i]
                if state.home[node] != p or not down[node]:
                    continue
                if not room.reported[node]:
                    lost += 1
                    if by_node:
                        k = pool.extend(nodes[first:], k, node, node)
                elif owner[node] == codes.FREE or not is_new_hold(state, owner[node] - 1):
                    continue
                if owner[node] != codes.FREE and not by_node:
                    # also if it came up for an instant, when a new hold took it
                    a = owner[node] - 1
                    if attempts[a].held_until < 0:
                        return codes.IMPOSSIBLE
                    attempts[a].held_size -= 1
                    until = attempts[a].held_until
                    base_n = counts.change(base_t, base_f, base_n, now, until, 1)
                    plan_n = counts.change(plan_t, plan_f, plan_n, now, until, 1)
            if places is not None:
                places.fail(nodes[first : first + k])
            elif table is not None:
                slices.fail(table, nodes[first : first + k])
            else:
                base_n = counts.change(base_t, base_f, base_n, now, FOREVER_US, -lost)
                plan_n = counts.change(plan_t, plan_f, plan_n, now, FOREVER_US, -lost)
            upkeep = max(upkeep, parameters.on_failure)
        if repairs:
            if by_node:
                sort_nodes(room.changed, n.n_changed)
            first = n.n_nodes_used
            gained = k = 0
            for i in range(n.n_changed):
                node = room.changed[i]
                if state.home[node] != p or down[node] or not room.reported[node]:
                    continue
                gained += 1
                if by_node:
                    k = pool.extend(nodes[first:], k, node, node)
                elif owner[node] != codes.FREE and not is_new_hold(state, owner[node] - 1):
                    # an attempt whose kill is not acknowledged holds it
                    a = owner[node] - 1
                    attempts[a].held_size += 1
                    until = attempts[a].held_until
                    base_n = counts.change(base_t, base_f, base_n, now, until, -1)
                    plan_n = counts.change(plan_t, plan_f, plan_n, now, until, -1)
            if places is not None:
                places.repair(nodes[first : first + k])
            elif table is not None:
                slices.repair(table, nodes[first : first + k])
                for i in range(n.n_new_holds):
                    a = lists[i].new_hold
                    first, k = nodes_in_plan(attempts, a)
                    until = attempts[a].held_until
                    slices.take_nodes(table, nodes[first : first + k], now, until)
                for i in range(n.n_changed):
                    node = room.changed[i]
                    a = owner[node] - 1
                    if (
                        down[node]
                        or owner[node] == codes.FREE
                        or state.home[node] != p
                        or attempts[a].held_until < 0
                        or is_new_hold(state, a)
                    ):
                        continue
                    first, k = nodes_in_plan(attempts, a)
                    until = attempts[a].held_until
                    slices.take_nodes(table, nodes[first : first + k], now, until)
            else:
                base_n = counts.change(base_t, base_f, base_n, now, FOREVER_US, gained)
                plan_n = counts.change(plan_t, plan_f, plan_n, now, FOREVER_US, gained)
            opened = FOREVER_US
            upkeep = max(upkeep, parameters.on_repair)
        for i in range(n.n_entered):
            a = lists[i].entered
            if attempts[a].priority <= codes.REGULAR or jobs[attempts[a].job].part != p:
                continue
            if attempts[a].cause != codes.LIMIT and not is_barred(state, a):
                upkeep = max(upkeep, parameters.on_priority)
    # ---- the queue
    value, by_value = room.value[p], parameters.order == codes.BY_VALUE
    if parameters.varies and now >= part.sorted + parameters.sort_period:
        part.sorted = now
        set_values(state, room, queue, n_queue, now, value)
        if sort_by_value(state, queue, value, size, duration, start, n_queue):
            upkeep = codes.REBUILD
            clear(table, places)
    if part.withdrawn:
        part.withdrawn = 0
        upkeep = codes.REBUILD
        clear(table, places)
    if cells is not None and cell_plan.release_windows(cells, p):
        cell_plan.divide(cells, p, part.first_node, part.end_node, nodes)
        upkeep = codes.REBUILD
        clear(table, places)
    before, limited = n_queue, parameters.limited != 0
    if limited:
        before = n_visible(start, n_queue)
    if parameters.timed:  # before jobs that are too large: rejections have this order
        for i in range(n.n_entered):
            a = lists[i].entered
            if attempts[a].wall < FOREVER_US or attempts[a].cause != 0:
                continue
            if jobs[attempts[a].job].part == p:
                reject(state, a, codes.NO_WALLTIME)
    for i in range(0 if n.asks else n.n_entered):
        a = lists[i].entered
        if jobs[attempts[a].job].part != p or attempts[a].cause != 0:
            continue
        if jobs[attempts[a].job].size > most_of(state, attempts[a].job):
            reject(state, a, codes.REJECTED)
            continue
        if cells is not None and cell_plan.never_fits(cells, a, jobs[attempts[a].job].size, now):
            reject(state, a, codes.NO_WINDOW)
            continue
        at, n_queue = enqueue(state, room, p, a, n_queue, now)
        if is_barred(state, a):
            start[at] = BARRED
        elif at == n_queue - 1 or (limited and is_last(start, at, n_queue)):
            upkeep = max(upkeep, parameters.on_arrival)
        else:
            upkeep = codes.REBUILD
    is_simple = table is None and cells is None and recorder is None
    is_simple = is_simple and not (unplanned or n.asks or limited or by_value)
    if is_simple and depth != codes.ALL and not part.indexed and n_queue > parameters.scanned:
        part.indexed, part.n_gaps = 1, 0
        deep_queue.set_least(index, size, duration, n_queue, 0, n_queue - 1)
    n_all, visible = n_queue, room.visible
    if limited:
        n_queue = pack(size, duration, start, n_all, visible)
        size, duration, start = visible[0], visible[1], visible[2]
    # ---- the plan: reservations
    in_cells = False
    if cells is not None:
        in_cells = cell_plan.in_cells(cells, p)
        for at in range(n_queue):
            cells.queued[at] = queue[visible[3, at] if limited else at]
        if in_cells and table is not None:
            named.clear(table)
    n_due, n_late, late = 0, 0, now
    if not unplanned and (depth == codes.ALL or n_queue or by_node):
        if depth == codes.ALL and upkeep == codes.REBUILD:
            clear(table, places)
        # attempts that did not end in time, and their next planned ends
        for i in range(n_overdue):
            a = overdue[i, 0]
            if is_held(attempts, a, overdue[i, 1]):
                until = later_end(attempts, a, margin, now)
                overdue[n_late, 0], overdue[n_late, 1] = a, until
                late = max(late, until)
                n_late += 1
        n_overdue = 0
        if table is not None and counts.any_before(table.start, table.n[blocks.RESERVED], late):
            named.clear(table)
        if places is not None:
            places.settle(late)
        for i in range(n_late):
            a, until = overdue[i, 0], overdue[i, 1]
            if cells is not None:
                cells.until[a] = until
            if places is not None:
                places.prolong(a, until)
            elif table is not None:
                first, k = nodes_in_plan(attempts, a)
                slices.take_nodes(table, nodes[first : first + k], now, until)
            else:
                nodes_held = attempts[a].held_size
                base_n = counts.change(base_t, base_f, base_n, now, until, -nodes_held)
            n_holds = end_at(state, holds, n_holds, a, until)
    if unplanned:
        pass
    elif cells is not None and in_cells:
        if table is None:
            base_n = counts.forget(base_t, base_f, base_n, now)
            plan_n = counts.forget(plan_t, plan_f, plan_n, now)
        plan_in_cells(state, cells, p, size, duration, start, before, n_queue, upkeep, late, now)
    elif places is not None:
        in_queue = queue[visible[3, :n_queue]] if limited else queue[:n_queue]
        waiting = size[:n_queue], duration[:n_queue], start[:n_queue], in_queue
        if depth != codes.ALL:
            places.backfill(waiting, depth, parameters.first_only != 0)
        elif upkeep == codes.REBUILD:
            places.rebuild(waiting)
        else:
            if upkeep == codes.COMPRESS:
                places.compress(waiting)
            places.append(waiting)
    elif table is not None:
        if depth != codes.ALL:
            named_lists.backfill(table, size, duration, n_queue, depth, parameters.first_only != 0)
        else:
            if upkeep == codes.COMPRESS:
                opened = named_lists.compress(table, size, duration, opened)
                named_lists.place(table, size, duration, before)
            named_lists.place(table, size, duration, n_queue)
            if upkeep == codes.REBUILD:
                opened = now
        for i in range(table.n[blocks.RESERVED]):
            start[i] = table.start[i]
    elif depth == codes.ALL or n_queue:
        base_n = counts.forget(base_t, base_f, base_n, now)
        if depth == codes.ALL and upkeep != codes.REBUILD:
            plan_n = counts.forget(plan_t, plan_f, plan_n, now)
            if counts.any_before(start, before, late):
                counts.copy_profile(base_t, base_f, base_n, plan_t, plan_f)
                plan_n = reserve(plan_t, plan_f, base_n, size, duration, start, 0, before, scratch)
            elif n_late:
                for i in range(n_late):
                    nodes_held, until = attempts[overdue[i, 0]].held_size, overdue[i, 1]
                    plan_n = counts.change(plan_t, plan_f, plan_n, now, until, -nodes_held)
            if upkeep == codes.COMPRESS:
                plan_n, opened = renew(
                    plan_t, plan_f, plan_n, size, duration, start, before, opened, scratch
                )
            if before < n_queue or upkeep == codes.APPEND:
                plan_n = reserve(
                    plan_t, plan_f, plan_n, size, duration, start, before, n_queue, scratch
                )
        else:
            counts.copy_profile(base_t, base_f, base_n, plan_t, plan_f)
            if depth == codes.ALL:
                plan_n = reserve(plan_t, plan_f, base_n, size, duration, start, 0, n_queue, scratch)
                opened = now
            elif part.indexed:
                n_points = base_t.shape[0]
                n_due = deep_queue.backfill(
                    plan_t, plan_f, base_n, index, size, duration, n_queue, depth,
                    parameters.first_only != 0, scratch[:n_points], scratch[n_points:],
                    room.positions,
                )  # fmt: skip
            else:
                plan_n = counts.backfill(
                    plan_t, plan_f, base_n, size, duration, start, n_queue, depth,
                    parameters.first_only != 0,
                )  # fmt: skip
    if cells is not None and not unplanned:
        chosen = nodes[n.n_nodes_used :]
        while cell_plan.bind_windows(
            cells, table, p, not in_cells, size, start, n_queue, now, chosen
        ):
            in_cells = True
            cell_plan.divide(cells, p, part.first_node, part.end_node, nodes)
            if table is not None:
                named.clear(table)
            plan_in_cells(
                state, cells, p, size, duration, start, 0, n_queue, codes.REBUILD, late, now
            )
    # ---- starts
    if n.asks:
        pass
    elif parameters.fifo:
        n_due = serve(state, room, cells, recorder, p, size, n_queue, now)
    elif parameters.shelf:
        n_due = fill_shelf(state, room, cells, recorder, p, size, n_queue, now)
    elif n_queue and not part.indexed:
        n_due = counts.due(start, n_queue, now, room.positions)
    if parameters.accounted and not unplanned:
        n_due = charge_due(state, recorder, p, queue, visible, room.positions, n_due, now)
    for i in range(0 if unplanned else n_due):
        at, first = room.positions[i], n.n_nodes_used
        a, n_wanted = queue[visible[3, at] if limited else at], size[at]
        k = -1
        if cells is not None and in_cells:
            k = cell_plan.choose(
                cells, p, a, owner, down, free, part.first_node, part.end_node, nodes[first:]
            )
        elif places is not None:
            k = places.start(at, a, nodes[first:])
        elif table is not None:
            k = blocks.nodes_of(table, table.held[at], nodes[first:])
        elif n_wanted <= part.n_free:
            k = lowest_free_of(state, p, n_wanted, nodes[first:])
        if k < 0:
            return codes.IMPOSSIBLE
        chosen = nodes[first : first + k]
        if by_node and pool.first_obstacle(owner, down, free, chosen) >= 0:
            return codes.IMPOSSIBLE
        start_on(state, a, p, first, k, n_wanted, now)
        n.key += 1
        until = now + duration[at]
        attempts[a].held_until, attempts[a].held_size = until, n_wanted
        attempts[a].held_key = n.key
        n_holds = push(holds, n_holds, until, n.key, a)
        if cells is not None:
            cell_plan.hold(cells, p, a, first, k, nodes, until)
        if not by_node:
            base_n = counts.change(base_t, base_f, base_n, now, until, -n_wanted)
    if table is not None and (part.withdrawn or in_cells):  # it did not plan what has started
        named.clear(table)
        for i in range(n_due):
            at = room.positions[i]
            a = queue[visible[3, at] if limited else at]
            first, k = attempts[a].nodes_at, attempts[a].n_nodes_at
            slices.take_nodes(table, nodes[first : first + k], now, attempts[a].held_until)
    if limited:
        unpack(visible, n_queue, room.start[p])
        size, duration, start, n_queue = room.size[p], room.duration[p], room.start[p], n_all
        for i in range(n_due):
            room.positions[i] = visible[3, room.positions[i]]
    if n_due and by_value:
        left_at = room.positions[0]
        due = 1
        for at in range(left_at + 1, n_queue):
            if due < n_due and room.positions[due] == at:
                due += 1
            else:
                value[at - due] = value[at]
    if part.indexed:
        n_queue = leave_gaps(state, room, p, n_queue, n_due)
    elif n_due:
        counts.take_out(size, duration, start, queue, n_queue, room.positions, n_due)
        n_queue -= n_due
    part.n_queued, part.n_planned_ends, part.n_overdue = n_queue, n_holds, n_overdue
    part.opened, part.planned, part.base_n, part.plan_n = opened, planned_at, base_n, plan_n
    return codes.DONE


@rule
def withdraw(state: Any, room: Any, p: int, j: int) -> None:
    """Remove a job from the queue, because it was rejected or started without a plan."""
    if leave_queue(state, room, p, j):
        state.parts[p].withdrawn = 1


@rule
def leave_queue(state: Any, room: Any, p: int, j: int) -> int:
    """Remove a job from the queue of a group. Return its planned size, or 0 if it is not there."""
    part, queue = state.parts[p], room.queue[p]
    for at in range(part.n_queued):
        if state.attempts[queue[at]].job == j:
            room.positions[0], n_nodes = at, int(room.size[p, at])
            if state.n.order == codes.BY_VALUE:
                for k in range(at, part.n_queued - 1):
                    room.value[p, k] = room.value[p, k + 1]
            counts.take_out(
                room.size[p], room.duration[p], room.start[p], queue, part.n_queued,
                room.positions, 1,
            )  # fmt: skip
            part.n_queued -= 1
            return n_nodes
    return 0


@rule
def is_allowed(state: Any, a: int) -> bool:
    """Return whether the limits of its partition allow an attempt."""
    job = state.jobs[state.attempts[a].job]
    partition = state.partitions[job.partition]
    return bool(job.size <= partition.most and state.attempts[a].wall <= partition.longest)


@rule
def most_of(state: Any, j: int) -> int:
    """Return the maximum number of nodes of a job in its partition."""
    return int(state.partitions[state.jobs[j].partition].most)


@rule
def has_news(state: Any, p: int) -> bool:
    """Return whether something in a group has changed since its last plan."""
    n, jobs, attempts = state.n, state.jobs, state.attempts
    if state.parts[p].failures or state.parts[p].repairs or state.parts[p].withdrawn:
        return True
    if n.woken:
        return True
    for i in range(n.n_entered):
        a = state.lists[i].entered
        if jobs[attempts[a].job].part == p and attempts[a].cause == 0:
            return True
    for i in range(n.n_left):
        if jobs[attempts[state.lists[i].left].job].part == p:
            return True
    for i in range(n.n_new_holds):
        if jobs[attempts[state.lists[i].new_hold].job].part == p:
            return True
    return False
