# SPDX-License-Identifier: Apache-2.0
"""The records of a run of the compiled loop, in the tables of the session and the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.attempts import Cause, attempt_profile, resubmission_id
from rebat.core.dependencies import KINDS
from rebat.core.nodes import NodeSet
from rebat.core.table import Chosen, Ragged, Table, Texts, narrow
from rebat.core.units import FOREVER_US
from rebat.engine.jobs import ENDED, FAILED, KILLED, REJECTED, SUCCESS, WALLTIME, EndedJob
from rebat.models.checkpoint import Checkpointing
from rebat.session.ledger import ATTEMPTS, AttemptRecord, Hold, Ledger, Why
from rebat.session.plan_record import PlanRecord
from rebat.state import codes, tables

if TYPE_CHECKING:
    from rebat.drive.parts import LoopMachine
    from rebat.drive.simulate import Events, OnProgress, Submissions

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
)
"""Cause and Batsim's state for each cause of the loop."""

WHY_OFF: tuple[Why, ...] = ("ended", "hit", "given up")
"""Reason why a steal is cancelled, for each of the loop's reasons."""


class Outcome(msgspec.Struct):
    """The records of a run.

    ``plans`` is the record of plans, or None if the run did not record them. ``dead_us`` is the
    node time of jobs on nodes that were down.
    """

    ledger: Ledger
    jobs: Table[EndedJob]
    plans: PlanRecord | None = None
    dead_us: int = 0


def outcome_of(
    jobs: Submissions,
    events: Events,
    machine: LoopMachine,
    places: Ints | None,
    room: tables.Room,
    on_progress: OnProgress | None,
) -> Outcome:
    """Return the records of a run of the loop."""
    rows = _Rows(jobs, events, room)
    ledger = Ledger(attempts=rows.attempts())
    _note_events(ledger, jobs, events, room)
    place = jobs.order[rows.job]
    for row in np.flatnonzero(rows.rejected).tolist():
        problem = "has no walltime" if rows.cause[row] == codes.NO_WALLTIME else ""
        if rows.cause[row] == codes.DEPENDENCY:
            block = jobs.table["block"][rows.job[row]] - 1
            condition = room.state.conditions[room.state.blocks["why_never"][block]]
            other = int(jobs.order[condition["block"]])
            needed = f"{[*KINDS][condition['kind']]}:{jobs.ids[other]}"
            problem = f"its dependency {needed} can never hold"
        if not problem:
            j = int(rows.job[row])
            partition = None if places is None else machine.partitions[places[j]]
            size, wall_us = int(jobs.table["size"][j]), int(jobs.table["wall"][j])
            problem = machine.why_rejected(partition, size, wall_us)
        name, number = f"w0!{jobs.ids[place[row]]}", int(rows.number[row])
        ledger.rejections.append((resubmission_id(name, number) if number else name, problem))
    interrupted = jobs.ids.take(place[rows.cause == codes.NODE_FAILURE])
    ledger.interrupted = dict(Counter(f"w0!{name}" for name in interrupted))
    if on_progress and len(rows.records):
        on_progress(int(rows.end_us[-1]), len(rows.records), len(rows.records))
    return Outcome(ledger, rows.ended())


