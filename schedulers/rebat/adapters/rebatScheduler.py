# SPDX-License-Identifier: Apache-2.0
"""rebat as a scheduler of pybatsim. pybatsim 3.2.1 loads it by file, 4.0 by entry point.

Example: ``pybatsim "$(rebat pybatsim-path)" -o '{"policy": "sfsj"}'``. pybatsim derives the class
name from the file name. This determines the spelling of both names.
"""

from __future__ import annotations

from typing import Any

try:
    from batsim.batsim import BatsimScheduler
except ModuleNotFoundError:  # this module has another name in pybatsim 4
    from pybatsim.batsim.batsim import BatsimScheduler

from rebat.core import decisions as d
from rebat.core import events as e
from rebat.core.nodes import NodeSet
from rebat.core.units import to_s, to_us
from rebat.policies.options import parse_options
from rebat.runs.staging import on_machine_of
from rebat.wire.conversation import check_workloads, session_for
from rebat.wire.instants import WholeInstants


class RebatScheduler(BatsimScheduler):  # type: ignore[misc]
    """A scheduler that collects pybatsim's callbacks in a message, and executes the reply.

    The options are those of ``rebat serve --options``. Batsim's ``--sched-cfg`` overrides them.
    """

    def __init__(self, options: dict[str, Any] | None = None) -> None:
        super().__init__(options or {})
        self._events: list[e.Event] = []
        self._session: Any = None
        self._handle: Any = None

    # ---- pybatsim's callbacks, in the order of the message's events

    def onBeforeEvents(self) -> None:
        self._events = []

    def onSimulationBegins(self) -> None:
        config = self.bs.batconf
        options = dict(self.options) | parse_options(
            config.get("sched-config") or "", "Batsim's --sched-cfg"
        )
        began = e.SimulationBegan(
            at_us=0,
            n_nodes=self.bs.nb_compute_resources,
            config=config,
            profiles={name: dict(table) for name, table in self.bs.profiles.items()},
            workloads=self.bs.workloads,
        )
        check_workloads(began)
        policy = str(options.pop("policy", "baseline"))
        self._session = session_for(policy, options, began, adapt=on_machine_of(began))
        self._handle = WholeInstants(self._session.handle)
        self._events.append(began)

    def onJobSubmission(self, job: Any) -> None:
        self._add(e.JobSubmitted, job_id=job.id, job=job.json_dict, profile=job.profile_dict)

    def onJobCompletion(self, job: Any) -> None:
        # if Batsim acknowledges the registration of a job late, pybatsim loses its allocation
        self._add(
            e.JobCompleted,
            job_id=job.id,
            state=job.job_state.name,
            return_code=job.return_code or 0,
            nodes=self._session.nodes_of(job.id) or NodeSet.of(()),
        )

    def onJobsKilled(self, jobs: list[Any]) -> None:
        ids = tuple(job.id for job in jobs)
        self._add(e.JobsKilled, job_ids=ids, progress={job.id: job.progress for job in jobs})

    def onRequestedCall(self) -> None:
        self._add(e.CallRequested)

    def onNotifyEventMachineUnavailable(self, machines: Any) -> None:
        self._add(e.NodesFailed, nodes=NodeSet.from_procset(machines))

    def onNotifyEventMachineAvailable(self, machines: Any) -> None:
        self._add(e.NodesRejuvenated, nodes=NodeSet.from_procset(machines))

    def onNotifyGenericEvent(self, event_data: Any) -> None:
        self._add(e.Notified, kind="generic", data=dict(event_data))

    def onNoMoreJobsInWorkloads(self) -> None:
        self._add(e.NoMoreStaticJobs)

    def onNoMoreExternalEvents(self) -> None:
        self._add(e.NoMoreExternalEvents)

    def onSimulationEnds(self) -> None:
        self._add(e.SimulationEnded)

    def onNoMoreEvents(self) -> None:
        """Make decisions, because the message is now complete."""
        now_us = to_us(self.bs.time())
        reply = self._handle(e.Message(now_us, tuple(self._events)))
        for decision in reply.decisions:
            self._play[type(decision)](self, decision)

    def _add(self, event: Any, **fields: Any) -> None:
        self._events.append(event(at_us=to_us(self.bs.time()), **fields))

    # ---- decisions, by pybatsim's functions

    def _execute(self, decision: d.ExecuteJob) -> None:
        job = self.bs.jobs[decision.job_id]
        job.allocation = decision.nodes.procset
        self.bs.execute_job(job)

    def _reject(self, decision: d.RejectJob) -> None:
        self.bs.reject_jobs_by_id([decision.job_id])

    def _kill(self, decision: d.KillJobs) -> None:
        self.bs.kill_jobs([self.bs.jobs[job_id] for job_id in decision.job_ids])

    def _register_profile(self, decision: d.RegisterProfile) -> None:
        self.bs.register_profiles(decision.workload, {decision.name: decision.profile})

    def _register_job(self, decision: d.RegisterJob) -> None:
        fields = decision.job
        self.bs.register_job(
            decision.job_id,
            fields["res"],
            fields.get("walltime", -1),
            fields["profile"],
            fields["subtime"],
        )

    def _call(self, decision: d.CallMeLater) -> None:
        self.bs.wake_me_up_at(to_s(decision.when_us))

    def _finish(self, _: d.FinishRegistration) -> None:
        self.bs.notify_registration_finished()

    def _metadata(self, decision: d.SetMetadata) -> None:
        self.bs.set_job_metadata(decision.job_id, decision.metadata)

    _play: Any = {  # noqa: RUF012
        d.ExecuteJob: _execute,
        d.RejectJob: _reject,
        d.KillJobs: _kill,
        d.RegisterProfile: _register_profile,
        d.RegisterJob: _register_job,
        d.CallMeLater: _call,
        d.FinishRegistration: _finish,
        d.SetMetadata: _metadata,
    }
