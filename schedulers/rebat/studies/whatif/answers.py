# SPDX-License-Identifier: Apache-2.0
"""Answers that improve while the user looks at them.

Threads simulate a question with one seed after another, and the cells of a map from coarse to fine.
A new question cancels what is running. All runs are those of ``rebat run --seeds`` and have equal
results.
"""

from __future__ import annotations

import itertools
import os
import time
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from threading import Condition, Thread
from typing import Any

import msgspec
import numpy as np

from rebat.core.errors import RebatError, one_line
from rebat.core.units import to_s
from rebat.results.comparison import Runs, Winner, winner
from rebat.results.intervals import FEWEST
from rebat.results.measures.summary import as_json
from rebat.results.measures.timeline import series_of, timeline_of
from rebat.results.metric import Name, flat_metrics
from rebat.runs.simulating import simulate_run
from rebat.runs.single import RunResult
from rebat.runs.unit import Unit
from rebat.studies.whatif.question import Question

MOST_SEEDS = 100
"""Number of seeds after which an answer is complete."""

FIRST_SEEDS = 30
"""Number of seeds of an answer before its map."""

CELL_SEEDS = FEWEST
"""Number of seeds of a cell of the map: the fewest with an interval."""

MORE_SEEDS = 4 * CELL_SEEDS
"""Number of seeds of a cell that is not decided after `CELL_SEEDS`."""

LIVE_S = 3.0
"""Time in seconds above which a run is too long for a live answer."""

MAX_CACHED_RUNS = 3_000
"""Maximum number of runs whose metrics are cached."""

POINTS = 600
"""Number of points of a line of node use over time."""

Metrics = tuple[tuple[str, str | None, float], ...]
Line = tuple[list[float], list[float]]
"""Times in seconds and values of a step line."""


Task = tuple[Question, int, tuple[int, int, int] | None]
"""A question and its seed, or the question of a cell and its number of seeds (0: CELL_SEEDS).

A cell is its column, its row, and the width of its block.
"""


