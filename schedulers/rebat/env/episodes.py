# SPDX-License-Identifier: Apache-2.0
"""Episodes: a window of a workload, a failure seed, and a simulation that pauses at decisions.

The simulation runs in a greenlet. When the policy calls its agent, the greenlet returns the
observation to the environment, and pauses until the environment passes the action of the next step.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from greenlet import GreenletExit, getcurrent, greenlet

from rebat.api.workloads import load_workload
from rebat.core.dependencies import within
from rebat.core.errors import InputError
from rebat.core.job_table import Jobs
from rebat.core.jobs import Job, Workload
from rebat.core.options import SessionOptions
from rebat.core.units import to_us
from rebat.drive.ask import Session
from rebat.engine.engine import Engine
from rebat.env.decisions import agent_scheduler, base_of, check_candidates
from rebat.env.observation import ActionMask, Observation
from rebat.env.rewards import Meter, Totals
from rebat.policies.point import Point
from rebat.runs.scenario import Scenario, ScenarioOptions
from rebat.runs.staging import has_checkpoints, prepared, staged

WorkloadLike = Workload | str | Path

Question = tuple[Observation, ActionMask]


class Draw(msgspec.Struct, frozen=True):
    """The random choices that identify an episode.

    Attributes
    ----------
    workload : int
        Index of the workload.
    first : int
        Index of the first job of the window, in order of submission. The window begins when this
        job is submitted.
    seed : int
        Seed of the failures.
    """

    workload: int
    first: int
    seed: int


class Episodes:
    """The episodes of a scenario. Workloads are read and prepared only once.

    Parameters
    ----------
    workloads : sequence
        Workloads, or arguments of `load_workload`.
    options : ScenarioOptions
        Failures, checkpoints and the machine.
    window_s : float or None
        Length of a window in seconds. If None, the window is the entire workload.
    own_checkpoints : bool
        Whether jobs of a workload that has checkpoints keep these checkpoints.
    """

    def __init__(
        self,
        workloads: Sequence[WorkloadLike],
        options: ScenarioOptions,
        window_s: float | None,
        own_checkpoints: bool = False,
    ) -> None:
        if not workloads:
            raise InputError("is empty", "workload", "at least one workload")
        self._scenario = options.scenario()
        self._window_us = None if window_s is None else to_us(window_s)
        if self._window_us is not None and self._window_us < 1:
            raise InputError(f"is {window_s:g} s", "window", "at least 0.000001 s")
        loaded = [w if isinstance(w, Workload) else load_workload(w) for w in workloads]
        for empty in (w for w in loaded if not w.jobs):
            raise InputError(f"{empty.name} has no jobs", "workload", "at least one job")
        self._workloads = [_sorted(self._prepared(w, own_checkpoints)) for w in loaded]
        self._submits = [Jobs.of(w.jobs).submit_us.tolist() for w in self._workloads]
        self._n_first = [self._count(submits) for submits in self._submits]

    def _prepared(self, workload: Workload, own_checkpoints: bool) -> Workload:
        scenario = self._scenario
        if own_checkpoints and has_checkpoints(workload):
            scenario = msgspec.structs.replace(scenario, checkpoint=None)
        return prepared(workload, scenario)

    def _count(self, submits: list[int]) -> int:
        """Return the number of jobs at whose submission a complete window can begin."""
        if self._window_us is None or not submits:
            return 1
        return max(1, bisect_left(submits, submits[-1] - self._window_us))

    def draw(self, rng: np.random.Generator) -> Draw:
        """Return a random workload, window and seed."""
        workload = int(rng.integers(len(self._workloads)))
        first = int(rng.integers(self._n_first[workload]))
        return Draw(workload, first, int(rng.integers(2**31)))

    def chosen(self, options: dict[str, Any]) -> Draw:
        """Return the episode that a reset's options select. If none exists, raise InputError."""
        try:
            draw = msgspec.convert(options, Draw)
        except msgspec.ValidationError as error:
            raise InputError(str(error), "options", "workload, first, seed") from None
        fits = 0 <= draw.workload < len(self._workloads) and draw.seed >= 0
        if not (fits and 0 <= draw.first < self._n_first[draw.workload]):
            numbers = f"workload {draw.workload}, first {draw.first} and seed {draw.seed}"
            problem = f"there is no episode with {numbers}"
            raise InputError(problem, "options", "an episode of info['draw']")
        return draw

    def stage(self, draw: Draw) -> tuple[Workload, Scenario]:
        """Return the jobs and the scenario of an episode. Shift times so that it begins at 0."""
        workload, submits = self._workloads[draw.workload], self._submits[draw.workload]
        failures = self._scenario.failures
        scenario = msgspec.structs.replace(
            self._scenario,
            failures=failures and msgspec.structs.replace(failures, seed=draw.seed),
        )
        if self._window_us is None or not submits:
            return workload, scenario
        begin_us = submits[draw.first]
        last = bisect_left(submits, begin_us + self._window_us)
        chosen = workload.jobs[draw.first : last]
        ids = {job.id for job in chosen}
        jobs = [_earlier(within(job, ids), begin_us) for job in chosen]
        return msgspec.structs.replace(workload, jobs=jobs), scenario


