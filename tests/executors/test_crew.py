# SPDX-License-Identifier: Apache-2.0
"""The jobs of a campaign: as many as requested; a job is replaced only after its certain end."""

from __future__ import annotations

import asyncio
import itertools
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.core.errors import InputError, RebatError
from rebat.executors import cluster as crews
from rebat.executors.cluster import STILLBORN, SYSTEMS, Crew
from rebat.executors.resources import Resources


class Job:
    """A job with the interface of dask-jobqueue."""

    def __init__(self, number: str, refusal: str = "") -> None:
        self.number, self.refusal = number, refusal
        self.job_id: str | None = None
        self.cancelled, self.lock = False, asyncio.Lock()

    def __await__(self) -> Any:
        return self._start().__await__()

    async def _start(self) -> None:
        if self.refusal:
            raise RuntimeError(f"Command exited\nstderr:\n{self.refusal}\n\n")
        self.job_id = self.number

    async def close(self) -> None:
        self.cancelled = True


class World:
    """A batch system and a Dask scheduler whose state a test sets."""

    def __init__(self) -> None:
        self.queue: dict[str, str] | None = {}
        self.refusal = ""
        self.submitted: list[Job] = []
        self.notes: list[tuple[int, str]] = []
        self.numbers = map(str, itertools.count(100))

    def crew(self, n_jobs: int, per_job: int = 1) -> Crew:
        def new_job(name: str) -> Job:
            self.submitted.append(Job(next(self.numbers), self.refusal))
            return self.submitted[-1]

        cluster = SimpleNamespace(
            sync=lambda function: asyncio.run(function()),
            scheduler=SimpleNamespace(workers={}),
            scheduler_address="tls://10.0.0.1:1",
        )
        resources = Resources(on_crew=lambda *told: self.notes.append(told))
        made = Crew(cluster, new_job, SYSTEMS["slurm"], per_job, resources)
        made.begin(n_jobs)
        return made

    def look(self, crew: Crew, *workers: str) -> None:
        """Let the crew look once, with these workers and the current queue."""
        crew.cluster.scheduler.workers = {name: SimpleNamespace(name=name) for name in workers}
        crew.next_look = 0.0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(crews, "queued", lambda system: self.queue)
            crew.watch()

    def lists(self, *jobs: Job, state: str = "RUNNING") -> None:
        self.queue = {str(job.job_id): state for job in jobs}


def test_pending_jobs_are_told_until_their_workers_report() -> None:
    world = World()
    crew = world.crew(2)
    world.lists(*world.submitted, state="PENDING")
    world.look(crew)
    world.look(crew, "rebat0", "rebat1")
    waiting = "waiting for jobs of slurm: {}; Dask listens at tls://10.0.0.1:1"
    assert world.notes == [
        (0, waiting.format("2 submitted")), (0, waiting.format("2 pending")), (2, ""),
    ]  # fmt: skip


def test_a_job_missing_once_is_not_replaced_one_missing_twice_is() -> None:
    world = World()
    crew = world.crew(2)
    first, second = world.submitted
    world.lists(first)
    world.look(crew)
    world.lists(first, second)
    world.look(crew)
    world.lists(first)
    world.look(crew)
    assert len(world.submitted) == 2
    world.look(crew)
    assert len(world.submitted) == 3
    assert {job.job_id for job in crew.jobs.values()} == {"100", "102"}


def test_a_queue_that_does_not_answer_says_nothing_of_jobs() -> None:
    world = World()
    crew = world.crew(1)
    world.queue = None
    for _ in range(5):
        world.look(crew)
    assert len(world.submitted) == 1
    assert "squeue does not answer" in world.notes[-1][1]


def test_jobs_that_did_their_part_are_replaced_for_ever() -> None:
    """Jobs that reach their walltime do not count as errors."""
    world = World()
    crew = world.crew(1)
    for number in range(4 * STILLBORN):
        world.queue = {}
        crew.reported |= crew.jobs.keys()
        world.look(crew)
        world.look(crew)
        assert len(world.submitted) == number + 2


def test_a_refusal_on_the_way_is_no_end_while_others_work() -> None:
    world = World()
    crew = world.crew(2)
    first, _ = world.submitted
    world.lists(first)
    world.refusal = "sbatch: error: try later"
    world.look(crew, "rebat0")
    world.look(crew, "rebat0")
    assert "try later" in world.notes[-1][1]
    world.refusal = ""
    world.look(crew, "rebat0")
    assert len(crew.jobs) == 2
    world.refusal, world.queue = "sbatch: error: no more", {}
    world.look(crew)
    with pytest.raises(RebatError, match=r"^executor slurm: sbatch: error: no more$"):
        world.look(crew)


def test_a_refusal_at_the_start_is_told() -> None:
    world = World()
    world.refusal = "sbatch: error: invalid account"
    with pytest.raises(InputError, match=r"^executor slurm: sbatch: error: invalid account$"):
        world.crew(3)


@given(
    n_jobs=st.integers(1, 4),
    looks=st.lists(
        st.tuples(st.none() | st.sets(st.integers(0, 12)), st.sets(st.integers(0, 12))),
        max_size=15,
    ),
)
def test_whatever_happens_no_more_jobs_are_held_than_asked_for_and_all_are_cancelled(
    n_jobs: int, looks: list[tuple[set[int] | None, set[int]]]
) -> None:
    """A job is given up only if it is missing in two consecutive answers."""
    world = World()
    crew = world.crew(n_jobs)
    answers: list[dict[str, str]] = []
    for listed, there in looks:
        world.queue = None if listed is None else {str(100 + n): "RUNNING" for n in listed}
        held = {job.job_id for job in crew.jobs.values()}
        try:
            world.look(crew, *(f"rebat{n}" for n in there))
        except RebatError:
            assert not crew.jobs
            break
        answers += [world.queue] if world.queue is not None else []
        given_up = held - {job.job_id for job in crew.jobs.values()}
        assert all(job not in answer for answer in answers[-2:] for job in given_up)
        assert len(crew.jobs) <= n_jobs
    crew.end()
    assert all(job.cancelled for job in crew.jobs.values())
