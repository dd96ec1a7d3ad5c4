# SPDX-License-Identifier: Apache-2.0
"""The records of a run that contain the history of its jobs: plans, attempts and failures."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rebat.core.arrays import Ints
from rebat.core.attempts import job_name, split_attempt
from rebat.core.errors import InputError
from rebat.core.nodes import NodeSet
from rebat.core.units import FOREVER_US
from rebat.drive.plan_record import PLAN_COLUMNS, PlanChange, PlanRecord
from rebat.results.files.run_folder import (
    ATTEMPTS,
    EVENTS,
    REQUIRED,
    n_nodes_of,
    policy_of,
    read_node_events,
    read_plans,
)
from rebat.results.files.tables import Rows, table_in


class AttemptOutcome(NamedTuple):
    """An attempt of a job. Times are in microseconds.

    ``start_us`` is -1 if the attempt never ran. ``end_us`` is -1 if it was rejected. ``kept_us`` is
    the progress that was kept when the attempt ended. ``lost_us`` is the run time whose work was
    lost, at the end of the attempt or later.
    """

    number: int
    n_nodes: int
    submit_us: int
    queued_us: int
    start_us: int
    end_us: int
    cause: str
    why: str
    kept_us: int
    lost_us: int
    nodes: str


class Change(NamedTuple):
    """A recorded change of an attempt in a plan.

    ``number`` is the number of the attempt, and ``plan`` is the index of the plan. ``kind`` is a
    `PlanChange`. ``value`` depends on the kind, for example the planned start.
    """

    number: int
    plan: int
    kind: int
    value: int


class RunBook:
    """The records of a run, by job.

    Parameters
    ----------
    folder : Path
        Folder of the results of a policy, written by ``rebat run --explain``.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.policy = folder, policy_of(folder)
        self.record: PlanRecord = read_plans(folder)
        self.names = dict(zip(self.record.serials.tolist(), self.record.ids, strict=True))
        self._rows = Rows(table_in(folder, ATTEMPTS), (*REQUIRED, "lost_seconds", "size"))
        self._attempts: dict[str, list[AttemptOutcome]] = {}
        self._job_ids, self._whys = self._rows.names("job_id"), self._rows.names("why")

    # ---- attempts

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        """The rows of each job in the table of attempts."""
        places: dict[str, list[int]] = {}
        for at, job_id in enumerate(self._job_ids):
            places.setdefault(job_id, []).append(at)
        return places

    @property
    def jobs(self) -> list[str]:
        """The ids of all jobs."""
        return list(self._places)

    @cached_property
    def _columns(self) -> dict[str, list[int]]:
        rows = self._rows
        return {
            "number": rows.counts("attempt").tolist(),
            "n_nodes": rows.counts("size").tolist(),
            "submit_us": rows.times("submission_time").tolist(),
            "queued_us": rows.times("queued_time").tolist(),
            "start_us": rows.times("start_time", empty=-1).tolist(),
            "end_us": rows.times("finish_time", empty=-1).tolist(),
            "kept_us": rows.times("kept_seconds").tolist(),
            "lost_us": rows.times("lost_seconds").tolist(),
        }

    def id_of(self, job: str) -> str:
        """Return the id of a job, which may be written with its workload (``w0!37``)."""
        for name in (job, job_name(job)):
            if name in self._places:
                return name
        near = ", ".join(nearest(job, self.jobs))
        raise InputError(f"unknown job {job!r}", str(self.folder), f"a job like {near}")

    def attempts(self, job: str) -> list[AttemptOutcome]:
        """Return the attempts of a job in order."""
        job = self.id_of(job)
        if job not in self._attempts:
            self._attempts[job] = sorted(self._read(job))
        return self._attempts[job]

    def _read(self, job: str) -> Iterator[AttemptOutcome]:
        columns, rows = self._columns, self._rows
        for at in self._places[job]:
            yield AttemptOutcome(
                **{name: column[at] for name, column in columns.items()},
                cause=rows.texts("cause")[at],
                why=self._whys[at],
                nodes=rows.texts("nodes")[at],
            )

    def outcome(self, serial: int) -> tuple[str, AttemptOutcome | None]:
        """Return the name (``17``, ``17#1``) and the outcome of an attempt.

        If the serial number stands for held nodes, return the name of the job they are held for,
        and None.
        """
        name = job_name(self.names[serial])
        job, number = split_attempt(name)
        if job not in self._places:
            return name.partition("~")[0], None
        attempts = {attempt.number: attempt for attempt in self.attempts(job)}
        return name, attempts.get(number)

    # ---- plans

    @cached_property
    def _order(self) -> tuple[Ints, Ints]:
        """Indices that sort the changes by serial number of the attempt, and the sorted numbers."""
        order = np.argsort(self.record.rows[:, 1], kind="stable")
        return order, self.record.rows[order, 1]

    @cached_property
    def _serials(self) -> dict[str, list[int]]:
        """Serial numbers of the attempts of each job."""
        serials: dict[str, list[int]] = {}
        for serial, name in self.names.items():
            serials.setdefault(split_attempt(job_name(name))[0], []).append(serial)
        return serials

    def changes(self, job: str) -> Iterator[Change]:
        """Yield the recorded changes of a job's attempts, in the order of the plans."""
        for serial in self._serials.get(job, []):
            number = split_attempt(job_name(self.names[serial]))[1]
            for plan, _, kind, value in self._changes_of(serial).tolist():
                yield Change(number, plan, kind, value)

    def _changes_of(self, serial: int) -> Ints:
        order, serials = self._order
        first, last = np.searchsorted(serials, [serial, serial + 1])
        return self.record.rows[order[first:last]]

    def planned_us(self, serial: int, plan: int) -> int | None:
        """Return an attempt's planned start (us) in a plan, or None if it has no reservation."""
        rows = self._changes_of(serial)
        rows = rows[(rows[:, 2] == PlanChange.PLANNED) & (rows[:, 0] <= plan)]
        return int(rows[-1, 3]) if len(rows) and rows[-1, 3] < FOREVER_US else None

    def plan(self, index: int) -> dict[str, int]:
        """Return the values of a plan by column."""
        return dict(zip(PLAN_COLUMNS, self.record.plans[index].tolist(), strict=True))

    # ---- nodes

    @cached_property
    def _failures(self) -> dict[int, list[NodeSet]]:
        events = read_node_events(self.folder / EVENTS, n_nodes_of(self.folder))
        failures: dict[int, list[NodeSet]] = {}
        for at_us, up, nodes in events:
            if not up:
                failures.setdefault(at_us, []).append(nodes)
        return failures

    def failed_node(self, attempt: AttemptOutcome) -> int | None:
        """Return the node whose failure ended the attempt, or None if it is unknown."""
        for failed in self._failures.get(attempt.end_us, []):
            own = NodeSet.parse(attempt.nodes)
            for node in failed:
                if node in own:
                    return int(node)
        return None


MOST = 3


def nearest(name: str, names: Sequence[str]) -> list[str]:
    """Return the most similar ids. Compare values if the id is a number, otherwise spellings.

    >>> nearest("20", ["3", "17", "18", "25"])
    ['18', '17', '25']
    """
    numbers = [text for text in names if text.isdecimal()]
    if name.isdecimal() and numbers:
        value = int(name)
        return sorted(numbers, key=lambda text: (abs(int(text) - value), -int(text)))[:MOST]
    return difflib.get_close_matches(name, names, MOST, 0) or list(names[:MOST])
