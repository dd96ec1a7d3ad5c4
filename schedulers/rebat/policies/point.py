# SPDX-License-Identifier: Apache-2.0
"""A point in the product of schedulers, and what the rows of its tables are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from rebat.policies.malleable.members import Members
from rebat.policies.placement.boxes import Hazards


class Axes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A point in the product: a choice per axis, by name.

    Attributes
    ----------
    planning : str
        A key of PLANNINGS: how starts are decided.
    order : str
        A key of QUEUE_ORDERS.
    depth : str or int
        Reservations for attempts that cannot start now: a key of DEPTHS, or a number.
    reserve : str
        Who uses up the reservations of a limited depth: 'blocked', only attempts that cannot start
        now, or 'first', the first of the queue (Algorithm 1 of RR-9296 as written).
    maintenance : str
        A key of MAINTENANCE.
    placement : str
        A key of PLACEMENTS.
    torus, unit : str
        Extents of the torus and of its allocation units, like 8x12x16x16x2 and 4x4x4x4x2; 'auto':
        those of Mira, Intrepid or an 8x8x8x8, by the number of nodes.
    boxes : str
        A key of LISTS: which boxes of a size there are to choose from.
    pack : str
        A key of PICKS.
    foresight : str
        What 'faps' goes by: 'law', that of the run; 'fit', one fitted to what failed before the
        run; either of them times a factor, like law*2: times to failure misjudged by so much; a key
        of FORESIGHTS; or a file of nodes.
    margin : float
        Seconds added to every walltime in the plan; below 0: the slack that walltimes hold.
    walltimes : str
        'optional', or 'required': jobs without one are rejected.
    react : str
        A key of REACTIONS, or several with + between them, in their order.
    victim, criterion, timing : str
        Keys of VICTIMS, CRITERIA and TIMINGS, for the reaction 'stealing'.
    semantics : str
        'paper' or 'authors', where the node-stealing paper and its program differ: in what an
        interruption leaves, and in the axes below where they are 'auto'.
    release : str
        When a resubmission was released, for V1, V2, K2 and K3: as the 'original' job, or at its
        'resubmission'.
    passes : str
        A failure is decided on in 'one' pass; or in 'two' at the same date, of which the first
        plans while what is being killed holds its nodes, and the second frees what was held.
    held : str
        Which nodes are held for a job that waits for a stolen one: its 'surviving' ones, or as many
        of the 'lowest' free ones, also when one of them fails.
    hold_margin : str or float
        Seconds that plans take them to be held longer; 'auto': 0, or 900 as the program does.
    tie : str
        A key of TIES: the last key of V1 and V2.
    ended : str
        When a victim ends before it is stopped: its nodes and those held are planned on 'together',
        or 'others-first': others may take what the victim left before the rest is given back.
    hit : str
        How a victim goes on that fails before it is stopped: as any 'failed' job, or as a 'victim',
        with its priority and with what it had when it was chosen.
    chosen : str
        Whether an attempt that was chosen and not stopped may be chosen 'again', or only 'once'.
    k3 : str
        What K3 goes by: the paper's 'text', or as the 'program' does: the victim's planned end
        without its recovery, the next end also among nodes held for others.
    digits : str
        Numbers of resubmissions have 'all' their digits, or 'six', and periods are worked out from
        a failure rate with six decimals.
    silent_errors : str
        'accept': a job that ends with an error has failed; 'retry': it is run again.
    malleable, moldable, manager : str
        Keys of MALLEABILITY, MOLDINGS and MANAGERS, for the planning 'flexible'.
    resize_cost : str or float
        What a job pays for going on on another number of nodes, as a recovery: seconds, or 'table'
        (Table 1 of Rodríguez-Pascual et al. 2019) with the memory of a task: table*1000 MB.
    fit : str
        A key of FITS, for the placement 'cluster' and the reaction 'compaction'.
    partitions : str
        For the planning 'fifo': NAME:NODES[:TIER][:reversed] with + between, where NODES are 'all',
        a set like 0-3 or shares like 0%-25% of the nodes; empty: the machine is one.
    targets : str
        A key of TARGETS, for the reaction 'compaction'.
    period : float
        Seconds between the dates at which reactions look at the machine.
    migration_cost : str or float
        What a checkpoint and restart costs: seconds, 'table' (Table 1 of Rodríguez-Pascual et al.
        2019), 'constant*SECONDS' or 'bandwidth*MB_PER_S'.
    drain : str
        A key of DRAINS: how nodes get empty that an operation drains; 'auto': 'migrate' in runs
        that are given operations, and 'ignore' over the wire, where they may be somebody else's.
    operators : str
        Who may ask for operations, with + between; 'all': everybody.
    power : str
        Watts of a node asleep/empty/full, like 10/100/300, for the energy; empty: none is computed.
    sleep : float
        Seconds that a node is empty before it sleeps, for the reaction 'sleep'.
    boot : float
        Seconds that a node takes to wake up.
    ahead, survival : float
        For the reaction 'foresee': seconds to look ahead, and the least probability that a node
        survives them with which it is used.
    purge : float
        Seconds of Slurm's PURGE_JOB_INTERVAL, of which half is in every checkpoint and restart.
    horizon : float
        The date in seconds at which jobs without an end are ended; 0: when nothing else is left.
    steps : str
        Those of the reaction 'replacement', with + between them.
    spares : int
        Nodes kept for the reaction 'replacement' alone.
    repair : float
        Seconds that nodes are down in the mean, as far as the reaction 'replacement' knows.
    solver : str
        A key of SOLVERS: who solves the integer program of its fourth step.
    seed : int
        For the order 'random', and the placement 'rps' (that of the failures is added to it).

    A rule of one's own stands as ``FILE.py:FUNCTION`` for order (of an attempt: a number, the
    smallest goes first), victim (of a candidate: a number, the smallest is the victim) and
    criterion (of a steal: whether); for placement (of a mask of free nodes, a request and the
    machine: a NodeSet, or None). Rules of the tables show
    what they get to see.
    """

    planning: str = "list"
    order: str = "fcfs"
    depth: str | int = "conservative"
    reserve: str = "blocked"
    maintenance: str = "compression"
    placement: str = "any"
    torus: str = "auto"
    unit: str = "auto"
    boxes: str = "all"
    pack: str = "corner"
    foresight: str = "law"
    margin: float = 0.0
    walltimes: str = "optional"
    react: str = "requeue"
    victim: str = "fewest-nodes"
    criterion: str = "fewer-nodes"
    timing: str = "now"
    semantics: str = "paper"
    release: str = "auto"
    passes: str = "auto"
    held: str = "auto"
    hold_margin: str | float = "auto"
    tie: str = "auto"
    ended: str = "auto"
    hit: str = "auto"
    chosen: str = "auto"
    k3: str = "auto"
    digits: str = "auto"
    silent_errors: str = "accept"
    malleable: str = "dbes"
    moldable: str = "sa"
    manager: str = "fpsma"
    resize_cost: str | float = "0"
    fit: str = "best"
    partitions: str = ""
    targets: str = "single"
    period: float = 60.0
    migration_cost: str | float = "table"
    purge: float = 60.0
    drain: str = "auto"
    power: str = ""
    sleep: float = 600.0
    boot: float = 120.0
    ahead: float = 3600.0
    survival: float = 0.9
    operators: str = "all"
    horizon: float = 0.0
    steps: str = "local+idle+remote+restart+wait"
    spares: int = 0
    repair: float = 10_080.0
    solver: str = "kernel"
    seed: int = 0


class Known(msgspec.Struct, frozen=True):
    """What the parts of one scheduler share: what is told of how nodes fail, and what its planning
    and its reactions know of malleable jobs."""

    hazards: Hazards | None = None
    members: Members = msgspec.field(default_factory=Members)


class Kind(msgspec.Struct, frozen=True):
    """How a planning, placement or reaction is made, from the axes and what is known (a placement:
    of failures), and the axes that it has beside the common ones."""

    make: Callable[[Axes, Any], Any]
    axes: frozenset[str] = frozenset()


def parts(text: str) -> list[str]:
    """What is written with + between.

    >>> parts("replacement+stealing")
    ['replacement', 'stealing']
    """
    return [part for part in text.split("+") if part]
