# SPDX-License-Identifier: Apache-2.0
"""The records of a run, in the tables of the ledger and the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.attempts import SECOND_ORDER, SPARE, Cause, resubmission_id
from rebat.core.dependencies import KINDS
from rebat.core.nodes import NodeSet
from rebat.core.options import Recovery
from rebat.core.table import Chosen, Ragged, Table, Texts, narrow
from rebat.core.units import FOREVER_US
from rebat.drive.checks import obstructed
from rebat.drive.hangs import stages_of
from rebat.drive.operations import Orders, notes_of
from rebat.drive.parts import LoopMachine
from rebat.drive.plan_record import PlanRecord
from rebat.drive.site_limits import SiteLimits
from rebat.drive.site_windows import SiteWindows
from rebat.engine.jobs import ENDED, FAILED, KILLED, REJECTED, SUCCESS, WALLTIME, EndedJob
from rebat.models.checkpoint import NEVER as NEVER_WRITTEN
from rebat.models.checkpoint import Checkpointing
from rebat.models.remaining import Remaining
from rebat.policies.reactions.exclusion import LEMON
from rebat.policies.reactions.operations import BY_DRAIN, BY_MIGRATION, ORDER
from rebat.state import codes, tables
from rebat.state.ledger import ATTEMPTS, AttemptRecord, Hold, Ledger, Losses, Why

Ints = npt.NDArray[np.int64]

CAUSES = (
    (Cause.COMPLETED, SUCCESS),
    (Cause.JOB_FAILED, FAILED),
    (Cause.WALLTIME, WALLTIME),
    (Cause.NODE_FAILURE, KILLED),
    (Cause.REJECTED, REJECTED),
    (Cause.STOLEN, KILLED),
    (Cause.REJECTED, REJECTED),
    (Cause.REJECTED, REJECTED),
    (Cause.REJECTED, REJECTED),
    (Cause.REJECTED, REJECTED),
    (Cause.SILENT_ERROR, FAILED),
    (Cause.MOVED, KILLED),
    (Cause.PREEMPTED, KILLED),
)
"""Cause and Batsim's state for each cause of the loop."""

NEVER = codes.REJECTED, codes.NO_WALLTIME, codes.DEPENDENCY, codes.LIMIT, codes.NO_WINDOW
"""Causes of attempts that never run."""

WHY_OFF: tuple[Why, ...] = ("ended", "hit", "given up")
"""Reason why a steal is cancelled, for each of the loop's reasons."""


LOST_TO = {
    None: 0,
    Cause.SILENT_ERROR: 1,
    Cause.NODE_FAILURE: 2,
    Cause.STOLEN: 3,
    Cause.PREEMPTED: 4,
    Cause.MOVED: 5,
}
"""Codes of the reasons why progress was lost later."""

STEPS = {codes.IDLE: "idle", codes.LOCAL: "local", codes.QUEUED_LAST: "requeue"}
"""Reason for the stop of an attempt that lost nodes, by step of node replacement."""

MOVES = {
    codes.BY_DRAIN: BY_DRAIN,
    codes.BY_MIGRATION: BY_MIGRATION,
    codes.MIGRATION_OF_HIT: BY_MIGRATION,
}
"""Reason for the stop of an attempt by an operation, by step."""

DRAINED_FOR = {codes.FOR_SPARE: SPARE, codes.FOR_LEMON: LEMON, codes.FOR_ORDER: ORDER}
"""Reasons of drains."""


class Outcome(msgspec.Struct):
    """The records of a run.

    ``plans`` is the record of plans, or None if the run did not record them. ``dead_us`` is the
    node time of jobs on nodes that were down.
    """

    ledger: Ledger
    jobs: Table[EndedJob]
    plans: PlanRecord | None = None
    dead_us: int = 0