class _Rows:
    """The attempts of a run in the order of their records, as columns."""

    def __init__(self, jobs: Submissions, events: Events, room: tables.Room) -> None:
        n = room.state.n
        self._jobs = jobs
        self._table, self._rounded = room.state.attempts, n.six_digits
        self.records = room.state.lists["record"][: n.n_records]
        self.job, self.number, self.cause = map(self._column, ("job", "number", "cause"))
        self._queued_us, self.end_us = map(self._column, ("queued", "end"))
        self._walltime_us = self._column("wall")
        never = (codes.REJECTED, codes.NO_WALLTIME, codes.DEPENDENCY)
        self.rejected = np.isin(self.cause, never)
        self._again = np.flatnonzero(self.number > 0)
        self._place = narrow(jobs.order[self.job])
        self._nodes = Ragged(
            room.state.nodes[: n.n_nodes_used],
            np.where(self.rejected, 0, self._column("nodes_at")),
            np.where(self.rejected, 0, self._column("n_nodes_at")),
        )
        states, state_values = _coded([state for _, state in CAUSES])
        self._names, profiles, profile_values = self._resubmissions()
        self._shared: dict[str, Any] = {
            "n_nodes": narrow(jobs.table["size"][self.job]),
            "start_us": self._column("start"),
            "end_us": self.end_us,
            "state": narrow(states[self.cause]),
            "profile": narrow(profiles),
            "workload": 0,
        }
        self._values: dict[str, dict[Any, int]] = {
            "state": state_values,
            "profile": profile_values,
            "workload": {"w0": 0},
            "failure": {cause: code for code, cause in enumerate(events.causes)},
        }

    def _column(self, name: str) -> Ints:
        return narrow(self._table[name][self.records])

    def _resubmissions(self) -> tuple[Texts, Ints, dict[str, int]]:
        """Return the names of resubmissions, and the profiles of all attempts with their names."""
        jobs, again = self._jobs, self._again
        ids, numbers = jobs.ids.take(self._place[again]), self.number[again].tolist()
        names = Texts.of(map(resubmission_id, ids, numbers))
        profiles = jobs.profiles[self.job].astype(np.int64)
        values = {name: code for code, name in enumerate(jobs.profile_names)}
        of_jobs = [jobs.profile_names[code] for code in profiles[again].tolist()]
        profiles[again] = _extended(values, map(attempt_profile, names, of_jobs))
        return names, profiles, values

    def _reasons(self) -> tuple[Ints, dict[str, int]]:
        """Return the codes of the reasons for stops, and the reasons."""
        chosen, stolen = np.zeros(len(self.job), dtype=np.int64), self.cause == codes.STOLEN
        thieves = self._jobs.order[self._table["thief"][self.records[stolen]] - 1]
        reasons = {"": 0}
        names = self._jobs.ids.take(thieves)
        chosen[stolen] = _extended(reasons, (f"for {name}" for name in names))
        return chosen, reasons

    def attempts(self) -> Table[AttemptRecord]:
        """Return the table of attempts."""
        table, original = self._jobs.table, np.flatnonzero(self._table["number"] == 0)
        serials = np.zeros(len(table), dtype=np.int64)
        serials[self._table["job"][original]] = original + 1
        failures = np.where(self.cause == codes.NODE_FAILURE, self._column("failure"), 0)
        reasons, reason_values = self._reasons()
        causes, cause_values = _coded([why for why, _ in CAUSES])
        checkpoints, checkpoint_values = _checkpoints(
            self._jobs, self._table, self.records, self.job, self._again, self.rejected,
            self._rounded,
        )  # fmt: skip
        fields = {
            **self._shared,
            "useful_us": self._column("useful"),
            "hit": failures > 0,
            "submit_us": table["submit"][self.job],
            "queued_us": self._queued_us,
            "serial": self.records + 1,
            "job_serial": serials[self.job],
            "number": self.number,
            "priority": self._column("priority"),
            "priority_class": table["job_class"][self.job],
            "walltime_us": self._walltime_us,
            "cause": causes[self.cause],
            "why": reasons,
            "checkpointing": checkpoints,
            "failure": failures,
            **dict.fromkeys(("lost_us", "hung_us", "imaged", "image_us", "lost_to"), 0),
        }
        values = {
            **self._values,
            "cause": cause_values,
            "why": reason_values,
            "checkpointing": checkpoint_values,
            "lost_to": {None: 0},
        }
        names = {"name": Chosen(self._jobs.ids, self._place)}
        return Table.of_columns(ATTEMPTS, fields, values, names, self._nodes)

    def ended(self) -> Table[EndedJob]:
        """Return the table of Batsim's jobs."""
        ids, place = self._jobs.ids, self._place.astype(np.int64)
        place[self._again] = len(ids) + np.arange(len(self._again))
        fields = {
            **self._shared,
            "submit_us": np.where(
                self.number > 0, self._queued_us, self._jobs.table["submit"][self.job]
            ),
            "walltime_us": np.where(self._walltime_us >= FOREVER_US, -1, self._walltime_us),
            "registered": self.number > 0,
            "metadata": 0,
        }
        texts = Texts.joined([ids, self._names]) if len(self._again) else ids
        names = {"name": Chosen(texts, narrow(place))}
        values = {**self._values, "metadata": {"": 0}}
        return Table.of_columns(ENDED, fields, values, names, self._nodes)


