# SPDX-License-Identifier: Apache-2.0
"""The records of a run of the compiled loop, in the tables of the session and the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.attempts import Cause, attempt_profile, resubmission_id
from rebat.core.nodes import NodeSet
from rebat.core.table import Chosen, Ragged, Table, narrow
from rebat.core.texts import Texts
from rebat.core.units import FOREVER_US
from rebat.engine.jobs import ENDED, FAILED, KILLED, REJECTED, SUCCESS, WALLTIME, EndedJob
from rebat.models.checkpoint import Checkpointing
from rebat.policies.context import SizeLimit
from rebat.session.ledger import ATTEMPTS, Hold, Ledger, Why
from rebat.session.plan_record import PlanRecord
from rebat.sim import columns as loop

if TYPE_CHECKING:
    from rebat.sim.simulate import Events, OnProgress, Submissions

Ints = npt.NDArray[np.int64]

CAUSES = (
    (Cause.COMPLETED, SUCCESS),
    (Cause.JOB_FAILED, FAILED),
    (Cause.WALLTIME, WALLTIME),
    (Cause.NODE_FAILURE, KILLED),
    (Cause.REJECTED, REJECTED),
    (Cause.STOLEN, KILLED),
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
    jobs: Submissions, events: Events, room: loop.Room, on_progress: OnProgress | None
) -> Outcome:
    """Return the records of a run of the loop."""
    n, ledger = room.state.n.tolist(), Ledger()
    table = jobs.table
    attempts = room.state.attempts[: n[loop.N_ATTEMPTS]]
    records = room.records[: n[loop.N_RECORDS]]

    def column(place: int) -> Ints:
        return narrow(attempts[records, place])

    job, number, cause = map(column, (loop.JOB, loop.NUMBER, loop.CAUSE))
    queued_us, start_us, end_us = map(column, (loop.QUEUED, loop.START, loop.END))
    serials = np.zeros(len(table), dtype=np.int64)
    originals = np.flatnonzero(attempts[:, loop.NUMBER] == 0)
    serials[attempts[originals, loop.JOB]] = originals + 1
    again = np.flatnonzero(number > 0)
    names = Texts.of(
        resubmission_id(name, attempt)
        for name, attempt in zip(
            jobs.ids.take(jobs.order[job[again]]), number[again].tolist(), strict=True
        )
    )
    profiles, profile_values = jobs.profiles[job].astype(np.int64), [*jobs.profile_names]
    profiles[again] = _extended(
        profile_values,
        (
            attempt_profile(name, profile_values[code])
            for name, code in zip(names, profiles[again].tolist(), strict=True)
        ),
    )
    reasons, stolen = np.zeros(len(job), dtype=np.int64), np.flatnonzero(cause == loop.STOLEN)
    reason_values = [""]
    thieves = jobs.order[attempts[records[stolen], loop.THIEF] - 1].tolist()
    reasons[stolen] = _extended(reason_values, (f"for {jobs.ids[place]}" for place in thieves))
    failed = cause == loop.NODE_FAILURE
    failures = np.where(failed, column(loop.FAILURE), 0)
    rejected = (cause == loop.REJECTED) | (cause == loop.NO_WALLTIME)
    checkpoints, checkpoint_values = _checkpoints(jobs, attempts, records, job, again, rejected)
    causes, cause_values = _coded([why for why, _ in CAUSES])
    states, state_values = _coded([state for _, state in CAUSES])
    walltime_us = column(loop.WALL)
    nodes = Ragged(
        room.state.nodes[: n[loop.N_NODES_USED]].astype(np.int32),
        np.where(rejected, 0, column(loop.NODES_AT)),
        np.where(rejected, 0, column(loop.N_NODES_AT)),
    )
    place = jobs.order[job]
    shared: dict[str, Any] = {
        "n_nodes": narrow(table[job, loop.SIZE]),
        "start_us": start_us,
        "end_us": end_us,
        "state": narrow(states[cause]),
        "profile": narrow(profiles),
        "workload": 0,
    }
    ledger.attempts = Table.of_columns(
        ATTEMPTS,
        {
            **shared,
            "useful_us": column(loop.USEFUL),
            "hit": failures > 0,
            "submit_us": table[job, loop.SUBMIT],
            "queued_us": queued_us,
            "serial": records + 1,
            "job_serial": serials[job],
            "number": number,
            "priority": column(loop.PRIORITY),
            "priority_class": table[job, loop.CLASS],
            "walltime_us": walltime_us,
            "cause": causes[cause],
            "why": reasons,
            "checkpointing": checkpoints,
            "failure": failures,
            **dict.fromkeys(("lost_us", "hung_us", "imaged", "image_us", "lost_to"), 0),
        },
        {
            "state": state_values,
            "profile": profile_values,
            "workload": ["w0"],
            "cause": cause_values,
            "why": reason_values,
            "checkpointing": checkpoint_values,
            "failure": events.causes,
            "lost_to": [None],
        },
        {"name": Chosen(jobs.ids, narrow(place))},
        nodes,
    )
    own = place.copy()
    own[again] = len(jobs.ids) + np.arange(len(again))
    ended = Table.of_columns(
        ENDED,
        {
            **shared,
            "submit_us": queued_us,
            "walltime_us": np.where(walltime_us >= FOREVER_US, -1, walltime_us),
            "registered": number > 0,
            "metadata": 0,
        },
        {
            "state": state_values,
            "profile": profile_values,
            "workload": ["w0"],
            "metadata": [""],
        },
        {"name": Chosen(Texts.joined([jobs.ids, names]) if len(again) else jobs.ids, narrow(own))},
        nodes,
    )
    _note(ledger, jobs, events, room)
    limit = SizeLimit(int(room.state.n[loop.N_NODES]))
    for row in np.flatnonzero(rejected).tolist():
        problem = "has no walltime" if cause[row] == loop.NO_WALLTIME else ""
        problem = problem or limit.exceeded(int(shared["n_nodes"][row])) or ""
        name = f"w0!{jobs.ids[place[row]]}"
        name = resubmission_id(name, int(number[row])) if number[row] else name
        ledger.rejections.append((name, problem))
    for at in place[failed].tolist():
        job_id = f"w0!{jobs.ids[at]}"
        ledger.interrupted[job_id] = ledger.interrupted.get(job_id, 0) + 1
    if on_progress and len(records):
        on_progress(int(end_us[-1]), len(records), len(records))
    return Outcome(ledger, ended)


def _extended(values: list[Any], more: Any) -> list[int]:
    """Append values that are not in a list yet. Return the positions of all of them."""
    codes = {value: code for code, value in enumerate(values)}
    found = [codes.setdefault(value, len(codes)) for value in more]
    values[:] = codes
    return found


def _coded(values: list[Any]) -> tuple[Ints, list[Any]]:
    """Return the codes of values, and the distinct values."""
    distinct: list[Any] = []
    return np.array(_extended(distinct, values), dtype=np.int64), distinct


def _checkpoints(
    jobs: Submissions, attempts: Ints, records: Ints, job: Ints, again: Ints, rejected: Any
) -> tuple[Ints, list[Checkpointing | None]]:
    """Return the codes of the checkpoints of attempts, and the distinct checkpoints."""
    values: list[Checkpointing | None] = [None]
    kinds = [0 if c is None else _extended(values, [_resumed(c)])[0] for c in jobs.kinds]
    codes = np.array(kinds or [0], dtype=np.int64)[jobs.kind_of[jobs.profiles[job]]]
    codes[rejected] = 0
    wanted = [loop.FIRST, loop.RECOVERY]
    if attempts.shape[1] > loop.N_COLUMNS:
        again = np.arange(len(job))
        wanted += [loop.OWN_PERIOD, loop.OWN_COST, loop.OWN_RESTART]
    again = again[codes[again] > 0]
    rows = zip(codes[again].tolist(), attempts[records[again]][:, wanted].tolist(), strict=True)
    kept = [*values]
    codes[again] = _extended(values, (_resumed(kept[code], *row) for code, row in rows))
    return codes, values


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
    return msgspec.structs.replace(
        c,
        first_period_us=c.pattern.first_period if first_us is None else first_us,
        first_recovery_us=c.pattern.first_recovery if recovery_us is None else recovery_us,
        period_us=c.period_us if period_us is None else period_us,
        cost_us=c.cost_us if cost_us is None else cost_us,
        recovery_us=c.recovery_us if restart_us is None else restart_us,
    )


def _note(ledger: Ledger, jobs: Submissions, events: Events, room: loop.Room) -> None:
    """Add the events of jobs and nodes, steals and held nodes to a ledger."""
    n, lists = room.state.n.tolist(), room.state.lists

    def id_of(j: int) -> str:
        return f"w0!{jobs.ids[int(jobs.order[j])]}"

    given_up = lists[loop.GIVEN_UP_JOBS, : n[loop.N_GIVEN_UP]]
    ledger.given_up = [id_of(j) for j in given_up.tolist()]
    ledger.failures_that_hit = [(at, free) for at, free in room.hits[: n[loop.N_HITS]].tolist()]
    ledger.steals = lists[loop.STEALS_AT, : n[loop.N_STEALS]].tolist()
    off = lists[[loop.OFF_AT, loop.OFF_WHY], : n[loop.N_STEALS_OFF]].T
    ledger.steals_off = [(at, WHY_OFF[why]) for at, why in off.tolist()]
    holds = room.state.tables[loop.HOLD_TABLE, : n[loop.N_HOLDS], : loop.N_HOLD_AT + 1]
    for j, since_us, until_us, first, k in holds.tolist():
        held = NodeSet(room.state.nodes[first : first + k].copy())
        ledger.holds.append(Hold(id_of(j), held, since_us, None if until_us < 0 else until_us))
    ledger.node_events = events.happened(None if events.are_file else n[loop.N_LINES])