class MapPlan(msgspec.Struct, frozen=True):
    """A map over two controls: their names and values, and the metric of the winner."""

    x: str
    y: str
    x_values: tuple[Any, ...]
    y_values: tuple[Any, ...]
    metric: Name

    def passes(self) -> Iterator[list[tuple[int, int, int]]]:
        """Yield passes from coarse to fine: column, row and width of blocks of cells."""
        done: set[tuple[int, int]] = set()
        for width in (4, 2, 1):
            columns = range((width - 1) // 2, len(self.x_values), width)
            rows = range((width - 1) // 2, len(self.y_values), width)
            cells = [cell for cell in itertools.product(columns, rows) if cell not in done]
            done.update(cells)
            yield [(*cell, width) for cell in cells]
        rest = itertools.product(range(len(self.x_values)), range(len(self.y_values)))
        yield [(*cell, 1) for cell in rest if cell not in done]

    def question(self, question: Question, column: int, row: int) -> Question:
        """Return the question of a cell."""
        at_x = question.with_value(self.x, self.x_values[column])
        return at_x.with_value(self.y, self.y_values[row])


class Cell(msgspec.Struct, frozen=True):
    """The answer of a cell, which represents a block of ``width`` cells until these are known."""

    winner: Winner
    width: int


class Answer(msgspec.Struct):
    """The results of a question so far.

    Attributes
    ----------
    runs : Runs
        The metrics of the seeds 0, 1, ... that all policies have completed.
    early : dict
        The metrics of later seeds, until those before them are complete.
    use : dict
        Share of the nodes in use over time with the first seed, by policy.
    cells : dict
        The cells of the map by column and row.
    run_s : float
        Time of the longest run of the first seed.
    error : str
        Why a policy or a cell cannot run, or an empty text.
    complete : bool
        Whether nothing more will be simulated.
    version : int
        A number that increases with each change.
    """

    question: Question
    plan: MapPlan | None
    runs: Runs[str]
    early: dict[int, Mapping[str, Metrics]] = {}
    use: dict[str, Line] = {}
    cells: dict[tuple[int, int], Cell] = {}
    run_s: float = 0.0
    error: str = ""
    complete: bool = False
    version: int = 0

    @property
    def too_long(self) -> bool:
        """Whether runs are too long for live answers."""
        return self.run_s > LIVE_S

    @property
    def n_seeds(self) -> int:
        """Number of seeds that all policies have completed."""
        return len(self.runs.seeds)


class _Cancelled(Exception):
    """The question changed."""


class Answers:
    """Threads that simulate the current question.

    Parameters
    ----------
    workers : int, optional
        Number of threads (default: one per core).
    """

    def __init__(self, workers: int | None = None) -> None:
        self._changed = Condition()
        self._cache: OrderedDict[str, Metrics] = OrderedDict()
        self._answer: Answer | None = None
        self._tasks: Iterator[Task] = iter(())
        self._again: deque[Task] = deque()
        self._busy = 0
        self._closed = False
        count = workers or len(os.sched_getaffinity(0))
        self._threads = [Thread(target=self._work, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def ask(self, question: Question, plan: MapPlan | None = None) -> None:
        """Begin to answer a question, and cancel the previous one. Keep its map if it is equal."""
        with self._changed:
            version = self._answer.version + 1 if self._answer else 0
            answer = Answer(question, plan, Runs([*question.policies]), version=version)
            old = self._answer
            if old and plan and _same_map(old, answer):
                answer.cells = old.cells
            self._answer, self._tasks = answer, self._order(answer)
            self._again.clear()
            self._changed.notify_all()

    @property
    def answer(self) -> Answer | None:
        """A copy of the current answer."""
        with self._changed:
            answer = self._answer
            if answer is None:
                return None
            return msgspec.structs.replace(
                answer, runs=answer.runs.copy(), use=dict(answer.use), cells=dict(answer.cells)
            )

    @property
    def version(self) -> int:
        """The version of the current answer, or -1 if there is none."""
        with self._changed:
            return -1 if self._answer is None else self._answer.version

    def close(self) -> None:
        """Stop the threads. A run that is in progress ends first."""
        with self._changed:
            self._closed, self._answer, self._tasks = True, None, iter(())
            self._changed.notify_all()

    def _order(self, answer: Answer) -> Iterator[Task]:
        """Yield seeds of the answer and of cells, in the order in which they are simulated."""
        question, plan = answer.question, answer.plan
        most = MOST_SEEDS if question.random else 1
        seeds = iter(range(most))
        for seed in itertools.islice(seeds, FIRST_SEEDS):
            yield question, seed, None
            if answer.too_long and seed + 1 >= FEWEST:
                return
        cells = self._cells(answer, plan) if plan else iter(())
        for cell in cells:
            yield cell
            yield from ((question, each, None) for each in itertools.islice(seeds, 1))
        for seed in seeds:
            yield question, seed, None

    @staticmethod
    def _cells(answer: Answer, plan: MapPlan) -> Iterator[Task]:
        for cells in plan.passes():
            for column, row, width in cells:
                if (cell := answer.cells.get((column, row))) is None or cell.width > width:
                    yield plan.question(answer.question, column, row), 0, (column, row, width)

    def _work(self) -> None:
        """Simulate tasks until the page is closed."""
        while True:
            with self._changed:
                while (task := self._next()) is None and not self._closed:
                    self._changed.wait()
                if self._closed or task is None:
                    return
                answer = self._answer
                self._busy += 1
            assert answer is not None
            try:
                self._perform(answer, *task)
            except _Cancelled:
                pass
            except Exception as error:  # the page shows it
                kind = "" if isinstance(error, RebatError) else f"{type(error).__name__}: "
                with self._changed:
                    answer.error = f"{kind}{one_line(error)}"
                    answer.version += 1
            finally:
                with self._changed:
                    self._busy -= 1
                    self._changed.notify_all()

    def _next(self) -> Task | None:
        """Return the next task. The answer is complete if there is none and no run is in progress.

        The caller holds the lock.
        """
        task = next(self._tasks, None)
        if task is None and self._again:
            task = self._again.popleft()
        if task is None and self._answer and not self._busy and not self._answer.complete:
            self._answer.complete = True
            self._answer.version += 1
        return task

    def _perform(
        self, answer: Answer, question: Question, seed: int, cell: tuple[int, int, int] | None
    ) -> None:
        if cell is None:
            metrics = self._seed(answer, question, seed, drawn=seed == 0)
            with self._changed:
                answer.early[seed] = metrics
                while (next_seed := answer.n_seeds) in answer.early:
                    for policy, values in answer.early.pop(next_seed).items():
                        answer.runs.add(next_seed, policy, values)
                answer.version += 1
            return
        column, row, width = cell
        n_seeds = (seed or CELL_SEEDS) if question.random else 1
        runs: Runs[str] = Runs([*question.policies])
        for each in range(n_seeds):
            for policy, values in self._seed(answer, question, each).items():
                runs.add(each, policy, values)
        assert answer.plan is not None
        best = winner(runs, answer.plan.metric)
        if best is not None:
            with self._changed:
                answer.cells[column, row] = Cell(best, width)
                answer.version += 1
                if answer is self._answer and not best.decided and n_seeds == CELL_SEEDS:
                    self._again.append((question, MORE_SEEDS, cell))

    def _seed(
        self, answer: Answer, question: Question, seed: int, drawn: bool = False
    ) -> Mapping[str, Metrics]:
        """Return the metrics of all policies with a seed."""
        metrics = {}
        for policy, unit in zip(question.policies, question.units(seed), strict=True):
            metrics[policy] = self._run(answer, policy, unit, drawn)
        return metrics

    def _run(self, answer: Answer, policy: str, unit: Unit, drawn: bool) -> Metrics:
        """Simulate a run, unless its metrics are known. ``drawn``: keep its node use over time."""
        if answer is not self._answer:
            raise _Cancelled
        with self._changed:
            cached = self._cache.get(unit.key)
        if cached is not None and not drawn:
            return cached
        began = time.perf_counter()
        result = simulate_run(unit)
        metrics = tuple(flat_metrics(as_json(result.summary)))
        with self._changed:
            if drawn:
                answer.run_s = max(answer.run_s, time.perf_counter() - began)
            self._cache[unit.key] = metrics
            while len(self._cache) > MAX_CACHED_RUNS:
                self._cache.popitem(last=False)
            if drawn:
                answer.use[policy] = node_use(result)
        return metrics


def _same_map(old: Answer, new: Answer) -> bool:
    """Return whether two answers have the same map: their questions differ only in its axes."""
    if old.plan != new.plan or old.plan is None:
        return False
    return old.plan.question(old.question, 0, 0) == old.plan.question(new.question, 0, 0)


def node_use(result: RunResult, points: int = POINTS) -> Line:
    """Return the mean share of the nodes in use, in equal parts of the time of a run."""
    n_nodes = result.summary.n_nodes
    timeline = timeline_of(result.policy, result.ledger, n_nodes)
    times_us, busy = series_of(timeline)[0]
    end_us = max(timeline.makespan_us, 1)
    edges = np.linspace(0, end_us, points + 1)
    area = np.concatenate([[0.0], np.cumsum(busy[:-1] * np.diff(times_us))])
    at = np.searchsorted(times_us, edges, side="right") - 1
    total = np.where(at < 0, 0.0, area[at] + busy[at] * (edges - times_us[at]))
    shares = np.diff(total) / np.diff(edges) / n_nodes
    return [to_s(round(edge)) for edge in edges[:-1]], shares.round(4).tolist()
