"""Parked jobs and the nodes held for them: a failed job that waits for a stolen node.

The node-stealing paper submits a fictitious job for that (section 7.2.1); here the nodes are taken
out of the pool, and the planning is told of them as of something that runs. Batsim hears nothing
of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rebat.core.attempts import Running
from rebat.core.nodes import NodeSet
from rebat.kernels.pool import NodePool
from rebat.policies.base import Interrupt


class Holds:
    """Which job is parked, and which nodes wait for it.

    Attributes
    ----------
    parked : dict
        The interrupt that parked a job, by the job's id.
    """

    def __init__(self, pool: NodePool) -> None:
        self._pool = pool
        self.parked: dict[str, Interrupt] = {}
        self._held: dict[str, Running] = {}
        self._hits: list[tuple[str, int, int]] = []

    def park(
        self, killed: Running, interrupt: Interrupt, serial: int, now_us: int, lowest: bool
    ) -> Running | None:
        """Hold what survives of the nodes of a killed attempt; None when nothing does.

        With ``lowest`` as many of the lowest free nodes are held instead: the authors' program
        lets its planning choose.
        """
        job_id = killed.attempt.job_id
        self.parked[job_id] = interrupt
        alive = _alive(self._pool, killed.nodes)
        if not alive.size:
            return None
        nodes = self._pool.lowest(alive.size) if lowest else alive
        attempt = msgspec.structs.replace(
            killed.attempt,
            id=f"{job_id}~{serial}",
            serial=serial,
            n_nodes=nodes.size,
            walltime_us=interrupt.hold_us,
        )
        return self._hold(job_id, Running(attempt, now_us, nodes))

    def _hold(self, job_id: str, held: Running) -> Running:
        self._pool.take(held.nodes, held.attempt.serial)
        self._held[job_id] = held
        return held

    def shrink(self, tags: Sequence[int]) -> list[tuple[Running, Running | None]]:
        """Let go of held nodes that failed; gives (what ended, what is held instead) for each."""
        changes: list[tuple[Running, Running | None]] = []
        for job_id, held in list(self._held.items()):
            if held.attempt.serial not in tags:
                continue
            self._pool.release(held.nodes)
            del self._held[job_id]
            alive, new = _alive(self._pool, held.nodes), None
            if alive.size:
                attempt = msgspec.structs.replace(
                    held.attempt, id=f"{held.attempt.id}~", n_nodes=alive.size
                )
                new = self._hold(job_id, Running(attempt, held.start_us, alive))
            self._hits.append((job_id, held.nodes.size - alive.size, alive.size))
            changes.append((held, new))
        return changes

    def take_hits(self) -> tuple[tuple[str, int, int], ...]:
        """The held nodes that failed since the last call: (job, how many, how many are left)."""
        hits, self._hits = tuple(self._hits), []
        return hits

    def resume(self, job_id: str) -> tuple[Interrupt, Running | None]:
        """Give a parked job's nodes back; with the interrupt that parked it."""
        held = self._held.pop(job_id, None)
        if held is not None:
            self._pool.release(held.nodes)
        return self.parked.pop(job_id), held


def _alive(pool: NodePool, nodes: NodeSet) -> NodeSet:
    """The nodes of a set, just released, that are up."""
    return NodeSet.of(node for node in nodes if not pool.down[node])
