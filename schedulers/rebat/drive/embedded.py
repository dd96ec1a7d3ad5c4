# SPDX-License-Identifier: Apache-2.0
"""The embedded driver: everything that happens comes from a heap, and kills take effect at once.

The order of the events of an instant is that of the engine's heap, whose entries have sequence
numbers: those of an end at its start, those of submissions and node events at the event before.
"""

from __future__ import annotations

from typing import Any

from rebat.core.units import FOREVER_US
from rebat.kernels.jit import inlined_rule, whole_rule
from rebat.rules.exclude import return_all, returns
from rebat.rules.instant import (
    acknowledged,
    change_nodes,
    end,
    end_killed,
    go_on,
    hears_all,
    react,
    submit,
)
from rebat.rules.moves import hold_targets
from rebat.rules.operations import announces, count_due, next_operation, receive
from rebat.rules.queue import pop, push
from rebat.rules.replacement import keep_spares
from rebat.rules.room import instant_fits
from rebat.rules.waits import second_pass
from rebat.state import codes


@inlined_rule
def change_next(
    state: Any, room: Any, extended: Any, line_up: Any, line_cause: Any, line_first: Any,
    line_nodes: Any, now: int,
) -> int:  # fmt: skip
    """Let the nodes of the next node event fail or come up (see `run` and `change_nodes`)."""
    i = state.n.next_line
    state.n.next_line += 1
    nodes = line_nodes[line_first[i] : line_first[i + 1]]
    return change_nodes(state, room, extended, nodes, line_up[i] != 0, line_cause[i], now)


