# SPDX-License-Identifier: Apache-2.0
"""The options of a scenario. Each is declared once, with its type, range, unit and help.

The command-line options, the Python arguments and the defaults of campaign files are derived from
these declarations.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from rebat.core.cores import MAX_NODES
from rebat.core.durations import LARGEST_SEED
from rebat.core.errors import InputError
from rebat.core.options import MAX_ATTEMPTS
from rebat.models.checkpoint import Accounting, Rounding
from rebat.models.failures.correlated import Correlation, correlated
from rebat.models.failures.fleet import Fleet
from rebat.models.failures.law import Law
from rebat.models.failures.laws import make_law, parameters
from rebat.models.failures.recorded import Recorded, Trace
from rebat.models.failures.renewal import Scaled
from rebat.models.operations import read_operations
from rebat.models.tiers import USUAL
from rebat.results.measures.platform import WalltimeKills
from rebat.runs.spec import (
    CheckpointModel,
    Checkpoints,
    FailureScenario,
    OperationFile,
    PerfectCheckpoints,
    Scenario,
    SilentErrors,
    TierCheckpoints,
)
from rebat.runs.tiers import tier_checkpoints

Seconds = Annotated[float, msgspec.Meta(gt=0, extra={"unit": "s"})]
"""A duration in seconds. In options, it may also be a text like "5min"."""

Count = Annotated[int, msgspec.Meta(ge=1)]
Probability = Annotated[float, msgspec.Meta(ge=0, lt=1)]
Nodes = Annotated[int, msgspec.Meta(ge=1, le=MAX_NODES)]


def _doc(description: str, **extra: Any) -> msgspec.Meta:
    """Return the help of an option. ``extra`` can contain ``flags`` and ``file`` (kind of file)."""
    return msgspec.Meta(description=description, extra=extra)


class FailureOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the failures.

    There are two short forms for a ``law``: ``failures`` (a file), or ``model`` with ``mtbf`` and
    ``downtime``.
    """

    law: Annotated[
        Law | None, _doc("Failure law of the nodes, NAME:PARAMETER=VALUE,... (see the list below).")
    ] = None
    failures: Annotated[
        Path | None,
        _doc(
            "Event file with the node failures (Batsim's --events). With this option, --mtbf only sets the checkpoint period.",
            file="failure_events",
        ),
    ] = None
    mtbf: Annotated[
        Seconds | None,
        _doc(
            "Mean time between failures of the entire machine; short form of a law with this MTBF."
        ),
    ] = None
    downtime: Annotated[Seconds, _doc("With --mtbf: time that a failed node stays down.")] = 3600.0
    seed: Annotated[
        int,
        msgspec.Meta(ge=0, le=LARGEST_SEED),
        _doc("Seed of the failures and silent errors; with --seeds, the first seed."),
    ] = 0
    model: Annotated[
        str, _doc("With --mtbf: name of the failure law.", flags=("--model", "--failure-model"))
    ] = "authors"
    horizon: Annotated[
        Seconds | None,
        _doc("Draw no failure after this time (default: the end of the simulation)."),
    ] = None
    begin: Annotated[
        Seconds | None,
        _doc(
            "Start the simulation at this time of the failure law or event file (default: 0). Earlier failures only set the nodes' initial uptimes."
        ),
    ] = None
    failure_group: Annotated[
        Count,
        _doc(
            "Group every N consecutive nodes; all nodes of a group fail together (512: a "
            "midplane). The MTBF is then the mean time between failures of groups."
        ),
    ] = 1
    cascade: Annotated[
        Probability,
        _doc(
            "Probability P that a failure causes another failure, which can cause the next failure. On average a failure causes P/(1 - P) further failures. The MTBF does not include them."
        ),
    ] = 0.0
    cascade_window: Annotated[
        Seconds,
        _doc("With --cascade: maximum delay between a failure and the failure it causes."),
    ] = 3600.0
    cascade_within: Annotated[
        Count | None,
        _doc(
            "With --cascade: every N consecutive nodes form a block, and the caused failure hits "
            "the block of the failure that causes it (default: any node of the machine)."
        ),
    ] = None

    @property
    def mtbf_s(self) -> float | None:
        """Mean time between failures of the machine, or None if law and options do not state it."""
        mtbf_s: float | None = getattr(self.law, "mtbf_s", self.mtbf)
        return mtbf_s

    @property
    def correlation(self) -> Correlation:
        """The correlation of failures: groups and cascades."""
        return Correlation(
            group=self.failure_group,
            cascade=self.cascade,
            cascade_window_s=self.cascade_window,
            cascade_within=self.cascade_within or 0,
        )

    def failure_law(self) -> Law | None:
        """Return the failure law including correlations, or None if nodes do not fail."""
        law = self.single_law()
        return None if law is None else correlated(law, self.correlation)

    def single_law(self) -> Law | None:
        """Return the failure law of single nodes, or None if nodes do not fail."""
        if self.law is not None:
            return self.law
        if self.failures is not None:
            return Trace(str(self.failures))
        if self.mtbf is None:
            return None
        values: dict[str, Any] = {"mtbf": self.mtbf}
        if "downtime" in parameters(self.model):
            values["downtime"] = self.downtime
        return make_law(self.model, values)


