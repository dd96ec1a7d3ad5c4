# SPDX-License-Identifier: Apache-2.0
"""The arrays of the compiled loop: columns, parameters, counters, codes, and the room for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rebat.core.units import FOREVER_US
from rebat.kernels import pool
from rebat.kernels.blocks import BlockTable, empty_table
from rebat.kernels.formula import DEEPEST
from rebat.kernels.spread import scratch_needed
from rebat.policies.formula import COLUMNS

# Columns of the table of attempts. Held nodes are rows too, because they have serials of attempts.
JOB, NUMBER, PRIORITY, QUEUED, WALL, DELAY, FIRST, RECOVERY, START, END, CAUSE, USEFUL = range(12)
NODES_AT, N_NODES_AT, HELD_UNTIL, THIEF, HELD_SIZE, HELD_KEY, FAILURE = range(12, 19)
# The predicted run time, and the attempt of the same user that ended before (its number plus 1).
PREDICTED, ENDED_BEFORE = 19, 20
N_COLUMNS = 21

# More columns of attempts if the numbers of resubmissions are rounded: the checkpoints.
OWN_PERIOD, OWN_COST, OWN_RESTART = range(21, 24)

# Columns of rows that are held nodes, instead of those of attempts: the number of the record, the
# nodes that the plan knows, and the number of nodes. ``NUMBER`` is HOLD.
RECORD, PLANNED_AT, N_PLANNED_AT, SIZE_OF_HOLD = USEFUL, FIRST, RECOVERY, THIEF
HOLD = -1

# Columns of the table of jobs. The user is a number of at least 1, or 0 if it is unknown.
SUBMIT, SIZE, JOB_WALL, PROFILE, CLASS, PART, USER = range(7)
N_JOB_COLUMNS = 7

# More columns of jobs if a rule compares ids as text: the ranks of the job among the ids, and among
# the ids of resubmissions.
BY_NAME, BY_PREFIX = 7, 8

# Columns of the table of profiles.
JOB_DELAY, RET, CHECKPOINTS, PERIOD, COST, RESTART, FIRST_PERIOD, FIRST_RECOVERY = range(8)
N_PROFILE_COLUMNS = 8

# More columns of profiles if the numbers of resubmissions are rounded: the period in seconds is a
# whole number times a power of two.
FRACTION, EXPONENT = 8, 9

# Columns of the attempts that failures hit: the attempt, when the steal that the failure cancels
# was decided (-1: there is none), and whether the attempt is already being killed.
HIT, CANCELLED, KILLED = range(3)

# Columns of kills: the attempt, when the stop was decided, its timing, the priority of the
# resubmission (WAITS: the job waits), the cause, and the victim for which the job waits.
KILL, DECIDED, TIMING_OF, THEN, CAUSE_OF, VICTIM_OF = range(6)
WAITS = 0

# Columns of scheduled stops: the victim, when the stop was decided, when the checkpoint is
# complete, and the time of the stop.
STOP, STOP_DECIDED, DUE, AT = range(4)

# Columns of waits: the stopped attempt, its held nodes (-1: none), how many of them are up, the
# victim, when the wait ends, and whether the second pass ends it or chooses the nodes again.
WAIT, WAIT_HOLD, N_HELD, WAIT_VICTIM, WAIT_UNTIL, OVER, SHRINKS = range(7)

# Columns of the records of held nodes.
HOLD_JOB, SINCE, UNTIL, HOLD_AT, N_HOLD_AT = range(5)

# Columns of jobs with dependencies or arrays: the conditions and the dependents of the job, its
# attempt plus 1 (0: not submitted), its progress, whether conditions are open, whether it waits
# only for a place in its array, this array plus 1 (0: none), when it was examined last, and the
# condition that can never hold. The last two are lists: jobs submitted, and jobs that progressed.
CONDITION, N_CONDITIONS, DEPENDENT, N_DEPENDENTS, ATTEMPT, PROGRESS, IS_OPEN, IS_READY = range(8)
ARRAY, STAMP, WHY_NEVER, NEW_JOB, PROGRESSED = range(8, 13)
N_BLOCK_COLUMNS = 13

# Columns of arrays of jobs: limit, tasks in the queue or running, tasks, and whether the array is
# in the list of the last column, of arrays that may have a place for a task.
LIMIT, ACTIVE, FIRST_TASK, N_TASKS, WAS_LISTED, LISTED = range(6)
N_ARRAY_COLUMNS = 6

# Lists of attempts: in the order of their ends; that enter the queue, leave their nodes, or are new
# holds since the last plan; that victim rules spare.
RECORDS, ENTERED, LEFT, NEW_HOLDS, SPARED = range(5)
# Other lists: jobs that wait and lost held nodes; times of failures that hit attempts, and free
# nodes then; jobs given up; interruptions of each job; times of steals; times and reasons of
# cancelled steals; the attempt of each user that ended last (its number plus 1).
HELD_HIT, HITS_AT, HITS_FREE, GIVEN_UP_JOBS, INTERRUPTIONS, STEALS_AT, OFF_AT, OFF_WHY = range(
    5, 13
)
ENDED_LAST, N_LISTS = 13, 14

# Small tables, see their columns above. The last is a heap of the times at which stops are due.
HIT_TABLE, KILL_TABLE, STOP_TABLE, WAIT_TABLE, HOLD_TABLE, CALL_TABLE = range(6)

# Columns of the table of partitions: first node and the node after the last, largest size and
# longest walltime of a job, free nodes; numbers of queued attempts, of planned ends, of attempts
# that are overdue; until when nodes that became free were in use, time of the last plan, lengths of
# the profiles; whether nodes failed or came up since the last plan; time of the last sort.
FIRST_NODE, END_NODE, MOST, LONGEST, FREE_NOW, N_QUEUED, N_PLANNED_ENDS, N_OVERDUE = range(8)
OPENED, PLANNED, BASE_N, PLAN_N, FAILURES, REPAIRS, SORTED = range(8, 15)
N_PART_COLUMNS = 15

# Parameters.
DEPTH, FIRST_ONLY, MARGIN, ORDER, ON_ARRIVAL, ON_PRIORITY, ON_END, ON_FAILURE, ON_REPAIR = range(9)
MAX_ATTEMPTS, N_NODES, DRAWN, STEALING, VICTIM, CRITERION, RELEASE, TIE, TIMING = range(9, 18)
AUTHORS, TWO_PASSES, LOWEST_HELD, HOLD_MARGIN, OTHERS_FIRST, HIT_AS_VICTIM, CHOSEN_ONCE = range(
    18, 25
)
PROGRAM_K3, SIX_DIGITS, NAMED, FIFO, TIMED, TO_THE_LAST_EVENT, PARTED = range(25, 32)
PREDICT, MILLIONTHS, VARIES, SORT_PERIOD = range(32, 36)
N_PARAMETERS = 36

# Counters, after the parameters.
N_ATTEMPTS, N_RECORDS, N_HITS, N_GIVEN_UP, N_LINES, N_STEALS, N_STEALS_OFF, N_HOLDS = range(36, 44)
UNFINISHED, N_FREE, N_DOWN, N_RUNNING, N_NODES_USED, N_ENTERED, N_LEFT, N_ENDS = range(44, 52)
N_NEW_HOLDS, N_KILLS, N_STOPS, N_WAITS, N_CALLS, LAST_CALL, N_HELD_HIT, TOO_SMALL = range(52, 60)
UNCLEAR, N_CHANGED, SEQUENCE, KEY, N_BLOCKED, N_NEW_JOBS, N_PROGRESSED, N_TOUCHED = range(60, 68)
ROUND, N_NUMBERS = range(68, 70)

FCFS, SHORTEST, LARGEST, SMALLEST, BY_CLASS, BY_ID = range(6)
"""Queue orders with ties by serial (BY_ID: by id)."""
LONGEST_TIME, SHORTEST_TIME, MOST_NODES, FEWEST, LARGEST_AREA, SMALLEST_AREA = range(6, 12)
LARGE_FIRST = 12
"""Queue orders with ties by job (`rebat.policies.queue_order`)."""
BY_VALUE = 13
"""Queue order by formula, with ties by entry into the queue."""

FEWEST_NODES, LATEST_RELEASE, LEAST_LOST_WORK, FITS = range(4)
"""Victim rules."""

FEWER_NODES, LATER_RELEASE, SMALLER_FLOW = range(3)
"""Criteria of steals."""

OF_JOB, OF_ATTEMPT = range(2)
"""Releases: that of the job, or that of the attempt."""

BY_RELEASE, BY_START, BY_TEXT = range(3)
"""Ties between victims."""

NOW, PROACTIVE, NEXT = range(3)
"""Timings of stops."""

OF_WALLTIME, OF_RECENT, ACTUAL, PART_OF_WALLTIME = range(4)
"""Predictions of run times."""

COMPLETED, JOB_FAILED, WALLTIME, NODE_FAILURE, REJECTED, STOLEN, NO_WALLTIME, DEPENDENCY = range(8)
"""Causes of the end of an attempt."""

STARTED, NOT_OK, OK = range(1, 4)
"""Progress of a job: it has started, or it has ended. 0: it has not started."""

VICTIM_ENDED, VICTIM_HIT, GIVEN_UP = range(3)
"""Reasons why a steal is cancelled."""

DONE, MORE_EVENTS, LARGER_ROOM, MORE_ROOM, REFERENCE = range(5)
"""Outcomes: complete; the simulation goes on with more events, or with the same arrays in a larger
size (`grown`); it starts again with larger arrays; the reference must simulate."""

SPARE, POINTS = 256, 16384
"""Initial numbers of spare rows of attempts, and of points of a plan."""

ALL = -1
APPEND, COMPRESS, REBUILD = 1, 2, 3
REGULAR, VICTIM_FIRST, FAILED = 1, 2, 3
LONGEST_US = 2**60
FREE = pool.FREE


class Links(NamedTuple):
    """The dependencies of the jobs of a workload, in the order of their submission.

    Attributes
    ----------
    blocks : int64 array, shape (n, N_BLOCK_COLUMNS)
        Jobs. Without dependencies and arrays, there are no rows.
    conditions : int64 array, shape (m, 2)
        Position of the kind in `core.dependencies.KINDS`, and job, of the conditions of each job.
    dependents : int64 array, shape (m,)
        The jobs that depend on each job.
    arrays : int64 array, shape (k, N_ARRAY_COLUMNS)
    tasks : int64 array
        The tasks of each array.
    """

    blocks: Any
    conditions: Any
    dependents: Any
    arrays: Any
    tasks: Any


def no_links() -> Links:
    """Return the links of jobs without dependencies and arrays."""
    shapes = (0, N_BLOCK_COLUMNS), (0, 2), (0,), (0, N_ARRAY_COLUMNS), (0,)
    return Links(*(np.zeros(shape, dtype=np.int64) for shape in shapes))


class State(NamedTuple):
    """Jobs, attempts, nodes and stops. All rules use these arrays.

    Attributes
    ----------
    n : int64 array, shape (N_NUMBERS,)
        Parameters and counters.
    jobs : int64 array, shape (n, N_JOB_COLUMNS or more)
        Jobs in the order of their submission.
    profiles : int64 array, shape (p, N_PROFILE_COLUMNS or more)
    attempts : int64 array, shape (k, N_COLUMNS or more)
    nodes : int32 array, shape (l, 2)
        Intervals of the nodes of attempts, from ``NODES_AT`` on.
    owner, down, free : arrays
        State of the nodes: the tag of the holder, whether the node is down, and the free nodes of
        each block.
    lists : int64 array, shape (N_LISTS, 2 k)
    tables : int64 array, shape (6, few, 7)
    parts : int64 array, shape (p, N_PART_COLUMNS)
        Partitions, which share no nodes. Each begins at a block of `kernels.pool`.
    home : int64 array
        The partition of each block.
    blocks, conditions, dependents, arrays, tasks : int64 arrays
        See `Links`.
    """

    n: Any
    jobs: Any
    profiles: Any
    attempts: Any
    nodes: Any
    owner: Any
    down: Any
    free: Any
    lists: Any
    tables: Any
    parts: Any
    home: Any
    blocks: Any
    conditions: Any
    dependents: Any
    arrays: Any
    tasks: Any


class Room(NamedTuple):
    """The arrays of a simulation. If one of them is too small, the simulation runs again.

    Attributes
    ----------
    state : State
    ends : int64 array, shape (k, 3)
        Heap of the ends of attempts.
    reported, marked, changed : arrays
        Whether the plan knows that a node is down, whether it is in ``changed``, and the nodes
        that failed or came up since the last plan.
    holds, overdue : int64 arrays, shapes (p, k, 3) and (p, k, 2)
        For each partition, the heap of the planned ends, and the attempts that are overdue.
    size, duration, start, queue : int64 arrays, shape (p, k)
        The queue of each partition.
    value : float64 array, shape (p, k)
        Values of the queued attempts, if the queue order is a formula.
    operations, arguments, table, stack : arrays
        The formula, the table of its columns, and scratch (`rebat.kernels.formula`).
    positions : int64 array, shape (k,)
        Positions of the attempts that are due.
    base_t, base_f, plan_t, plan_f : int64 arrays, shape (p, m)
        Profiles of the free nodes of each partition: without and with reservations.
    scratch : int64 array
        Space for a profile in blocks.
    saved : int64 array
        Variables of the loop with which a simulation goes on.
    """

    state: State
    ends: Any
    reported: Any
    marked: Any
    changed: Any
    holds: Any
    overdue: Any
    size: Any
    duration: Any
    start: Any
    queue: Any
    value: Any
    operations: Any
    arguments: Any
    table: Any
    stack: Any
    positions: Any
    base_t: Any
    base_f: Any
    plan_t: Any
    plan_f: Any
    scratch: Any
    saved: Any

    @property
    def records(self) -> Any:
        """The attempts in the order in which they ended."""
        return self.state.lists[RECORDS]

    @property
    def hits(self) -> Any:
        """Times at which failures hit attempts, and the number of free nodes then."""
        return self.state.lists[HITS_AT : HITS_FREE + 1].T


def table_for(parameters: Any, factor: int) -> BlockTable | None:
    """Return the plan of named nodes, or None if nodes are only counted."""
    if not parameters[NAMED]:
        return None
    few, n_nodes = 1024 * factor, int(parameters[N_NODES])
    table = empty_table(2 * few, min(n_nodes, few), 2 * few)
    table.n[:] = 1, 1, 0
    table.first[:2], table.f[0], table.free[0, 0] = (0, n_nodes), n_nodes, 1
    return table


def parts_for(sizes: Sequence[int]) -> Any:
    """Return the table of partitions with these numbers of nodes. Each begins at a block."""
    parts = np.zeros((len(sizes), N_PART_COLUMNS), dtype=np.int64)
    ends = np.cumsum([-(-size // pool.BLOCK) * pool.BLOCK for size in sizes])
    parts[1:, FIRST_NODE] = ends[:-1]
    parts[:, MOST] = parts[:, FREE_NOW] = sizes
    parts[:, END_NODE], parts[:, LONGEST] = parts[:, FIRST_NODE] + sizes, FOREVER_US
    parts[:, BASE_N] = parts[:, PLAN_N] = 1
    parts[:, SORTED] = -FOREVER_US
    return parts


def room_for(
    jobs: Any,
    profiles: Any,
    parameters: Any,
    n_failures: int,
    factor: int,
    parts: Any,
    links: Links,
    formula: tuple[Any, Any],
) -> Room:
    """Return arrays for these jobs and a number of failures of nodes.

    ``factor`` doubles each time that they were too small. ``formula`` contains the operations and
    arguments of the queue order, or empty arrays.
    """
    by_value = len(formula[0]) > 0
    n_jobs, n_nodes, few = len(jobs), int(parameters[N_NODES]), 1024 * factor
    n_parts, n_free = len(parts), int(parts[:, FREE_NOW].sum())
    k, m = (n_jobs + 2 * n_failures + SPARE) * factor, POINTS * factor
    queued = int(np.bincount(jobs[:, PART], minlength=1).max()) + 1

    def ints(*shape: int) -> Any:
        return np.zeros(shape, dtype=np.int64)

    def flags() -> Any:
        return np.zeros(n_nodes, dtype=np.bool_)

    down, block_of = ~flags(), np.arange(n_nodes) // pool.BLOCK
    for first, end in parts[:, [FIRST_NODE, END_NODE]].tolist():
        down[first:end] = False
    state = State(
        n=np.concatenate([parameters, ints(N_NUMBERS - N_PARAMETERS)]),
        jobs=jobs,
        profiles=profiles,
        attempts=ints(k, OWN_RESTART + 1 if parameters[SIX_DIGITS] else N_COLUMNS),
        nodes=np.zeros((16 * k + 2 * n_nodes, 2), dtype=np.int32),
        owner=np.full(n_nodes, FREE, dtype=np.int32),
        down=down,
        free=np.bincount(block_of, ~down).astype(np.int64),
        lists=ints(N_LISTS, 2 * k),
        tables=ints(6, 8 * few, 7),
        parts=parts.copy(),
        home=np.searchsorted(parts[:, FIRST_NODE], np.unique(block_of) * pool.BLOCK, "right") - 1,
        blocks=links.blocks.copy(),
        conditions=links.conditions,
        dependents=links.dependents,
        arrays=links.arrays.copy(),
        tasks=links.tasks,
    )
    state.n[N_FREE], state.n[UNFINISHED], state.n[SEQUENCE] = n_free, n_jobs, 2
    room = Room(
        state,
        ends=ints(k, 3),
        reported=flags(),
        marked=flags(),
        changed=ints(n_nodes),
        holds=ints(n_parts, 2 * k if n_parts == 1 else (2 * queued + SPARE) * factor, 3),
        overdue=ints(n_parts, queued, 2),
        size=ints(n_parts, queued),
        duration=ints(n_parts, queued),
        start=ints(n_parts, queued),
        queue=ints(n_parts, queued),
        value=np.zeros((n_parts, queued if by_value else 1)),
        operations=formula[0],
        arguments=formula[1],
        table=np.zeros((queued if by_value else 1, len(COLUMNS))),
        stack=np.zeros(DEEPEST),
        positions=ints(queued),
        base_t=ints(n_parts, m),
        base_f=ints(n_parts, m),
        plan_t=ints(n_parts, m),
        plan_f=ints(n_parts, m),
        scratch=ints(scratch_needed(m)),
        saved=np.array([0, 0, 1, 2], dtype=np.int64),
    )
    room.base_f[:, 0] = room.plan_f[:, 0] = parts[:, FREE_NOW]
    return room


def grown(room: Room, larger: Room) -> Room:
    """Return the larger arrays, with the contents of the others."""
    for old, new in ((room.state, larger.state), (room[1:], larger[1:])):
        for source, target in zip(old, new, strict=True):
            if source is not target:
                target[tuple(map(slice, source.shape))] = source
    return larger