class Source(Protocol):
    """What is known about the jobs of a run in addition to its tables.

    Attributes
    ----------
    ids : Texts
        Ids without the names of workloads.
    order : int64 array, shape (n,)
        Positions of the jobs in ``ids``, in the order of their submission.
    table : array of Job
    workload_of, workloads : int64 array or int, dict
        Codes of the workloads, and the code of each name.
    kinds, kind_of : list of Checkpointing or None, int64 array
        Checkpoints, and the position of those of each job.
    causes : list of str
        Names of the causes of failures.
    recovery : Recovery
        The stages of the recovery of failed jobs.
    machine : LoopMachine
    limits : SiteLimits
    windows : SiteWindows
    orders : Orders, optional
        The operations, if there are any.
    """

    ids: Texts
    order: Ints
    table: Any
    workload_of: Any
    workloads: dict[Any, int]
    kinds: list[Checkpointing | None]
    kind_of: Ints
    causes: list[str]
    recovery: Recovery
    machine: LoopMachine
    limits: SiteLimits
    windows: SiteWindows
    orders: Orders | None

    def job_id(self, j: int) -> str:
        """Return the complete id of a job."""

    def blocking(self, block: int) -> str:
        """Return the id of the job of a row of `Block`, without the name of the workload."""

    def profiles(self, rows: Rows) -> tuple[Ints, dict[Any, int]]:
        """Return the codes of the profiles of attempts, and the code of each name."""

    def states(self, rows: Rows) -> tuple[Ints, dict[Any, int]]:
        """Return the codes of Batsim's states of attempts, and the code of each state."""

    def failures(self, rows: Rows) -> tuple[Ints, Any]:
        """Return the codes of the causes of failures, and how long the attempts hung (us).

        The recovery has no stages, so they hung until their kill was carried out.
        """


def states_of(causes: Ints) -> tuple[Ints, dict[Any, int]]:
    """Return the codes of Batsim's usual states for causes, and the code of each state."""
    states, values = _coded([state for _, state in CAUSES])
    return states[causes], values


def ledger_of(source: Source, rows: Rows, room: tables.Room) -> Ledger:
    """Return the ledger of a run, without the events of nodes.

    Of the refusals, it has those of operations.
    """
    ledger, state = Ledger(attempts=rows.attempts()), room.state
    n, lists = state.n, state.lists
    for row in np.flatnonzero(rows.rejected).tolist():
        j, number = int(rows.job[row]), int(rows.number[row])
        problem = "has no walltime" if rows.cause[row] == codes.NO_WALLTIME else ""
        if rows.cause[row] == codes.DEPENDENCY:
            condition = state.conditions[state.blocks["why_never"][source.table["block"][j] - 1]]
            needed = f"{[*KINDS][condition['kind']]}:{source.blocking(int(condition['block']))}"
            problem = f"its dependency {needed} can never hold"
        if rows.cause[row] == codes.LIMIT:
            problem = source.limits.why_never(
                int(source.table["client"][j]), int(source.table["size"][j])
            )
        if rows.cause[row] == codes.NO_WINDOW:
            wall_us, queued_us = (int(rows.column(name)[row]) for name in ("wall", "queued"))
            problem = source.windows.why_never(source.table[j], wall_us, queued_us)
        if not problem:
            job = source.table[j]
            problem = source.machine.why_rejected(job, int(job["wall"]))
        name = source.job_id(j)
        ledger.rejections.append((resubmission_id(name, number) if number else name, problem))
    interrupted = map(source.job_id, rows.job[rows.cause == codes.NODE_FAILURE].tolist())
    ledger.interrupted = dict(Counter(interrupted))
    ledger.given_up = [source.job_id(j) for j in lists["given_up"][: n.n_given_up].tolist()]
    ledger.failures_that_hit = lists[["hit_at", "free_at_hit"]][: n.n_hits].tolist()
    ledger.steals = lists["steal_at"][: n.n_steals].tolist()
    off = lists[["off_at", "off_why"]][: n.n_steals_off]
    ledger.steals_off = [(at, WHY_OFF[why]) for at, why in off.tolist()]
    for at_us, up, why, first, k in state.drains.tolist():
        nodes = NodeSet(state.nodes[first : first + k].astype(np.int64))
        ledger.drain_events.append((at_us, bool(up), nodes, DRAINED_FOR[why]))
    if source.orders is not None and state.operations is not None:
        note_operations(ledger, source, source.orders, state)
    for j, since_us, until_us, first, k in state.hold_records.tolist():
        held = NodeSet(state.nodes[first : first + k].astype(np.int64))
        until = None if until_us < 0 else until_us
        ledger.holds.append(Hold(source.job_id(j), held, since_us, until))
    return ledger


def note_operations(ledger: Ledger, source: Source, orders: Orders, state: tables.State) -> None:
    """Note the operations that were refused, and the moves that were called off."""
    for note in notes_of(state.operations):
        if note.why == codes.NOT_MOVED:
            job_id, number = state.attempts[["job", "number"]][note.attempt].tolist()
            name = (
                resubmission_id(source.job_id(job_id), number) if number else source.job_id(job_id)
            )
            refusal = obstructed(name, "complete its move", note.detail)
            ledger.refusals.append((note.at, refusal.subject, refusal.reason))
            continue
        texts = orders.note(note, lambda a: source.job_id(int(state.attempts["job"][a])))
        ledger.refusals.append((note.at, *texts))
        ledger.not_done.append(note.at)