def _extended(numbers: dict[Any, int], values: Iterable[Any]) -> list[int]:
    """Return the codes of values. Add those that have no code yet."""
    return [numbers.setdefault(value, len(numbers)) for value in values]


def _coded(values: list[Any]) -> tuple[Ints, dict[Any, int]]:
    """Return the codes of values, and the code of each distinct value."""
    distinct: dict[Any, int] = {}
    return np.array(_extended(distinct, values), dtype=np.int64), distinct


def _checkpoints(
    jobs: Submissions,
    attempts: Any,
    records: Ints,
    job: Ints,
    again: Ints,
    rejected: Any,
    rounded: int,
) -> tuple[Ints, dict[Checkpointing | None, int]]:
    """Return the codes of the checkpoints of attempts, and the code of each distinct one."""
    values: dict[Checkpointing | None, int] = {None: 0}
    kinds = [0 if c is None else _extended(values, [_resumed(c)])[0] for c in jobs.kinds]
    chosen = np.array(kinds or [0], dtype=np.int64)[jobs.kind_of[jobs.profiles[job]]]
    chosen[rejected] = 0
    wanted = ["first", "recovery"]
    if rounded:
        again = np.arange(len(job))
        wanted += ["own_period", "own_cost", "own_restart"]
    again = again[chosen[again] > 0]
    rows = zip(chosen[again].tolist(), attempts[wanted][records[again]].tolist(), strict=True)
    of_jobs = [*values]
    chosen[again] = _extended(values, (_resumed(of_jobs[code], *row) for code, row in rows))
    return chosen, values


def _resumed(
    c: Checkpointing | None,
    first_us: int | None = None,
    recovery_us: int | None = None,
    period_us: int | None = None,
    cost_us: int | None = None,
    restart_us: int | None = None,
) -> Checkpointing:
    """Return the checkpoints of a job with other times. None keeps the time of the job."""
    assert c is not None
    return Checkpointing(
        c.period_us if period_us is None else period_us,
        c.cost_us if cost_us is None else cost_us,
        c.recovery_us if restart_us is None else restart_us,
        c.pattern.first_period if first_us is None else first_us,
        c.pattern.first_recovery if recovery_us is None else recovery_us,
        c.closing,
        c.image_us,
        c.light,
    )


def _note_events(ledger: Ledger, jobs: Submissions, events: Events, room: tables.Room) -> None:
    """Add the events of jobs and nodes, steals and held nodes to a ledger."""
    n, lists = room.state.n, room.state.lists

    def id_of(j: int) -> str:
        return f"w0!{jobs.ids[int(jobs.order[j])]}"

    ledger.given_up = [id_of(j) for j in lists["given_up"][: n.n_given_up].tolist()]
    ledger.failures_that_hit = lists[["hit_at", "free_at_hit"]][: n.n_hits].tolist()
    ledger.steals = lists["steal_at"][: n.n_steals].tolist()
    off = lists[["off_at", "off_why"]][: n.n_steals_off]
    ledger.steals_off = [(at, WHY_OFF[why]) for at, why in off.tolist()]
    holds = room.state.hold_records
    for j, since_us, until_us, first, k in holds.tolist():
        held = NodeSet(room.state.nodes[first : first + k].astype(np.int64))
        ledger.holds.append(Hold(id_of(j), held, since_us, None if until_us < 0 else until_us))
    ledger.node_events = events.happened(None if events.are_file else n.n_lines)
