# SPDX-License-Identifier: Apache-2.0
"""Codes in the tables of a simulation, and the outcomes of the rules."""

from __future__ import annotations

from rebat.kernels import pool
from rebat.models import interruptions

NOW, PROACTIVE, NEXT = interruptions.NOW, interruptions.PROACTIVE, interruptions.NEXT
"""Timings of stops."""

IMAGE = 3
"""Timing of a stop at an image, which the batch system writes."""

HOLD = -1
"""The number of an attempt that is held nodes."""

WAITS, MOVES, ENDS = 0, -1, -2
"""The step after a kill, instead of a priority: the job waits, moves to other nodes, or ends."""

FCFS, SHORTEST, LARGEST, SMALLEST, BY_CLASS, BY_ID = range(6)
"""Queue orders with ties by serial (BY_ID: by id)."""
LONGEST_TIME, SHORTEST_TIME, MOST_NODES, FEWEST, LARGEST_AREA, SMALLEST_AREA = range(6, 12)
LARGE_FIRST = 12
"""Queue orders with ties by job (`rebat.policies.queue_order`)."""
BY_VALUE = 13
"""Queue order by formula, with ties by entry into the queue."""
BY_LABEL = 14
"""Queue order by keys that Python computes (`rebat.drive.keys`)."""

ORDERS = {
    "fcfs": FCFS,
    "shortest": SHORTEST,
    "largest": LARGEST,
    "smallest": SMALLEST,
    "priority": BY_CLASS,
    "fcfs-by-id": BY_ID,
    "lpt": LONGEST_TIME,
    "spt": SHORTEST_TIME,
    "hpa": MOST_NODES,
    "lpa": FEWEST,
    "la": LARGEST_AREA,
    "sa": SMALLEST_AREA,
    "ljf": LARGE_FIRST,
}
"""The queue orders by name."""

WITH_BACKFILL, WITHOUT_BACKFILL = 1, 2
"""Kinds of shelves (`rebat.rules.shelves`). 0: the planning has no shelves."""

LOWEST, BEST_CORES, FIRST_CORES, ASKED = range(4)
"""Choosers of nodes under fifo: the lowest, cores on few nodes, or a Python function."""

WRITTEN, NEVER = 1, 2
"""Checkpoints: the job writes them, or it writes none but can restart at a cost. 0: none."""

OF_JOB, OF_ATTEMPT = range(2)
"""Releases: that of the job, or that of the attempt."""

OF_WALLTIME, OF_RECENT, ACTUAL, PART_OF_WALLTIME = range(4)
"""Predictions of run times."""

COMPLETED, JOB_FAILED, WALLTIME, NODE_FAILURE, REJECTED, STOLEN, NO_WALLTIME, DEPENDENCY = range(8)
LIMIT, NO_WINDOW, SILENT_ERROR = 8, 9, 10
"""Causes of the end of an attempt. The cause of an attempt that has not ended is 0 too."""
MOVED, PREEMPTED, HORIZON, MOLDED = range(11, 15)
"""Other causes. Only Python policies, and the rules of operations and of preemption, have them."""

AGAIN = NODE_FAILURE, STOLEN, MOVED, PREEMPTED
"""Causes of the ends of attempts whose jobs continue."""

STARTED, NOT_OK, OK = range(1, 4)
"""Progress of a job: it has started, or it has ended. 0: it has not started."""

QUEUED, IDLE, LOCAL, QUEUED_LAST = range(4)
"""Steps of node replacement: a job that lost nodes is first in the queue, takes idle nodes, keeps
its nodes, or is queued like a new job."""

BY_DRAIN, BY_MIGRATION, MIGRATION_OF_HIT = 1, 2, 3
"""Steps of attempts that operations stop: because their nodes are drained, or one by one. A failure
can hit an attempt at the time of its migration, if the node comes up at the same time."""

OTHER, DRAIN, UNDRAIN, MIGRATE, ANNOUNCE = range(5)
"""Kinds of operations. OTHER: nothing is to be done."""

FOR_SPARE, FOR_LEMON, FOR_ORDER = range(3)
"""Reasons for drains: spare nodes, lemon nodes, and operations."""

UNWILLING, NO_DELAY, ON_DOWN_NODE, SPANS = range(1, 5)
"""Why a job cannot be moved: its user, its profile, a node that is down, or its nodes. 0: it can.
"""

FORBIDDEN, NOT_ANNOUNCED, DRAINED, NOT_DRAINED, DRAINED_LATER = range(5)
NOT_RUNNING, TOO_FEW_FREE, RUNS_THERE, NOT_MOVABLE, NOT_MOVED = range(5, 10)
"""Why operations are refused (`rebat.policies.reactions.operations`). NOT_MOVED: the move of a
stopped job is called off."""

VICTIM_ENDED, VICTIM_HIT, GIVEN_UP = range(3)
"""Reasons why a steal is cancelled."""

DONE, MORE_EVENTS, LARGER_ROOM, IMPOSSIBLE, ANNOUNCED = range(5)
"""Outcomes: complete; the simulation continues with more events; or with larger arrays; the rules
cannot continue, and a session repeats the run, which states the error; the simulation continues
with the windows of announced maintenance."""

START, REGISTER, REJECT, KILLS, CALL, REFUSE, STAY, NOTE = range(8)
"""Decisions (`tables.Decision`)."""

UNKNOWN_LAG_US = 1_000
"""Minimum time (us) between the request of a call and the call, before the first kill.

The first kill shows the delay of replies. On a platform without network latency, replies have no
delay, so calls are exact from then on.
"""

ALL = -1
APPEND, COMPRESS, REBUILD = 1, 2, 3
REGULAR, VICTIM_FIRST, FAILED = 1, 2, 3
LONGEST_US = 2**60
NO_LIMIT = 2**60
FREE = pool.FREE
