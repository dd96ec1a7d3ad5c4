# SPDX-License-Identifier: Apache-2.0
"""Options of a session. A preset sets them."""

from __future__ import annotations

from typing import Literal

import msgspec

from rebat.core.dialect import PAPER, Dialect
from rebat.core.recovery import Recovery

SilentErrors = Literal["accept", "retry"]
"""What happens when an attempt ends with an error: its job ends (accept) or runs again (retry)."""


MAX_ATTEMPTS = 10_000
"""Default maximum number of interrupted attempts of a job.

A job that needs more attempts probably cannot complete on this machine.
"""


class YoungDaly(msgspec.Struct, frozen=True):
    """Checkpoints of jobs whose profiles contain no checkpoint fields. Times are in seconds.

    ``mtbf_s`` is the MTBF of the machine. Run times and walltimes already include the checkpoints.
    """

    mtbf_s: float
    cost_s: float
    recovery_s: float


class SessionOptions(msgspec.Struct, frozen=True):
    """Options of a session.

    Attributes
    ----------
    dialect : Dialect
        Choices for the details in which the node-stealing paper and its authors' program differ.
    strict : bool
        If True, a refused proposal of the policy is an error. If False, it is only recorded.
    young_daly : YoungDaly, optional
        Checkpointing of jobs whose profiles have no checkpoint fields.
    silent_errors : str
        With 'retry', a job that ends with a return code other than 0 runs again from the beginning
        until it succeeds (sections 3.2 and 4.1 of Benoit et al., RR-9296).
    resize_cost : str
        Time that a resize costs: seconds or a cost model (see ``models.migration.cost_us``). It is
        added to the recovery time of the next attempt.
    migration_cost : str
        Time that a checkpoint and restart cost: seconds or a cost model (see
        ``models.migration.cost_us``).
    purge_s : float
        Slurm's PURGE_JOB_INTERVAL. Some cost models include it (see ``models.migration``).
    cores_per_node : int
        Number of Batsim's hosts (cores) that form a node; 1 if hosts are nodes.
    resumes_moldable : bool
        If True, a moldable job whose number of nodes changes continues from its last checkpoint.
        If False, it restarts from the beginning.
    max_attempts : int
        Number of interrupted attempts after which a job ends as failed.
    recovery : Recovery, optional
        Stages of the recovery of a failed job. If None, there are no stages: the policy is informed
        of a failure immediately.
    """

    dialect: Dialect = PAPER
    strict: bool = True
    young_daly: YoungDaly | None = None
    silent_errors: SilentErrors = "accept"
    resize_cost: str = "0"
    migration_cost: str = "table"
    purge_s: float = 60.0
    cores_per_node: int = 1
    resumes_moldable: bool = False
    max_attempts: int = MAX_ATTEMPTS
    recovery: Recovery | None = None

    @property
    def starts_cost(self) -> bool:
        """Whether a restart costs time even if the job wrote no checkpoint."""
        return self.resize_cost != "0" or bool(self.recovery and "init" in self.recovery.stages)