def _sorted(workload: Workload) -> Workload:
    """Sort the jobs of a workload by submission, and store them as columns for the engine."""
    jobs = sorted(workload.jobs, key=lambda job: job.submit_us)
    return msgspec.structs.replace(workload, jobs=Jobs.of(jobs))


def _earlier(job: Job, by_us: int) -> Job:
    return msgspec.structs.replace(job, submit_us=job.submit_us - by_us)


class EpisodeSetting(msgspec.Struct, frozen=True):
    """The settings that all episodes of an environment share."""

    decision: str
    point: Point
    n_candidates: int
    validate: bool

    @staticmethod
    def of(decision: str, base: str, n_candidates: int, validate: bool) -> EpisodeSetting:
        """Return the settings."""
        check_candidates(n_candidates)
        return EpisodeSetting(decision, base_of(decision, base), n_candidates, validate)


class Episode:
    """A simulation that pauses at each decision.

    Parameters
    ----------
    workload : Workload
    scenario : Scenario
    setting : EpisodeSetting
    """

    def __init__(self, workload: Workload, scenario: Scenario, setting: EpisodeSetting) -> None:
        stage = staged(workload, scenario)
        self.n_jobs = len(workload.jobs)
        self._engine = Engine(stage.workload, n_nodes=stage.n_nodes, events=stage.events)
        policy = agent_scheduler(setting.point, setting.decision, self._ask, setting.n_candidates)
        options: SessionOptions = msgspec.structs.replace(
            setting.point.session,
            cores_per_node=scenario.cores_per_node,
            max_attempts=scenario.max_attempts,
        )
        uptime_us = stage.history.uptime_us if stage.history else None
        self.session = Session(policy, options, uptime_us)
        self._meter = Meter(self.session, stage.n_nodes, setting.validate)
        self._greenlet = greenlet(self._run)

    def _run(self) -> None:
        self._engine.run(self._meter.handle)

    def _ask(self, observation: Observation, mask: ActionMask) -> int:
        """Pause, and return the action with which the simulation continues."""
        action: int = getcurrent().parent.switch((observation, mask))
        return action

    def start(self) -> Question | None:
        """Simulate until the first decision. If the episode ends before it, return None."""
        return self._continue()

    def answer(self, action: int) -> Question | None:
        """Simulate until the next decision. At the end of the episode, return None."""
        return self._continue(action)

    def _continue(self, *action: int) -> Question | None:
        self._greenlet.parent = getcurrent()
        question: Question | None = self._greenlet.switch(*action)
        return question

    @property
    def totals(self) -> Totals:
        """The totals from the start of the episode until now."""
        return self._meter.settle() if self._greenlet.dead else self._meter.read()

    @property
    def now_us(self) -> int:
        """The simulated time."""
        return self.session.now_us

    def close(self) -> None:
        """Stop the simulation."""
        if self._greenlet and not self._greenlet.dead:
            self._greenlet.parent = getcurrent()
            self._greenlet.throw(GreenletExit)