def in_order_of_kills(room: tables.Room) -> Ints | None:
    """Return the attempts in the order in which the simulator ends them, or None if it is theirs.

    A kill is recorded when it is acknowledged. The simulator kills when it receives the decision,
    and rejects the jobs of later decisions after that.
    """
    lists, n = room.state.lists, room.state.n.n_records
    records, n_before = lists["record"][:n], lists["n_before"][:n].tolist()
    if not any(n_before):
        return None
    order: list[int] = []
    waiting: list[tuple[int, int]] = []
    n_kills = 0
    for i in range(n):
        while waiting and waiting[0][0] <= n_kills:
            order.append(waiting.pop(0)[1])
        if n_before[i]:
            n_kills = n_kills if waiting else 0
            waiting.append((n_before[i], i))
        else:
            order.append(i)
            n_kills += 1
    sorted_records: Ints = records[[*order, *(i for _, i in waiting)]]
    return sorted_records


class Rows:
    """The attempts of a run in the order of their records, as columns."""

    def __init__(self, source: Source, room: tables.Room, records: Ints | None = None) -> None:
        n = room.state.n
        self._source = source
        self._table, self._rounded = room.state.attempts, n.six_digits
        self._tiers, self._hangs = room.state.tiers, room.state.hangs
        self._operations = room.state.operations
        self.records = room.state.lists["record"][: n.n_records] if records is None else records
        self.job, self.number, self.cause = map(self.column, ("job", "number", "cause"))
        self._queued_us, self.end_us = map(self.column, ("queued", "end"))
        self._walltime_us = self.column("wall")
        self.rejected = np.isin(self.cause, NEVER)
        self.hit, self.moved = self.cause == codes.NODE_FAILURE, self.cause == codes.MOVED
        self.moved_hit = self.moved & (self.column("step") == codes.MIGRATION_OF_HIT)
        self.again = np.flatnonzero(self.number > 0)
        self._place = narrow(source.order[self.job])
        self._nodes = Ragged(
            room.state.nodes[: n.n_nodes_used],
            np.where(self.rejected, 0, self.column("nodes_at")),
            np.where(self.rejected, 0, self.column("n_nodes_at")),
        )
        ids = source.ids.take(self._place[self.again])
        self.names = Texts.of(map(resubmission_id, ids, self.number[self.again].tolist()))
        states, state_values = source.states(self)
        profiles, profile_values = source.profiles(self)
        shared = source.workload_of
        self._shared: dict[str, Any] = {
            "n_nodes": narrow(source.table["size"][self.job]),
            "start_us": self.column("start"),
            "end_us": self.end_us,
            "state": narrow(states),
            "profile": narrow(profiles),
            "workload": shared if isinstance(shared, int) else shared[self.job],
        }
        self._values: dict[str, dict[Any, int]] = {
            "state": state_values,
            "profile": profile_values,
            "workload": source.workloads,
            "failure": {cause: code for code, cause in enumerate(source.causes)},
        }

    def column(self, name: str) -> Ints:
        """Return a column of attempts."""
        return narrow(self._table[name][self.records])

    def _reasons(self) -> tuple[Ints, dict[str, int]]:
        """Return the codes of the reasons for stops, and the reasons."""
        chosen, stolen = np.zeros(len(self.job), dtype=np.int64), self.cause == codes.STOLEN
        thieves = self._source.order[self._table["thief"][self.records[stolen]] - 1]
        reasons = {"": 0}
        names = self._source.ids.take(thieves)
        chosen[stolen] = coded(reasons, (f"for {name}" for name in names))
        preempted = self.cause == codes.PREEMPTED
        heads = self._table[self._table["thief"][self.records[preempted]] - 1]
        chosen[preempted] = coded(
            reasons,
            (
                SECOND_ORDER if priority >= codes.FAILED else f"for {self._source.job_id(j)}"
                for j, priority in heads[["job", "priority"]].tolist()
            ),
        )
        for of_cause, steps in ((self.hit, STEPS), (self.moved, MOVES)):
            for step, reason in steps.items():
                chosen[of_cause & (self.column("step") == step)] = coded(reasons, [reason])[0]
        return chosen, reasons

    @property
    def has_hung(self) -> Any:
        """A mask of the attempts that hung after a failure."""
        if self._hangs is None:
            return np.zeros(len(self.job), dtype=np.bool_)
        return self._hangs.attempts[self.records, tables.SINCE] > 0

    @property
    def ended_as(self) -> Ints:
        """The causes of the ends in the simulator. Attempts that hang can complete there."""
        if self._hangs is None:
            return self.cause
        ended = self._hangs.attempts[self.records, tables.ENDED]
        return np.where(ended > 0, ended - 1, self.cause)

    def _failures(self) -> tuple[Ints, Any]:
        """Return the codes of the causes of failures, and how long the attempts hung (us)."""
        if self._hangs is None:
            return self._source.failures(self)
        hangs = self._hangs.attempts[self.records]
        since_us = np.where(self.has_hung, hangs[:, tables.SINCE] - 1, self.end_us)
        return hangs[:, tables.CAUSE], self.end_us - since_us

    def _stages(self) -> dict[int, dict[str, int]]:
        """Return the durations of the stages (us) of the attempts that hung, by place."""
        if self._hangs is None:
            return {}
        places = np.flatnonzero(self.has_hung)
        numbers = self._hangs.attempts[self.records[places], tables.CAUSE]
        stages = stages_of(self._source.recovery, self._source.causes, numbers)
        return dict(zip(places.tolist(), stages, strict=True))

    def _losses(self, useful_us: Ints) -> tuple[Ints, Ints]:
        """Return the progress of each attempt that was lost later, and the code of the reason.

        Without checkpoints in several tiers, the reason is a silent error in a later attempt.
        """
        if self._tiers is not None:
            return self._losses_by_tier(useful_us)
        interrupted = np.isin(self.cause, codes.AGAIN)
        last = np.full(int(self.job.max(initial=0)) + 1, -1)
        errors = np.flatnonzero(self.cause == codes.SILENT_ERROR)
        last[self.job[errors]] = errors  # the records of a job are in the order of its attempts
        is_lost = interrupted & (np.arange(len(self.job)) < last[self.job])
        lost_us = np.where(is_lost, useful_us, 0)
        return lost_us, (lost_us > 0).astype(np.int64)

    def _losses_by_tier(self, useful_us: Ints) -> tuple[Ints, Ints]:
        """Return the same if jobs have checkpoints in several tiers."""
        source, table = self._source, self._table
        at_risk = self._tiers.at_risk[:, : tables.MOST_TIERS]
        kept_us, tiers = self.column("useful"), self._tiers.at_risk[self.records, tables.TIER]
        begun = np.flatnonzero(at_risk[: len(table)].any(axis=1))
        begins_with = {
            (j, number): tuple(at_risk[a].tolist())
            for a, j, number in zip(
                begun.tolist(), table["job"][begun].tolist(), table["number"][begun].tolist(),
                strict=True,
            )
        }  # fmt: skip
        losses = Losses()
        of_causes = {code: CAUSES[code][0] for code in codes.AGAIN}
        rows = zip(self.job.tolist(), self.number.tolist(), self.cause.tolist(), strict=True)
        for place, (j, number, cause) in enumerate(rows):
            if cause == codes.SILENT_ERROR:
                losses.lose(source.job_id(j), Cause.SILENT_ERROR)
            if cause not in of_causes:
                continue
            tier, after = 0, ()
            if cause == codes.NODE_FAILURE and tiers[place]:
                c, tier = source.kinds[source.kind_of[j]], int(tiers[place])
                assert c and c.light
                n_tiers = len(c.light.tiers)
                after = begins_with.get((j, number + 1), (0,) * tables.MOST_TIERS)[:n_tiers]
            remaining = Remaining(int(kept_us[place]), 0, 0, at_risk=after, tier=tier)
            losses.interrupt(
                place, source.job_id(j), of_causes[cause], int(useful_us[place]), remaining
            )
        lost = np.zeros((2, len(kept_us)), dtype=np.int64)
        for place, (us, why) in losses.lost.items():
            lost[:, place] = us, LOST_TO[why]
        return lost[0], lost[1]

    def attempts(self) -> Table[AttemptRecord]:
        """Return the table of attempts."""
        table, original = self._source.table, np.flatnonzero(self._table["number"] == 0)
        serials = np.zeros(len(table), dtype=np.int64)
        serials[self._table["job"][original]] = original + 1
        failures, hung_us = self._failures()
        useful_us = np.maximum(0, self.column("useful"))
        lost_us, lost_to = self._losses(useful_us)
        reasons, reason_values = self._reasons()
        causes, cause_values = _coded([why for why, _ in CAUSES])
        checkpoints, checkpoint_values = self._checkpoints()
        fields = {
            **self._shared,
            "useful_us": useful_us,
            "hit": (failures > 0) | self.has_hung,
            "submit_us": table["submit"][self.job],
            "queued_us": self._queued_us,
            "serial": self.records + 1,
            "job_serial": serials[self.job],
            "number": self.number,
            "priority": self.column("priority"),
            "priority_class": table["job_class"][self.job],
            "walltime_us": self._walltime_us,
            "cause": causes[self.cause],
            "why": reasons,
            "checkpointing": checkpoints,
            "failure": failures,
            "hung_us": hung_us,
            "lost_us": lost_us,
            "lost_to": lost_to,
            "imaged": self.moved & ~(self.moved_hit & self.knows_failures),
            "image_us": np.maximum(0, self.images - 1),
        }
        values = {
            **self._values,
            "cause": cause_values,
            "why": reason_values,
            "checkpointing": checkpoint_values,
            "lost_to": dict(LOST_TO),
        }
        names = {"name": Chosen(self._source.ids, self._place)}
        rare = {"stages": self._stages()}
        return Table.of_columns(ATTEMPTS, fields, values, names, self._nodes, rare)

    @property
    def knows_failures(self) -> bool:
        """Whether the failures of attempts determine what remains of them."""
        return self._tiers is not None or self._hangs is not None

    @property
    def images(self) -> Ints:
        """The cost to restart from the image with which each attempt began, plus 1, or 0."""
        if self._operations is None:
            return np.zeros(len(self.job), dtype=np.int64)
        images: Ints = np.where(self.rejected, 0, self._operations.image[self.records])
        return images

    def ended(self) -> Table[EndedJob]:
        """Return the table of Batsim's jobs."""
        ids, place = self._source.ids, self._place.astype(np.int64)
        place[self.again] = len(ids) + np.arange(len(self.again))
        submit_us = self._source.table["submit"][self.job]
        fields = {
            **self._shared,
            "submit_us": np.where(self.number > 0, self._queued_us, submit_us),
            "walltime_us": np.where(self._walltime_us >= FOREVER_US, -1, self._walltime_us),
            "registered": self.number > 0,
            "metadata": 0,
        }
        texts = Texts.joined([ids, self.names]) if len(self.again) else ids
        names = {"name": Chosen(texts, narrow(place))}
        values = {**self._values, "metadata": {"": 0}}
        return Table.of_columns(ENDED, fields, values, names, self._nodes)

    def _checkpoints(self) -> tuple[Ints, dict[Checkpointing | None, int]]:
        """Return the codes of the checkpoints of attempts, and the code of each distinct one."""
        source, again = self._source, self.again
        values: dict[Checkpointing | None, int] = {None: 0}
        kinds = [0 if c is None else coded(values, [_resumed(c)])[0] for c in source.kinds]
        chosen = np.array(kinds or [0], dtype=np.int64)[source.kind_of[self.job]]
        chosen[self.rejected] = 0
        wanted = ["first", "recovery"]
        if self._rounded:
            again = np.arange(len(self.job))
            wanted += ["own_period", "own_cost", "own_restart"]
        images = self.images
        again = again[(chosen[again] > 0) | (images[again] > 0)]
        rows = self._table[wanted][self.records[again]].tolist()
        of_jobs = [*values]
        chosen[again] = coded(
            values,
            (
                _resumed(of_jobs[code], max(0, image - 1), *row)
                for code, row, image in zip(
                    chosen[again].tolist(), rows, images[again].tolist(), strict=True
                )
            ),
        )
        return chosen, values


def coded(numbers: dict[Any, int], values: Iterable[Any]) -> list[int]:
    """Return the codes of values. Add those that have no code yet."""
    return [numbers.setdefault(value, len(numbers)) for value in values]


def _coded(values: list[Any]) -> tuple[Ints, dict[Any, int]]:
    """Return the codes of values, and the code of each distinct value."""
    distinct: dict[Any, int] = {}
    return np.array(coded(distinct, values), dtype=np.int64), distinct


def _resumed(
    c: Checkpointing | None,
    image_us: int = 0,
    first_us: int | None = None,
    recovery_us: int | None = None,
    period_us: int | None = None,
    cost_us: int | None = None,
    restart_us: int | None = None,
) -> Checkpointing:
    """Return the checkpoints of a job with other times. None keeps the time of the job.

    If the job writes none, its attempts begin with images.
    """
    c = c or NEVER_WRITTEN
    return Checkpointing(
        c.period_us if period_us is None else period_us,
        c.cost_us if cost_us is None else cost_us,
        c.recovery_us if restart_us is None else restart_us,
        c.pattern.first_period if first_us is None else first_us,
        c.pattern.first_recovery if recovery_us is None else recovery_us,
        c.closing,
        image_us,
        c.light,
    )
