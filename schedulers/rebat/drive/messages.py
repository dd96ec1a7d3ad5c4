# SPDX-License-Identifier: Apache-2.0
"""What the drivers for Batsim share: messages become rows of tables, and decisions become replies.

A driver receives the messages of an instant in any number of parts. It does not decide after a
message that only acknowledges decisions, because decisions must not depend on this number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core import decisions as d
from rebat.core import events as e
from rebat.core.attempts import (
    Attempt,
    attempt_profile,
    job_name,
    resubmission_id,
    split_attempt,
    taken_id,
    workload_name,
)
from rebat.core.cores import groups_of
from rebat.core.errors import InputError
from rebat.core.jobs import batsim_number
from rebat.core.node_events import NodeEvents
from rebat.core.nodes import NodeSet
from rebat.core.options import SessionOptions
from rebat.core.traits import Traits
from rebat.core.units import FOREVER_US, MAX_SECONDS, to_s, to_us
from rebat.drive.linking import Linking
from rebat.drive.parts import LoopMachine
from rebat.drive.site_limits import SiteLimits
from rebat.drive.site_windows import SiteWindows
from rebat.policies.shares import Shares
from rebat.rules.instant import change_nodes, submit
from rebat.state import codes, tables
from rebat.state.ledger import Ledger

LEAST_DELAY_S = 1e-6
"""Minimum delay of a profile, because Batsim aborts if a delay is 0."""

INTAKE: dict[type, str] = {
    e.SimulationBegan: "_on_begin",
    e.JobSubmitted: "_on_submit",
    e.JobCompleted: "_on_complete",
    e.JobsKilled: "_on_killed",
    e.NodesFailed: "_on_nodes",
    e.NodesRejuvenated: "_on_nodes",
    e.NoMoreStaticJobs: "_on_no_more_jobs",
    e.Notified: "_on_notice",
    e.SimulationEnded: "_on_end",
}
"""The method that takes in each kind of event."""


class Messages:
    """The state of a simulation, computed from Batsim's messages. ``handle`` answers a message.

    Attributes
    ----------
    now_us : int
        Time of the last message.
    began : SimulationBegan, optional
        The first event of the simulation. None until it arrives.
    ended : bool
        Whether the simulation ended.
    statics_over : bool
        Whether every job of the workload has been submitted.
    registering, reusing : bool
        Whether Batsim accepts new jobs, and whether it keeps composed profiles.
    profiles : dict
        Profiles by workload and name, including those of resubmissions.
    room, state : Room, State
        The tables.
    submitted : list of str
        Ids of jobs, by row.
    names, profile_of : list of str
        Id and name of the profile of each attempt, by row. The id of held nodes is empty.
    row_of : dict
        Rows of attempts by id.
    registered : set of str
        Ids of the attempts that rebat registered in Batsim.
    unknown_runs : dict
        Why the true run times of attempts are unknown, by row, if plans need them.
    sent : dict
        When the kills that are not acknowledged were sent, by row of the attempt.
    lag_us : int, optional
        The longest time between a kill and its acknowledgement.
    """

    room: tables.Room
    state: Any
    machine: LoopMachine
    limits: SiteLimits
    windows: SiteWindows
    shares: Shares
    extended: bool | None = True
    """The argument of the rules which says which of them are needed."""

    def __init__(self, options: SessionOptions) -> None:
        self.options = options
        self.now_us = 0
        self.began: e.SimulationBegan | None = None
        self.ended = self.statics_over = self.registering = self.reusing = False
        self._set_up(0)

    def _set_up(self, n_nodes: int) -> None:
        """Create the tables for a machine."""
        self.n_nodes = n_nodes
        self.profiles: dict[str, dict[str, dict[str, Any]]] = {}
        self.submitted: list[str] = []
        self.names: list[str] = []
        self.profile_of: list[str] = []
        self.row_of: dict[str, int] = {}
        self.registered: set[str] = set()
        self.links, self.users, self.causes = Linking(), {"": 0}, {"": 0}
        self.node_events = NodeEvents()
        self.lag_us: int | None = None
        self._like_resubmissions: dict[str, str] = {}
        self._called: set[int] = set()
        self.sent: dict[int, int] = {}
        self.unknown_runs: dict[int, InputError] = {}

    def show(self, room: tables.Room) -> None:
        """Use these tables from now on."""
        self.room, self.state = room, room.state

    # ---- state

    @property
    def ledger(self) -> Ledger:
        """Records of the simulation. Reading it takes time."""
        raise NotImplementedError

    @property
    def refusals(self) -> Sequence[tuple[int, str, str]]:
        """See `Ledger`."""
        raise NotImplementedError

    @property
    def interrupted(self) -> Mapping[str, int]:
        """See `Ledger`."""
        raise NotImplementedError

    @property
    def queue(self) -> Iterable[str]:
        """Ids of the queued attempts."""
        raise NotImplementedError

    @property
    def n_running(self) -> int:
        """Number of running attempts."""
        return int(self.state.n.n_running)

    @property
    def n_waiting(self) -> int:
        """Number of queued and blocked attempts."""
        return len([*self.queue]) + int(self.state.n.n_blocked)

    @property
    def down(self) -> npt.NDArray[np.bool_]:
        """A mask of the nodes that are down."""
        nodes = self.machine.numbered(np.arange(self.n_nodes))
        mask: npt.NDArray[np.bool_] = self.state.failed[nodes]
        return mask

    def nodes_of(self, attempt_id: str) -> NodeSet | None:
        """Return the nodes of a running attempt, or None if it does not run."""
        a = self.row_of.get(attempt_id, -1)
        row = self.state.attempts[a]
        return self.nodes_at(row) if a >= 0 and row.start >= 0 and row.end < 0 else None

    def validate(self) -> None:
        """Check the invariants that hold after every message."""
        raise NotImplementedError

    # ---- a message

    def handle(self, message: e.Message) -> d.Reply:
        """Process a message, decide, and return the reply."""
        if message.now_us < self.now_us:
            raise InputError(
                f"the message at {to_s(message.now_us)} s follows one at {to_s(self.now_us)} s",
                expected="times in ascending order",
            )
        now = self.now_us = message.now_us
        events, begins = message.events, False
        if self.began is None and events and isinstance(events[0], e.SimulationBegan):
            self._begin(events[0])
            events, begins = events[1:], True
        self._make_room(events)
        relevant = begins
        for event in events:
            if not self._acknowledges(event):
                getattr(self, INTAKE[type(event)])(event)
                relevant = True
        self._take_in()
        if relevant or self._is_due(now):
            if self.statics_over and not self.links.is_checked:
                self.links.check(self.state, self.submitted)
            self._decide(now)
        out = self._decisions(now)
        self._request_calls(now, out)
        self._forget()
        if self.registering and self.statics_over and self._is_idle():
            self.registering = False
            out.append(d.FinishRegistration(at_us=now))
        return d.Reply(now, tuple(out))

    def _begin(self, event: e.SimulationBegan) -> None:
        groups_of(event.n_nodes, self.options.cores_per_node)
        self._set_up(event.n_nodes)
        self.began = msgspec.structs.replace(event, profiles={})  # `profiles` has them
        self.registering = bool(event.config.get("dynamic-jobs-enabled"))
        self.reusing = bool(event.config.get("profile-reuse-enabled"))
        self.profiles = {name: dict(of) for name, of in event.profiles.items()}

    def _acknowledges(self, event: e.Event) -> bool:
        """Return whether an event only acknowledges a decision."""
        if isinstance(event, e.JobSubmitted):
            return event.job_id in self.registered
        return isinstance(event, (e.CallRequested, e.NoMoreExternalEvents))

    def _make_room(self, events: Sequence[e.Event]) -> None:
        """Let the tables grow, so that an instant fits."""
        raise NotImplementedError

    def _take_in(self) -> None:
        """Complete the intake after the last event, because events have no fixed order."""

    def _is_due(self, now: int) -> bool:
        """Return whether there is something to decide without any event."""
        raise NotImplementedError

    def _decide(self, now: int) -> None:
        """Decide on running and queued attempts."""
        raise NotImplementedError

    def _decisions(self, now: int) -> list[d.Decision]:
        """Return the decisions since the last reply."""
        raise NotImplementedError

    def _forget(self) -> None:
        """Delete what is no longer needed after a message."""

    def _is_idle(self) -> bool:
        """Return whether no job is blocked, queued, running or stopped."""
        raise NotImplementedError

    # ---- submissions

    def _new_job(self, event: e.JobSubmitted) -> tuple[Attempt, dict[str, Any]]:
        """Return the first attempt of a submitted job, and its profile, or raise InputError."""
        if event.job_id in self.row_of:
            raise InputError("was already submitted", f"job {event.job_id}")
        workload, name = workload_name(event.job_id), str(event.job.get("profile"))
        of_workload = self.profiles.setdefault(workload, {})
        if event.profile is not None and of_workload.get(name) != event.profile:
            of_workload[name] = event.profile
            self._change_profile(workload, name)
        if self.registering:
            self._check_id(event.job_id)
        return first_attempt(event, self.state.n.n_attempts + 1), of_workload.get(name, {})

    def _change_profile(self, workload: str, name: str) -> None:
        """Note that a profile has another content."""

    def _check_id(self, job_id: str) -> None:
        """Raise InputError if a resubmission of one job could have the id of another job.

        Ids are never reused. If the id of a job has the form of a resubmission, it is stored, so
        that later jobs can be checked.
        """
        base, number = split_attempt(job_id)
        if number:
            self._like_resubmissions[base] = job_id
            if base in self.row_of and not self._is_forgotten(base):
                raise taken_id(job_id, base)
        if job_id in self._like_resubmissions:
            raise taken_id(self._like_resubmissions[job_id], job_id)

    def _is_forgotten(self, job_id: str) -> bool:
        """Return whether a job ended before this message. Its id can have resubmissions then."""
        raise NotImplementedError

    def _add_job(self, event: e.JobSubmitted, job: Attempt, traits: Traits) -> tables.Job:
        """Add the row of a submitted job."""
        row = tables.Job()
        self.state.jobs.append(row)
        row.submit, row.size, row.wall = event.at_us, job.n_nodes, job.walltime_us
        row.job_class = traits.priority_class
        row.user = self.users.setdefault(traits.user, len(self.users))
        self.submitted.append(event.job_id)
        self.add_owner(row, traits)
        return row

    def add_owner(self, row: tables.Job, traits: Traits) -> None:
        """Write to the row of a job which limits, reservations and usage concern it."""
        row.client, row.who = self.limits.client_of(traits), self.windows.who_of(traits)
        room = self.limits.extend(self.room)
        if self.state.n.uses_usage:
            row.share = self.shares.row_of(traits)
            if self.shares.tree is not room.state.tree:  # it has grown
                room = room._replace(state=room.state._replace(tree=self.shares.tree))
        if room is not self.room:
            self.show(room)

    def _submit(self, event: e.JobSubmitted, traits: Traits) -> int:
        """Add the row of the first attempt of the last job. Return the row."""
        j = len(self.submitted) - 1
        self.state.jobs[j].block = self.links.link(
            self.state, event.job_id, traits, self._first_attempt
        )
        a = submit(self.state, j, event.at_us)
        self.name(a, event.job_id, str(event.job.get("profile")))
        return a

    def _first_attempt(self, job_id: str) -> int:
        """Return the row of the first attempt of a job, or -1."""
        a = self.row_of.get(job_id, -1)
        of_job = a >= 0 and self.submitted[self.state.attempts[a].job] == job_id
        return a if of_job else -1

    def name(self, a: int, name: str, profile: str) -> None:
        """Set the id and the profile of an attempt."""
        for texts in (self.names, self.profile_of):
            texts.extend([""] * (a + 1 - len(texts)))
        self.names[a], self.profile_of[a], self.row_of[name] = name, profile, a

    def check_runs(self) -> None:
        """Raise the error of an unknown run time that a plan used. Rejected jobs need none."""
        attempts, jobs = self.state.attempts, self.state.jobs
        planned = [a for a in self.unknown_runs if attempts[a].predicted]
        if planned:
            a = min(planned, key=lambda a: (jobs[attempts[a].job].part, a))
            raise self.unknown_runs[a]

    # ---- kills, nodes and the simulation

    def kill_of(self, a: int) -> int:
        """Return the row of the kill of an attempt that is not acknowledged, or -1."""
        kills = self.state.kills
        return next((i for i in range(self.state.n.n_kills) if kills[i].attempt == a), -1)

    def _on_killed(self, event: e.JobsKilled) -> None:
        for job_id in event.job_ids:
            a = self.row_of.get(job_id, -1)
            if (i := self.kill_of(a)) < 0:
                continue
            lag_us = self.now_us - self.sent.pop(a)
            self.lag_us = lag_us if self.lag_us is None else max(self.lag_us, lag_us)
            # otherwise it completed before its kill
            self._acknowledge(i, job_id in event.progress)
        self._second_pass()

    def _acknowledge(self, i: int, killed: bool) -> None:
        """Remove the row of a kill, and take the step after it if an attempt was killed."""
        raise NotImplementedError

    def _second_pass(self) -> None:
        """If no kill is pending, carry out the second pass."""
        raise NotImplementedError

    def _on_nodes(self, event: e.NodesFailed | e.NodesRejuvenated) -> None:
        up = isinstance(event, e.NodesRejuvenated)
        cause = "" if isinstance(event, e.NodesRejuvenated) else event.cause or ""
        nodes = list(event.nodes)
        if nodes and nodes[-1] >= self.n_nodes:
            raise InputError(
                f"an event has nodes {event.nodes}, but the machine has {self.n_nodes} nodes"
            )
        numbers = self.machine.numbered(event.nodes.ids).tolist()
        for node, number in zip(nodes, numbers, strict=True):
            if bool(self.state.failed[number]) != up:
                raise InputError(f"node {node} is already {'up' if up else 'down'}")
        self.node_events.append((event.at_us, up, event.nodes))
        self._change_nodes(event, numbers, self.causes.setdefault(cause, len(self.causes)))

    def _change_nodes(
        self, event: e.NodesFailed | e.NodesRejuvenated, numbers: list[int], cause: int
    ) -> None:
        """Let nodes fail or come up. ``numbers`` are their numbers in the tables."""
        up = isinstance(event, e.NodesRejuvenated)
        change_nodes(self.state, self.room, self.extended, numbers, up, cause, self.now_us)

    def _on_begin(self, _: e.Event) -> None:
        raise InputError("the simulation has already begun")

    def _on_no_more_jobs(self, _: e.Event) -> None:
        self.statics_over = True

    def _on_end(self, _: e.Event) -> None:
        self.ended = True

    def _on_notice(self, event: e.Notified) -> None:
        """Take in a message of a user to the scheduler."""

    # ---- decisions

    def nodes_at(self, row: Any) -> NodeSet:
        """Return the nodes of a row."""
        nodes = self.state.nodes[row.nodes_at : row.nodes_at + row.n_nodes_at]
        return self.machine.nodes_of(nodes.astype(np.int64))

    def content(self, job_id: str, profile: str) -> dict[str, Any]:
        """Return a profile of an attempt, or raise InputError."""
        content = self.profiles.get(workload_name(job_id), {}).get(profile)
        if content is None:
            raise InputError(f"unknown profile {profile!r}", f"job {job_id}")
        return content

    def is_deleted(self, content: dict[str, Any]) -> bool:
        """Return whether Batsim deletes a profile after its first job."""
        return content.get("type") == "composed" and not self.reusing

    def why_not_again(self, job_id: str, profile: str) -> str:
        """Return why Batsim cannot run remaining work of an attempt, or an empty text if it can."""
        if not self.registering:
            return "Batsim accepts no new jobs"
        if self.is_deleted(self.content(job_id, profile)):
            return f"Batsim has deleted its composed profile {profile}"
        return ""

    def check_again(self, job_id: str, profile: str) -> None:
        """Raise InputError if Batsim cannot run remaining work of an attempt."""
        if reason := self.why_not_again(job_id, profile):
            raise InputError(
                f"must run again, but {reason}",
                f"job {job_id}",
                "Batsim started with --enable-dynamic-jobs --enable-profile-reuse",
            )

    def register(
        self, job_id: str, number: int, size: int, wall: int, like: str, profile: dict[str, Any]
    ) -> tuple[str, list[d.Decision]]:
        """Return the name of the profile of a resubmission, and the decisions that register it.

        Parameters
        ----------
        job_id : str
            Id of the job.
        number, size, wall : int
            Number of the attempt, number of its nodes, and walltime in microseconds.
        like : str
            Name of the profile of the attempt before.
        profile : dict
            The remaining work. If a job starts with a composed profile that a scheduler registered,
            Batsim crashes. Therefore, a resubmission has the same composed profile as before.
        """
        now, workload = self.now_us, workload_name(job_id)
        attempt_id, name, out = resubmission_id(job_id, number), like, []
        if profile.get("type") != "composed":
            name = attempt_profile(job_name(attempt_id), like)
            while name in self.profiles[workload]:
                name += "'"
            self.profiles[workload][name] = profile
            out.append(d.RegisterProfile(at_us=now, workload=workload, name=name, profile=profile))
        fields: dict[str, Any] = {
            "id": attempt_id, "subtime": batsim_number(now), "res": size, "profile": name,
        }  # fmt: skip
        if wall < FOREVER_US:
            fields["walltime"] = batsim_number(wall)
        self.registered.add(attempt_id)
        return name, [*out, d.RegisterJob(at_us=now, job_id=attempt_id, job=fields)]

    def call(self, at_us: int) -> d.CallMeLater:
        """Return the request of a call at a time, or as soon as possible after it.

        Batsim aborts if it receives the request after the requested time.
        """
        margin_us = codes.UNKNOWN_LAG_US if self.lag_us is None else 2 * self.lag_us
        self._called.add(at_us)
        return d.CallMeLater(at_us=self.now_us, when_us=max(at_us, self.now_us + margin_us))

    def _request_calls(self, now: int, out: list[d.Decision]) -> None:
        """Request calls for scheduled stops and wakes. If kills are pending, postpone this."""
        n = self.state.n
        if not n.n_kills:
            times = {self.state.stops[s].at for s in range(n.n_stops)} | {*self._wakes()}
            out += [self.call(at) for at in sorted(times - self._called) if at > now]

    def _wakes(self) -> Iterable[int]:
        """Return the times at which the policy wants to be woken."""
        return ()


def unknown_run(job_id: str, error: InputError) -> InputError:
    """Return the error of a job whose true run time is unknown."""
    return InputError(
        f"its true run time is unknown: {error.problem}",
        f"job {job_id}",
        "a profile that is a delay or composed of delays, or another prediction than "
        "predict=actual",
    )


def first_attempt(event: e.JobSubmitted, serial: int) -> Attempt:
    """Return the first attempt of a job. If the job is invalid, raise InputError."""
    fields, where = event.job, f"job {event.job_id}"
    n_nodes = fields.get("res")
    if not isinstance(n_nodes, int) or isinstance(n_nodes, bool) or n_nodes < 1:
        raise InputError(f"res is {n_nodes!r}", where, "a whole number of at least 1")
    walltime = fields.get("walltime", -1)
    if not isinstance(walltime, int | float) or not (walltime == -1 or walltime > 0):
        raise InputError(f"walltime is {walltime!r}", where, "seconds above 0, or -1")
    endless = walltime == -1 or walltime > MAX_SECONDS
    return Attempt(
        id=event.job_id,
        job_id=event.job_id,
        serial=serial,
        job_serial=serial,
        number=0,
        n_nodes=n_nodes,
        walltime_us=FOREVER_US if endless else to_us(walltime),
        submit_us=event.at_us,
        queued_us=event.at_us,
    )


def remaining_profile(
    profile: dict[str, Any], delay_s: float, first: tuple[float, float],
    pattern: tuple[float, ...] = (),
) -> dict[str, Any]:  # fmt: skip
    """Return the profile of the remaining work of an attempt that writes checkpoints.

    ``first`` contains the first period and the first recovery, ``pattern`` the later periods, the
    cost of a checkpoint and that of a recovery, if they change. Unit: seconds.
    """
    names = "checkpoint_period", "checkpoint_cost", "recovery_cost"
    return {
        **profile,
        "delay": max(LEAST_DELAY_S, delay_s),
        **dict(zip(names, pattern, strict=False)),
        "Tfirst": first[0],
        "Rfirst": first[1],
    }
