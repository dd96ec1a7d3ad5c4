# SPDX-License-Identifier: Apache-2.0
"""The tables of a simulation: jobs, attempts, nodes, stops and plans, with named fields."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from rebat.kernels.fair_share import Tree, empty_tree
from rebat.state import codes
from rebat.state.rows import Short, zeros


class Attempt(msgspec.Struct, gc=False):
    """An attempt of a job. Held nodes are rows too, because they have serials of attempts.

    ``number`` is `HOLD` for held nodes. ``predicted`` is the predicted run time, ``ended_before``
    the attempt of the same user that ended before (its number plus 1), ``place`` the place among
    the running attempts. Fields that begin with ``own``: the checkpoints, if the numbers of
    resubmissions are rounded. Fields of held nodes: ``record``, ``planned_at`` and ``n_planned_at``
    (the nodes that the plan knows), ``size_of_hold``, and ``lives`` (how often nodes were chosen).
    ``charged`` is the number of nodes that count for limits, ``label`` the place of a sort key that
    Python computes, ``step`` a step of node replacement (`codes.IDLE` and others).
    """

    queued: int = 0
    wall: int = 0
    delay: int = 0
    first: int = 0
    recovery: int = 0
    start: int = 0
    end: int = 0
    useful: int = 0
    nodes_at: int = 0
    held_until: int = 0
    held_key: int = 0
    predicted: int = 0
    own_period: int = 0
    own_cost: int = 0
    own_restart: int = 0
    planned_at: int = 0
    job: Short = 0
    number: Short = 0
    priority: Short = 0
    cause: Short = 0
    n_nodes_at: Short = 0
    thief: Short = 0
    held_size: Short = 0
    failure: Short = 0
    ended_before: Short = 0
    place: Short = 0
    record: Short = 0
    n_planned_at: Short = 0
    size_of_hold: Short = 0
    lives: Short = 0
    charged: Short = 0
    label: Short = 0
    step: Short = 0


class Job(msgspec.Struct, gc=False):
    """A job. The user is a number of at least 1, or 0 if it is unknown.

    ``by_name`` and ``by_prefix`` are the ranks of the job among the ids, and among the ids of
    resubmissions, if a rule compares ids as text. They have 64 bits, because ranks on the wire have
    large gaps. ``progress`` is a code of `rebat.state`, and ``block`` the row of `Block` plus 1, or
    0. ``once`` is 1 if the job cannot run again.
    ``client`` is the row of `Client`, ``share`` that of the user in `Tree`, ``who`` the kind of its
    owner in a `CellTable`, ``places`` that of the partitions in which it may run, ``part`` the row
    of `Part`, and ``partition`` that of `Partition`.
    ``errors`` is the number of attempts that will end with an error (0 or 1 if none is retried).
    """

    submit: int = 0
    size: int = 0
    wall: int = 0
    profile: Short = 0
    job_class: int = 0
    part: Short = 0
    user: Short = 0
    by_name: int = 0
    by_prefix: int = 0
    interruptions: Short = 0
    progress: Short = 0
    block: Short = 0
    once: int = 0
    client: Short = 0
    share: Short = 0
    who: Short = 0
    partition: Short = 0
    places: Short = 0
    errors: Short = 0


class Profile(msgspec.Struct, gc=False):
    """A profile. ``checkpoints`` is a code of `rebat.state`.

    If the numbers of resubmissions are rounded, the period in seconds is a whole number
    (``fraction``) times a power of two (``exponent``).
    """

    delay: int = 0
    checkpoints: int = 0
    period: int = 0
    cost: int = 0
    restart: int = 0
    first_period: int = 0
    first_recovery: int = 0
    fraction: int = 0
    exponent: int = 0


class Light(msgspec.Struct, gc=False):
    """The light checkpoints of a profile: its rows of `Tier`, the number of nodes in a group, and
    its rows among the causes of failures after which a node is still usable.
    """

    first: int = 0
    n: int = 0
    group: int = 1
    first_cause: int = 0
    n_causes: int = 0


class Tier(msgspec.Struct, gc=False):
    """A tier of light checkpoints. Those of a profile begin with the lightest.

    The names of the fields are those of `rebat.models.checkpoint.LightTier`, so that
    `rebat.models.interruptions` reads both.
    """

    period_us: int = 0
    cost_us: int = 0
    recovery_us: int = 0
    level: int = 0


class Stage(msgspec.Struct, gc=False):
    """How long attempts hang after failures with a cause, and how long the next ones initialise."""

    cause: int = 0
    hung: int = 0
    init: int = 0


class Partition(msgspec.Struct, gc=False):
    """A partition: the group of partitions that share its nodes, its limits, its place in the
    queue of the group, the code of its queue order, the number of its formula, its weight, and the
    partition with which its planned starts are counted for the depth. ``n_nodes`` is the number of
    nodes to which the order ``ljf`` compares sizes.

    Under fifo: its tier, and whether it is filled from its last node.
    """

    part: int = 0
    most: int = 0
    longest: int = 0
    rank: int = 0
    order: int = 0
    formula: int = 0
    weight: int = 0
    counted_with: int = 0
    n_nodes: int = 0
    tier: int = 0
    backwards: int = 0


class Part(msgspec.Struct, gc=False):
    """A group of partitions: its nodes, and the lengths of its queue, heaps and profiles."""

    first_node: int = 0
    end_node: int = 0
    n_nodes: int = 0
    n_free: int = 0
    n_queued: int = 0
    n_planned_ends: int = 0
    n_overdue: int = 0
    opened: int = 0
    planned: int = 0
    base_n: int = 0
    plan_n: int = 0
    failures: int = 0
    repairs: int = 0
    sorted: int = 0
    withdrawn: int = 0
    indexed: int = 0
    n_gaps: int = 0


class Hit(msgspec.Struct, gc=False):
    """An attempt that failures hit, when the steal that this cancels was decided (-1: there is
    none), whether the attempt is already being killed, and the number of the lightest tier of
    checkpoints that survives the failure.
    """

    attempt: int = 0
    cancelled: int = 0
    is_killed: int = 0
    tier: int = 0


class Kill(msgspec.Struct, gc=False):
    """A kill: ``then`` is the priority of the resubmission, or `codes.WAITS` if the job waits.

    The job waits for the stop of ``victim``.
    """

    attempt: int = 0
    decided: int = 0
    timing: int = 0
    then: int = 0
    cause: int = 0
    victim: int = 0


class Stop(msgspec.Struct, gc=False):
    """A scheduled stop: when it was decided, when the checkpoint is complete, and its time.

    The other fields are those of its kill.
    """

    victim: int = 0
    decided: int = 0
    due: int = 0
    at: int = 0
    timing: int = 0
    then: int = 0
    cause: int = 0


class Wait(msgspec.Struct, gc=False):
    """A stopped attempt, its held nodes (-1: none), how many of them are up, the victim, when
    the wait ends, and whether the second pass ends it or chooses the nodes again.
    """

    attempt: int = 0
    hold: int = 0
    n_held: int = 0
    victim: int = 0
    until: int = 0
    over: int = 0
    shrinks: int = 0
    decided: int = 0
    priority: int = 0


class Move(msgspec.Struct, gc=False):
    """A stopped attempt, the nodes on which it continues, when the stop was decided, its timing,
    and the place of its acknowledgement among those of the moves (0: not acknowledged).
    """

    attempt: int = 0
    nodes_at: int = 0
    n_nodes_at: int = 0
    decided: int = 0
    timing: int = 0
    place: int = 0


class Target(msgspec.Struct, gc=False):
    """A row of held nodes, and the attempt that moves to them."""

    hold: int = 0
    attempt: int = 0


class DrainRecord(msgspec.Struct, gc=False):
    """Nodes that were drained, or returned (``up``), when, and a reason like `codes.FOR_ORDER`."""

    at: int = 0
    up: int = 0
    why: int = 0
    nodes_at: int = 0
    n_nodes_at: int = 0


class Decision(msgspec.Struct, gc=False):
    """A decision (`codes.START` and others): an attempt, a time (CALL), or kills (first, and
    last plus 1). REGISTER: the resubmission, and the attempt before. REFUSE: the victim, and the
    attempt that would wait for it, plus 1. STAY: the attempt that cannot move, and the node that is
    not free. NOTE: the number of the note.
    """

    kind: int = 0
    subject: int = 0
    up_to: int = 0


class Lists(msgspec.Struct, gc=False):
    """The i-th entry of each list.

    Attempts in the order of their ends; attempts that enter the queue, leave their nodes, or are
    new holds since the last plan; running attempts; attempts that victim rules spare, or held sets
    that are hit; jobs that wait and lost held nodes; times of failures that hit attempts, and free
    nodes then; attempts that ended with an error and are retried; jobs given up; times of steals;
    times and reasons of cancelled steals; the attempt of user i that ended last (its number plus
    1); attempts that completed while they hung. ``n_before`` belongs to ``record``: the number of
    kills that are sent before a rejected job, and recorded after it.
    """

    hit_at: int = 0
    steal_at: int = 0
    off_at: int = 0
    record: Short = 0
    entered: Short = 0
    left: Short = 0
    new_hold: Short = 0
    running: Short = 0
    spared: Short = 0
    held_hit: Short = 0
    free_at_hit: Short = 0
    retried: Short = 0
    given_up: Short = 0
    off_why: Short = 0
    ended_last: Short = 0
    n_before: Short = 0
    completed: Short = 0


class HoldRecord(msgspec.Struct, gc=False):
    """A record of held nodes."""

    job: int = 0
    since: int = 0
    until: int = 0
    nodes_at: int = 0
    n_nodes_at: int = 0


class Block(msgspec.Struct, gc=False):
    """A job with conditions or an array, or on which other jobs depend (see `rebat.rules.links`).

    ``job`` and ``attempt`` are rows plus 1, or 0 until the job is submitted. The conditions of a
    job are consecutive. The conditions on a job are a linked list, and the tasks of an array are
    another one, whose links are rows plus 1. ``new_job`` and ``progressed`` are lists of blocks.
    """

    job: int = 0
    attempt: int = 0
    condition: int = 0
    n_conditions: int = 0
    first_dependent: int = 0
    last_dependent: int = 0
    array: int = 0
    next_task: int = 0
    is_open: int = 0
    is_ready: int = 0
    stamp: int = 0
    why_never: int = 0
    new_job: int = 0
    progressed: int = 0


class Condition(msgspec.Struct, gc=False):
    """A condition: its kind (a position in `core.dependencies.KINDS`), the block of the job that
    must progress, the block of the job that waits, and the next condition on the same job.
    """

    kind: int = 0
    block: int = 0
    owner: int = 0
    next_dependent: int = 0


class JobArray(msgspec.Struct, gc=False):
    """An array of jobs: the limit, the number of tasks in the queue or running, its submitted tasks
    as a linked list of blocks. ``listed`` is a list of arrays, ``was_listed`` whether the array is
    in it.
    """

    limit: int = 0
    active: int = 0
    first_task: int = 0
    last_task: int = 0
    was_listed: int = 0
    listed: int = 0


class Group(msgspec.Struct, gc=False):
    """A user, an account or a queue with a limit: the maximum numbers of running jobs and of their
    nodes (0: no maximum), and the present numbers. Held nodes count as a job.
    """

    max_jobs: int = 0
    max_nodes: int = 0
    n_jobs: int = 0
    n_nodes: int = 0


class Client(msgspec.Struct, gc=False):
    """The jobs that belong to the same groups with limits. ``largest`` is the maximum number of
    nodes of a job. Row 0 has no group.
    """

    first_group: int = 0
    n_groups: int = 0
    largest: int = 0


class Membership(msgspec.Struct, gc=False):
    """A group of a client. Those of a client are consecutive."""

    group: int = 0


class Entry(msgspec.Struct, gc=False):
    """An entry of a heap."""

    at: int = 0
    key: int = 0
    attempt: int = 0


class Numbers(msgspec.Struct, gc=False):
    """Parameters, then counters."""

    depth: int = 0
    first_only: int = 0
    margin: int = 0
    order: int = 0
    on_arrival: int = 0
    on_priority: int = 0
    on_end: int = 0
    on_failure: int = 0
    on_repair: int = 0
    max_attempts: int = 0
    n_nodes: int = 0
    drawn: int = 0
    stealing: int = 0
    victim: int = 0
    fitting: int = 0
    counts_lost: int = 0
    criterion: int = 0
    judges_flows: int = 0
    release: int = 0
    tie: int = 0
    tie_by_text: int = 0
    timing: int = 0
    authors: int = 0
    two_passes: int = 0
    lowest_held: int = 0
    hold_margin: int = 0
    others_first: int = 0
    hit_as_victim: int = 0
    chosen_once: int = 0
    program_k3: int = 0
    six_digits: int = 0
    named: int = 0
    unplanned: int = 0
    fifo: int = 0
    shelf: int = 0
    asks: int = 0
    chooser: int = 0
    cores: int = 0
    tiered: int = 0
    timed: int = 0
    to_the_last_event: int = 0
    parted: int = 0
    ranked: int = 0
    most_weight: int = 0
    predict: int = 0
    millionths: int = 0
    varies: int = 0
    sort_period: int = 0
    limited: int = 0
    uses_usage: int = 0
    uses_shares: int = 0
    accounted: int = 0
    max_wakes: int = 0
    retries: int = 0
    staged: int = 0
    scanned: int = 0
    replacing: int = 0
    takes_own: int = 0
    takes_idle: int = 0
    hit_first: int = 0
    n_spares: int = 0
    preempting: int = 0
    period: int = 0
    grace: int = 0
    excluding: int = 0
    hits: int = 0
    within: int = 0
    most_excluded: int = 0
    excluded_for: int = 0
    operating: int = 0
    migrates: int = 0
    reserving: int = 0
    hears_all: int = 0
    n_attempts: int = 0
    n_records: int = 0
    n_hits: int = 0
    n_given_up: int = 0
    n_steals: int = 0
    n_steals_off: int = 0
    n_holds: int = 0
    unfinished: int = 0
    n_free: int = 0
    n_down: int = 0
    n_running: int = 0
    n_nodes_used: int = 0
    n_entered: int = 0
    n_left: int = 0
    n_ends: int = 0
    n_new_holds: int = 0
    n_refused: int = 0
    n_kills: int = 0
    n_stops: int = 0
    n_waits: int = 0
    n_calls: int = 0
    last_call: int = 0
    n_held_hit: int = 0
    n_changed: int = 0
    sequence: int = 0
    key: int = 0
    n_blocked: int = 0
    n_retried: int = 0
    n_new_jobs: int = 0
    n_progressed: int = 0
    n_touched: int = 0
    round: int = 0
    n_out: int = 0
    n_hit: int = 0
    n_failed_now: int = 0
    counts_changed: int = 0
    is_exceeded: int = 0
    n_wakes: int = 0
    wake: int = 0
    n_idle: int = 0
    woken: int = 0
    may_plan: int = 0
    n_first_kills: int = 0
    next_job: int = 0
    next_line: int = 0
    job_sequence: int = 0
    line_sequence: int = 0
    now: int = 0
    n_completed: int = 0
    is_deciding: int = 0
    begins: int = 0
    has_news: int = 0
    has_notice: int = 0
    n_pool: int = 0
    lowest_spare: int = 0
    n_hit_waiting: int = 0
    n_moves: int = 0
    n_acknowledged: int = 0
    n_targets: int = 0
    n_drains: int = 0
    news: int = 0
    n_woken: int = 0
    answered: int = 0
    all_submitted: int = 0
    n_operations_left: int = 0
    n_operations_due: int = 0
    operation_sequence: int = 0


class Links(NamedTuple):
    """The dependencies of the jobs of a workload, in the order of their submission.

    Attributes
    ----------
    blocks : array of Block
        The block of each job. Without dependencies and arrays, there are no rows.
    conditions : array of Condition
    arrays : array of JobArray
    """

    blocks: Any
    conditions: Any
    arrays: Any


def no_links() -> Links:
    """Return the links of jobs without dependencies and arrays."""
    return Links(zeros(Block, 0), zeros(Condition, 0), zeros(JobArray, 0))


class Limits(NamedTuple):
    """The groups with limits, and which jobs belong to them (`rebat.rules.limits`).

    Attributes
    ----------
    groups, clients, memberships : arrays of Group, Client and Membership
    """

    groups: Any
    clients: Any
    memberships: Any


def no_limits() -> Limits:
    """Return the limits of a site without limits."""
    clients = zeros(Client, 1)
    clients["largest"] = codes.NO_LIMIT
    return Limits(zeros(Group, 0), clients, zeros(Membership, 0))


MOST_TIERS = 3
"""Maximum number of light tiers, because each survives more failures than the one before."""

TIER = MOST_TIERS
"""The column of `Tiers.at_risk` with the tier from which a job continues."""


class Tiers(NamedTuple):
    """Checkpoints in several tiers, if a profile has them (see `rebat.rules.tiers`).

    Attributes
    ----------
    profiles : rows of Light
        The light checkpoints of each profile.
    tiers : rows of Tier
    causes : int64 array or list
        Numbers of causes of failures.
    at_risk : int64 array, shape (attempts, 4)
        For each attempt, the work at risk in each tier when it started
        (`rebat.models.remaining.AtRisk`), and the tier from which its job continues after the
        failure that hit it.
    after : int64 array, shape (4,)
        Scratch: the work at risk after a stop.
    original : int64 array
        The number of each node on the machine.
    """

    profiles: Any
    tiers: Any
    causes: Any
    at_risk: Any
    after: Any
    original: Any


SINCE, DUE, INIT, CAUSE, ENDED = range(5)
"""Columns of `Hangs`."""


class Hangs(NamedTuple):
    """Attempts that failed, if the recovery has stages (see `rebat.rules.hangs`).

    Attributes
    ----------
    stages : rows of Stage
        Row 0 is for all causes that have no other row.
    attempts : int64 array, shape (attempts, 5)
        For each attempt, the time of its failure plus 1 (0: it has not failed), the end of its
        hang, the time to initialise the next attempt of its job, the number of the cause, and how
        the attempt ended in the simulator while it hung: the code plus 1, or 0.
    """

    stages: Any
    attempts: Any


N_WAKES, WOKEN, NEXT, LAST, CHANGED, N_STOPPED = range(6)
"""Columns of `Rounds.own`."""


class Rounds(NamedTuple):
    """The rounds of preemption (see `rebat.rules.preempt`).

    Attributes
    ----------
    own : int64 array, shape (6,)
        The number of wakes, how many of them are due, the time of the next round and of the last
        one, whether anything has changed since then, and the length of ``stopped``.
    wakes : int64 array, shape (attempts + 2, 2)
        Times of wakes, and their numbers.
    stopped : int64 array, shape (attempts, 2)
        Jobs that were stopped, and the attempts for which they were stopped.
    """

    own: Any
    wakes: Any
    stopped: Any


N_EXCLUDED, N_FAILED, RETURNS = range(3)
"""Columns of `Lemons.own`."""


class Lemons(NamedTuple):
    """The failures of each node that hit jobs (see `rebat.rules.exclude`).

    Attributes
    ----------
    own : int64 array, shape (3,)
        The numbers of excluded nodes and of failed nodes, and when the next node returns (0: none).
    until : int64 array, shape (n,)
        The end of the exclusion of each node, or 0.
    times, n_times : int64 arrays, shapes (n, hits) and (n,)
        The last failures of each node.
    failed, is_listed : int64 and bool arrays, shape (n,)
        The nodes that failed since the last reaction, in the order of their failures.
    """

    own: Any
    until: Any
    times: Any
    n_times: Any
    failed: Any
    is_listed: Any


def no_tree() -> Tree:
    """Return the tree of a site whose usage has no effect."""
    return empty_tree(1, 0, False)


class State(NamedTuple):
    """Jobs, attempts, nodes and stops. All rules use these arrays.

    Attributes
    ----------
    n : Numbers
    jobs : rows of Job
        In the order of their submission.
    profiles, attempts : rows of Profile and Attempt
    nodes : int32 array, shape (l, 2)
        Intervals of the nodes of attempts, from ``nodes_at`` on.
    owner, down, down_in, free : arrays
        State of the nodes: the tag of the holder, whether the node is unusable (it has failed or is
        drained), and the numbers of unusable and of free nodes of each block.
    failed, drained : bool arrays
        Why nodes are unusable.
    up_since, failed_at : int64 arrays
        Times at which each node last came up and last failed, in microseconds. ``up_since`` is
        negative if this was before the simulation. If a node has not failed in the simulation,
        both are equal.
    lists : rows of Lists
    hits, kills, stops, waits, hold_records, moves, targets, drains : rows
    calls : rows of Entry
        Heap of the times at which stops are due.
    partitions, parts : rows of Partition and Part
        The partitions, and the groups of partitions that share nodes. Each group begins at a block
        of `kernels.pool`.
    members : bool array, shape (partitions, n)
        The nodes of each partition.
    blocked_by : int64 array, shape (partitions,)
        Under fifo, the attempt that blocks each partition plus 1, or 0.
    home : int32 array, shape (n,)
        The group of each node.
    blocks, conditions, arrays : rows
        See `Links`.
    groups, clients, memberships : rows
        See `Limits`.
    allowed : int64 array
        The maximum number of nodes with which a job of each client can start now.
    client_of : int64 array
        The client of each attempt that has entered the queue, if there are limits.
    tree : Tree
        Accounts and users, if the queue order depends on their usage.
    wakes : int64 array
        Times at which windows of reservations end or begin, for which a plan is due.
    out : rows of Decision
    tiers : Tiers or None
    hangs : Hangs or None
    rounds : Rounds or None
    lemons : Lemons or None
    operations : rebat.state.operations.Operations or None
        None if no profile has checkpoints in several tiers, if the recovery has no stages, if jobs
        are not preempted, if nodes are not excluded, and if there are no operations. Then the rules
        for them are not compiled.
    """

    n: Any
    jobs: Any
    profiles: Any
    attempts: Any
    nodes: Any
    owner: Any
    down: Any
    down_in: Any
    free: Any
    failed: Any
    drained: Any
    up_since: Any
    failed_at: Any
    lists: Any
    hits: Any
    kills: Any
    stops: Any
    waits: Any
    hold_records: Any
    moves: Any
    targets: Any
    drains: Any
    calls: Any
    partitions: Any
    parts: Any
    members: Any
    blocked_by: Any
    home: Any
    blocks: Any
    conditions: Any
    arrays: Any
    groups: Any
    clients: Any
    memberships: Any
    allowed: Any
    client_of: Any
    tree: Any
    wakes: Any
    out: Any
    tiers: Any = None
    hangs: Any = None
    rounds: Any = None
    lemons: Any = None
    operations: Any = None


class Room(NamedTuple):
    """The arrays of a simulation. Those that may become too small grow (`rebat.drive.growing`).

    Attributes
    ----------
    state : State
    ends : int64 array, shape (k, 3)
        Heap of the ends of attempts.
    reported, marked, changed : arrays
        Whether the plan knows that a node is down, whether it is in ``changed``, and the nodes
        that failed or came up since the last plan.
    usable, inside : bool arrays, shape (n,)
        Scratch: on which nodes an attempt may start, in total and in a partition.
    on_nodes : int64 array, shape (2, nodes)
        Scratch, if nodes have several cores: free cores, and cores that an attempt will use.
    holds, overdue : int64 arrays, shapes (p, k, 3) and (p, k, 2)
        For each partition, the heap of the planned ends, and the attempts that are overdue.
    size, duration, start, queue : int64 arrays, shape (p, k)
        The queue of each partition.
    index : int64 array, shape (p, 4, m)
        Index of the queue of each partition, if the queue is long (`rebat.kernels.deep_queue`).
    value : float64 array, shape (p, k)
        Values of the queued attempts, if the queue order is a formula.
    operations, arguments, first_of_formula, value_by_one, table, stack : arrays
        The formulas and where each begins, values by one of them, the table of their columns, and
        scratch (`rebat.kernels.formula`).
    visible : int64 array, shape (4, k)
        Sizes, durations, starts and positions of the queued attempts that no limit bars.
    positions : int64 array, shape (k,)
        Positions of the attempts that are due.
    base_t, base_f, plan_t, plan_f : int64 arrays, shape (p, m)
        Profiles of the free nodes of each partition: without and with reservations.
    scratch : int64 array
        Space for a profile in blocks.
    """

    state: State
    ends: Any
    reported: Any
    marked: Any
    changed: Any
    usable: Any
    inside: Any
    on_nodes: Any
    holds: Any
    overdue: Any
    size: Any
    duration: Any
    start: Any
    queue: Any
    index: Any
    value: Any
    operations: Any
    arguments: Any
    first_of_formula: Any
    value_by_one: Any
    table: Any
    stack: Any
    visible: Any
    positions: Any
    base_t: Any
    base_f: Any
    plan_t: Any
    plan_f: Any
    scratch: Any