@whole_rule
def run(
    line_at: Any,
    line_up: Any,
    line_cause: Any,
    line_first: Any,
    line_nodes: Any,
    room: Any,
    table: Any,
    cells: Any,
    extended: Any,
    recorder: Any,
) -> Any:
    """Simulate all jobs, and return the outcome (see `rebat.state.codes`).

    Parameters
    ----------
    line_at, line_up, line_cause : int64 arrays, shape (m,)
        Time of each node event in ascending order, whether its nodes come up, and the number of its
        cause (0: unknown).
    line_first : int64 array, shape (m + 1,)
        The nodes of event i are ``line_nodes[line_first[i]:line_first[i + 1]]``, ascending.
    room : Room
        New arrays, see `room_for`, or those of a run that needed more events or larger arrays and
        goes on. The results are in them.
    table : BlockTable or None
        The plan of named nodes, or None if nodes are only counted.
    cells : CellTable or None
        The plan in cells, or None without reservations and without partitions that share nodes.
    extended : True or None
        None if no stop waits for a checkpoint, no number is rounded and no job moves. The rules for
        these cases, and those for named nodes, are only compiled if they are needed.
    recorder : RuleRecorder or None
        Recorder of the plans (see `rebat.drive.plans`). Machine code has none.
    """
    state, ends = room.state, room.ends
    n, parameters, jobs, attempts = state.n, state.n, state.jobs, state.attempts
    n_jobs, n_lines, calls = len(jobs), len(line_at), state.calls
    while n.unfinished > 0 or n.is_deciding or n.begins or n.n_operations_left > 0:
        # ---- the next time
        now, n_arriving, n_events = FOREVER_US, 0, 0
        if n.is_deciding:
            now = n.now  # goes on with larger arrays
        if n.begins:
            now = 0  # the first message has no events
        if n.n_ends:
            now = min(now, ends[0].at)
        if n.next_job < n_jobs:
            now = min(now, jobs[n.next_job].submit)
        for i in range(n.n_wakes):
            now = min(now, state.wakes[i])
        now = min(now, next_operation(state.operations))
        stuck = now == FOREVER_US and n.n_down == 0 and n.n_waits == 0
        stuck = stuck and not returns(state.lemons, FOREVER_US)
        if n.n_calls:
            now = min(now, calls[0].at)
        if n.next_line < n_lines:
            now = min(now, line_at[n.next_line])
        missing = n.next_line == n_lines and parameters.drawn and not stuck
        if not missing and (now == FOREVER_US or (stuck and parameters.drawn)):
            return codes.IMPOSSIBLE
        while n.next_job + n_arriving < n_jobs and jobs[n.next_job + n_arriving].submit == now:
            n_arriving += 1
        while n.next_line + n_events < n_lines and line_at[n.next_line + n_events] == now:
            n_events += 1
        n_changed = line_first[n.next_line + n_events] - line_first[n.next_line]
        if missing and not n.is_deciding:
            return codes.MORE_EVENTS
        n.n_operations_due = count_due(state.operations, now)
        n.now = now  # also if the tables are too small: the caller makes room for this time
        if not (n.is_deciding or instant_fits(state, n_arriving, n_events, n_changed)):
            return codes.LARGER_ROOM
        if announces(state.operations, state):
            return codes.ANNOUNCED
        # ---- everything that happens at this time
        while n.n_calls and calls[0].at == now:
            n.n_calls = pop(calls, n.n_calls)
        noticed = joins = False
        while not n.begins:
            which, best = -1, FOREVER_US
            if n.n_ends and ends[0].at == now:
                which, best = 0, ends[0].key
            if n.next_job < n_jobs and jobs[n.next_job].submit == now and n.job_sequence < best:
                which, best = 1, n.job_sequence
            if n.next_line < n_lines and line_at[n.next_line] == now and n.line_sequence < best:
                which, best = 2, n.line_sequence
            if next_operation(state.operations) == now and n.operation_sequence < best:
                which = 3
            if which < 0:
                break
            if which == 0:
                a = ends[0].attempt
                n.n_ends = pop(ends, n.n_ends)
                joins = noticed and attempts[a].end < 0
                if attempts[a].end >= 0:
                    continue  # it was killed
                n.has_news = 1
                cause = codes.COMPLETED
                if now >= attempts[a].start + attempts[a].wall:
                    cause = codes.WALLTIME
                elif jobs[attempts[a].job].errors:
                    cause = codes.JOB_FAILED
                end(state, a, now, cause)
                continue
            n.sequence += 1
            n.has_news, joins = 1, noticed
            if which == 1:
                while n.next_job < n_jobs and jobs[n.next_job].submit == now:
                    submit(state, n.next_job, now)
                    n.next_job += 1
                n.job_sequence = n.sequence
                n.has_notice = n.next_job == n_jobs
            elif which == 3:
                receive(state.operations, state, now)
                n.operation_sequence = n.sequence
            else:
                while n.next_line < n_lines and line_at[n.next_line] == now:
                    outcome = change_next(
                        state, room, extended, line_up, line_cause, line_first, line_nodes, now
                    )
                    if outcome != codes.DONE:
                        return outcome
                n.line_sequence = n.sequence
            noticed |= n.has_notice != 0
            is_last = n.next_line == n_lines and not parameters.drawn
            noticed |= which >= 2 and is_last and n.n_operations_left == 0
        if joins:  # this message says that no more jobs will be submitted
            n.has_notice, n.all_submitted = 0, 1
        # ---- decisions, and kills until there are none
        while True:
            outcome = codes.DONE
            if not n.is_deciding:
                n.n_out = 0
            if n.is_deciding or react(state, room, extended, now):
                outcome = go_on(state, room, table, cells, extended, recorder, now)
            n.is_deciding = outcome == codes.LARGER_ROOM
            if outcome != codes.DONE:
                return outcome
            for i in range(n.n_out):
                if state.out[i].kind == codes.START:
                    a = state.out[i].subject
                    n.sequence += 1
                    length = min(attempts[a].delay, attempts[a].wall)
                    n.n_ends = push(ends, n.n_ends, now + length, n.sequence, a)
            has_notice, n.has_notice = n.has_notice != 0, 0
            if has_notice:
                n.all_submitted = 1
            if not n.n_kills and not (has_notice and hears_all(state)):
                break
            n.has_news, n_first = 1, min(n.n_first_kills, n.n_kills)
            for first, last in ((0, n_first), (n_first, n.n_kills)):
                for i in range(first, last):
                    end_killed(state, i, now)
                    if extended is not None and n.n_moves:
                        hold_targets(state, now)
                for i in range(first, last):
                    acknowledged(state, extended, i, now)
            n.n_kills = 0
            if extended is not None and n.n_waits:
                second_pass(state, now)
        n.begins = 0
    # ---- node events until the end of the simulation
    until = FOREVER_US if parameters.to_the_last_event else n.last_call if n.n_calls else -1
    for i in range(n.n_wakes):
        until = max(until, state.wakes[i])
    while n.next_line < n_lines and line_at[n.next_line] <= until:
        now = line_at[n.next_line]
        outcome = change_next(
            state, room, extended, line_up, line_cause, line_first, line_nodes, now
        )
        if outcome != codes.DONE:
            return outcome
        is_last = n.next_line == n_lines or line_at[n.next_line] != now
        if extended is not None and n.n_spares and is_last:
            keep_spares(state, room, now)
    if until >= 0 and n.next_line == n_lines and parameters.drawn:
        return codes.MORE_EVENTS
    return_all(state.lemons, state, room)
    return codes.DONE