class ScenarioOptions(FailureOptions, frozen=True, kw_only=True):
    """All options of a scenario: failures, checkpoints, operations and measurement."""

    cores_per_node: Annotated[
        Count,
        _doc(
            "Treat the machine's nodes as cores and group every N consecutive cores into one "
            "node. Cores of a node fail and drain together. Failure laws and operations apply to "
            "nodes, not to cores."
        ),
    ] = 1
    checkpoint: Annotated[
        Literal["none", "young-daly", "perfect", "tiers:auto"],
        _doc(
            "Checkpoints of the jobs. young-daly: every job writes checkpoints at its Young/Daly "
            "period (see --checkpoint-rounding), and takes longer by their cost. "
            "perfect: an interrupted job loses no work, and checkpoints cost no time. "
            "tiers:auto: checkpoints in the storage tiers of --tiers, at their best intervals."
        ),
    ] = "none"
    tiers: Annotated[
        str,
        _doc(
            "With --checkpoint tiers:auto: storage tiers with the times to write and to load a "
            "checkpoint, TIER=WRITE/LOAD joined by +. Checkpoints in memory and disk survive "
            "software failures. Checkpoints in peer also survive the failure of one node, those "
            "in group the failure of one group of nodes. "
            "Checkpoints in remote survive all failures. TIER=WRITE/LOAD@INTERVAL sets the "
            "interval."
        ),
    ] = USUAL
    checkpoint_cost: Annotated[Seconds, _doc("Time to write a checkpoint.")] = 300.0
    recovery_cost: Annotated[Seconds, _doc("Time to read a checkpoint after an interruption.")] = (
        300.0
    )
    checkpoint_rounding: Annotated[
        Rounding,
        _doc(
            "How to round the number of checkpoints of a job. floor: a job shorter than its "
            "period writes no checkpoint. ceil: every job ends with a checkpoint (equations 1 "
            "and 2 of the node-stealing paper)."
        ),
    ] = "floor"
    silent_errors: Annotated[
        Annotated[float, msgspec.Meta(ge=0)] | None,
        _doc(
            "Draw silent errors at this rate per node and second. A job with a silent error ends as COMPLETED_FAILED; policies with silent_errors=retry run it again."
        ),
    ] = None
    silent_error_probability: Annotated[
        Probability | None,
        _doc(
            "Draw silent errors so that a job of average area (nodes x time) has an error with this probability (q-bar of RR-9296, section 5.1)."
        ),
    ] = None
    operations: Annotated[
        Path | None,
        _doc(
            "File with operations of an administrator: nodes to drain and undrain, jobs to migrate, one JSON object per line (see 'rebat operations')."
        ),
    ] = None
    nodes: Annotated[
        Nodes | None,
        _doc("Number of nodes of the machine (default: the workload's).", machine=True),
    ] = None
    window: Annotated[
        str,
        _doc(
            "Time window START:END in which node time is measured, like 10d:30d. auto: days 10 "
            "to 30 if the workload spans a month (as in the node-stealing paper), otherwise the "
            "entire run."
        ),
    ] = "auto"
    select: Annotated[
        str,
        _doc(
            "Jobs whose flow is measured. all: every job. FIRST:LAST:count, like 0.2:0.8:count: "
            "leave out the first 20 % and the last 20 % of the jobs in order of submission (as in "
            "the node-stealing paper). FIRST:LAST:time, like 0.2:0.8:time: leave out the jobs of "
            "the first 20 % and the last 20 % of the submission period (as in the program of its "
            "authors). auto: 0.2:0.8:count if the workload spans a month, otherwise all."
        ),
    ] = "auto"
    walltime_kills: Annotated[
        WalltimeKills,
        _doc("Whether work of jobs killed at their walltime counts as useful or wasted."),
    ] = "wasted"
    max_attempts: Annotated[
        Count,
        _doc("Number of interruptions by failures after which a job ends as failed."),
    ] = MAX_ATTEMPTS
    accounting: Annotated[
        Accounting,
        _doc(
            "Which checkpoints count as checkpoint time. exact: all checkpoints. program: only "
            "checkpoints that end full periods, as in the program of the node-stealing authors; "
            "a closing checkpoint counts as useful time."
        ),
    ] = "exact"

    def scenario(self) -> Scenario:
        """Return the scenario of these options."""
        law, begin_s = self.failure_law(), self.begin or 0.0
        of_law = (self.seed, self.horizon, begin_s)
        return Scenario(
            nodes=self.nodes,
            cores_per_node=self.cores_per_node,
            failures=None if law is None else FailureScenario(law, *of_law),
            checkpoint=self._checkpoint(),
            silent_errors=self._silent_errors(),
            operations=self._operations(),
            window=self.window,
            select=self.select,
            walltime_kills=self.walltime_kills,
            max_attempts=self.max_attempts,
            accounting=self.accounting,
        )

    @property
    def uses_law_mtbf(self) -> bool:
        """Whether checkpoint periods use an MTBF that depends on the number of nodes."""
        young_daly = self.checkpoint in ("young-daly", "tiers:auto") and self.mtbf_s is None
        return young_daly and isinstance(self.single_law(), Recorded | Scaled | Fleet | Trace)

    def with_law_mtbf(self, n_nodes: int | None) -> ScenarioOptions:
        """Return these options. If they use the law's MTBF, set it for this number of nodes."""
        law = self.single_law()
        if not self.uses_law_mtbf or law is None:
            return self
        return msgspec.structs.replace(self, mtbf=law.mtbf_on(n_nodes))

    def _checkpoint(self) -> Checkpoints | None:
        if self.checkpoint == "none":
            return None
        if self.checkpoint == "perfect":
            return PerfectCheckpoints()
        mtbf_s = self.mtbf_s
        if mtbf_s is None:
            raise InputError("needs an MTBF", f"--checkpoint {self.checkpoint}", "--mtbf as well")
        if self.checkpoint == "tiers:auto":
            return self._tiers(mtbf_s)
        costs = self.checkpoint_cost, self.recovery_cost
        return CheckpointModel(mtbf_s, *costs, self.checkpoint_rounding)

    def _tiers(self, mtbf_s: float) -> TierCheckpoints:
        """Return the tiers, and the failures of the law that the light tiers survive."""
        try:
            return tier_checkpoints(self.tiers, mtbf_s, self.law)
        except InputError as error:
            raise error.at("--tiers") from None

    def _operations(self) -> OperationFile | None:
        if self.operations is None:
            return None
        return OperationFile(self.operations.name, tuple(read_operations(self.operations)))

    def _silent_errors(self) -> SilentErrors | None:
        rate, probability = self.silent_errors, self.silent_error_probability
        if rate is not None and probability is not None:
            expected = "one of the two"
            raise InputError("contradicts --silent-error-probability", "--silent-errors", expected)
        if rate is None and probability is None:
            return None
        return SilentErrors(rate, probability, self.seed)
