# SPDX-License-Identifier: Apache-2.0
"""Dependencies between jobs that become known one after the other, in tables that grow."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rebat.core.attempts import job_name, workload_name
from rebat.core.dependencies import (
    KINDS,
    Condition,
    array_limit,
    check_dependencies,
    conditions_of,
)
from rebat.core.traits import Traits
from rebat.state import tables


class Linking:
    """The blocks of the jobs that have dependencies or arrays, or on which other jobs depend.

    Attributes
    ----------
    rows : dict
        Blocks by id of the job, which may not be submitted yet.
    is_checked : bool
        Whether the dependencies were checked.
    """

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self._arrays: dict[str, int] = {}
        self.is_checked = False

    def link(
        self, state: tables.State, job_id: str, traits: Traits, attempt_of: Callable[[str], int]
    ) -> int:
        """Add the conditions and the array of a job. Return its block plus 1, or 0.

        ``attempt_of`` returns the row of the first attempt of a submitted job, or -1.
        """
        if not (traits.dependency or traits.array):
            return self.rows.get(job_id, -1) + 1
        workload, b = workload_name(job_id), self._block(state, job_id, attempt_of)
        row, conditions = state.blocks[b], conditions_of(traits.dependency)
        row.condition, row.n_conditions = len(state.conditions), len(conditions)
        for kind, job in conditions:
            other = self._block(state, f"{workload}!{job}", attempt_of)
            state.conditions.append(tables.Condition([*KINDS].index(kind), other, b))
        if traits.array:
            name = f"{workload}!{traits.array}"
            if name not in self._arrays:
                state.arrays.append(tables.JobArray(array_limit(traits.array)))
            row.array = 1 + self._arrays.setdefault(name, len(self._arrays))
        return b + 1

    def _block(self, state: tables.State, job_id: str, attempt_of: Callable[[str], int]) -> int:
        if job_id not in self.rows:
            block = tables.Block()
            self.rows[job_id] = len(state.blocks)
            state.blocks.append(block)
            if (a := attempt_of(job_id)) >= 0:
                block.job, block.attempt = state.attempts[a].job + 1, a + 1
                state.jobs[block.job - 1].block = len(state.blocks)
        return self.rows[job_id]

    def check(self, state: tables.State, job_ids: Sequence[str]) -> None:
        """Check that the jobs on which blocked jobs depend exist, and that there is no cycle.

        ``job_ids`` are the ids of the jobs by row.
        """
        self.is_checked = True
        blocks, names = state.blocks, [*self.rows]
        conditions: dict[str, list[Condition]] = {}
        for block in sorted(filter(lambda block: block.is_open, blocks), key=lambda b: b.job):
            first, last = block.condition, block.condition + block.n_conditions
            conditions[job_ids[block.job - 1]] = [
                Condition([*KINDS][row.kind], names[row.block])
                for row in state.conditions[first:last]
            ]
        check_dependencies(conditions, {name for name, b in self.rows.items() if blocks[b].job})

    def why_never(self, state: tables.State, j: int) -> str:
        """Return why the conditions of a job can never hold."""
        condition = state.conditions[state.blocks[state.jobs[j].block - 1].why_never]
        needed = f"{[*KINDS][condition.kind]}:{job_name([*self.rows][condition.block])}"
        return f"its dependency {needed} can never hold"
