# SPDX-License-Identifier: Apache-2.0
"""The options of a scenario, declared once: type, range, unit and help of each.

Options of the command line, arguments of Python and defaults of campaign files follow from them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from rebat.core.errors import InputError
from rebat.core.options import MAX_ATTEMPTS
from rebat.core.sizes import MAX_NODES
from rebat.models.checkpoint import Accounting, Rounding
from rebat.models.failures.correlated import Correlation, correlated
from rebat.models.failures.law import Law
from rebat.models.failures.laws import make_law, parameters
from rebat.models.failures.recorded import Recorded
from rebat.models.operations import read_operations
from rebat.results.measures.platform import WalltimeKills
from rebat.runs.spec import (
    CheckpointModel,
    FailureScenario,
    OperationFile,
    PerfectCheckpoints,
    Scenario,
    SilentErrors,
)

Seconds = Annotated[float, msgspec.Meta(gt=0, extra={"unit": "s"})]
"""A duration; texts in human units are accepted where options are read."""

Count = Annotated[int, msgspec.Meta(ge=1)]
Probability = Annotated[float, msgspec.Meta(ge=0, lt=1)]
Nodes = Annotated[int, msgspec.Meta(ge=1, le=MAX_NODES)]


def _doc(description: str, **extra: Any) -> msgspec.Meta:
    """Help of an option; ``extra``: its ``flags`` and the kind of ``file`` that it names."""
    return msgspec.Meta(description=description, extra=extra)


class FailureOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What fails. The command line, its help and the arguments of Python follow from the fields.

    ``failures`` (a file), and ``model`` with ``mtbf`` and ``downtime``, are short forms of a
    ``law``.
    """

    law: Annotated[
        Law | None, _doc("How nodes fail, as NAME:PARAMETER=VALUE,...; the laws are listed below.")
    ] = None
    failures: Annotated[
        Path | None,
        _doc(
            "Event file with the node failures (Batsim's --events); --mtbf is then for the checkpoint period only.",
            file="failure_events",
        ),
    ] = None
    mtbf: Annotated[
        Seconds | None,
        _doc("Short for the MTBF of a law: mean time between failures of the whole machine."),
    ] = None
    downtime: Annotated[Seconds, _doc("With --mtbf: how long a failed node stays down.")] = 3600.0
    seed: Annotated[
        int,
        msgspec.Meta(ge=0),
        _doc("Seed of the failures and silent errors; with --seeds the first one."),
    ] = 0
    model: Annotated[
        str, _doc("With --mtbf: the law's name.", flags=("--model", "--failure-model"))
    ] = "authors"
    horizon: Annotated[
        Seconds | None,
        _doc("Draw no failure after this time (default: as far as the simulation goes)."),
    ] = None
    begin: Annotated[
        Seconds | None,
        _doc(
            "Start the simulation at this time of the failure law or event file. Earlier failures only set the nodes' initial uptimes (default: at time 0)."
        ),
    ] = None
    failure_group: Annotated[
        Count,
        _doc(
            "Number of consecutive nodes that fail together, in aligned groups (512: a midplane). An MTBF is then that of these group failures."
        ),
    ] = 1
    cascade: Annotated[
        Probability,
        _doc(
            "Probability that a failure causes another one, which may cause another: cascade/(1 - cascade) more failures on average, not included in the MTBF."
        ),
    ] = 0.0
    cascade_window: Annotated[
        Seconds,
        _doc("With --cascade: maximum delay between a failure and the failure that it causes."),
    ] = 3600.0
    cascade_within: Annotated[
        Count | None,
        _doc(
            "With --cascade: number of nodes in the aligned block that also contains the next failure (default: any node of the machine)."
        ),
    ] = None

    @property
    def mtbf_s(self) -> float | None:
        """The machine's mean time between failures, where it is told."""
        told: float | None = getattr(self.law, "mtbf_s", self.mtbf)
        return told

    @property
    def correlation(self) -> Correlation:
        """How failures come together, if they do."""
        return Correlation(
            group=self.failure_group,
            cascade=self.cascade,
            cascade_window_s=self.cascade_window,
            cascade_within=self.cascade_within or 0,
        )

    def failure_law(self) -> Law | None:
        """How nodes fail; None: they do not."""
        law = self.single_law()
        return None if law is None else correlated(law, self.correlation)

    def single_law(self) -> Law | None:
        """How they fail one by one."""
        if self.law is not None:
            return self.law
        if self.failures is not None:
            return make_law("trace", {"file": str(self.failures)})
        if self.mtbf is None:
            return None
        values: dict[str, Any] = {"mtbf": self.mtbf}
        if "downtime" in parameters(self.model):
            values["downtime"] = self.downtime
        return make_law(self.model, values)


class ScenarioOptions(FailureOptions, frozen=True, kw_only=True):
    """The options that say what fails and what checkpoints, as they are given."""

    cores_per_node: Annotated[
        Count,
        _doc(
            "Treat the machine's nodes as cores and group every N consecutive cores into one node. Cores of a node fail and drain together; failure laws and operations refer to nodes."
        ),
    ] = 1
    checkpoint: Annotated[
        Literal["none", "young-daly", "perfect"],
        _doc(
            "young-daly: every job writes checkpoints at its Young/Daly period and takes longer by their cost (eqs 1, 2); perfect: an interrupted job continues where it was, at no cost."
        ),
    ] = "none"
    checkpoint_cost: Annotated[Seconds, _doc("Time to write a checkpoint.")] = 300.0
    recovery_cost: Annotated[Seconds, _doc("Time to read a checkpoint after an interruption.")] = (
        300.0
    )
    checkpoint_rounding: Annotated[
        Rounding,
        _doc(
            "How the number of checkpoints of a job is rounded. floor: a job shorter than its period writes none; ceil: a last checkpoint closes every job (eqs 1 and 2 of the node-stealing paper)."
        ),
    ] = "floor"
    silent_errors: Annotated[
        Annotated[float, msgspec.Meta(ge=0)] | None,
        _doc(
            "Draw silent errors at this rate per node and second. Jobs then end as COMPLETED_FAILED; policies with silent_errors=retry run them again."
        ),
    ] = None
    silent_error_probability: Annotated[
        Probability | None,
        _doc(
            "Draw silent errors so that a job of average area has one with this probability (q-bar of RR-9296, section 5.1)."
        ),
    ] = None
    operations: Annotated[
        Path | None,
        _doc(
            "Operations of an administrator, a JSON object per line: nodes to drain and undrain, jobs to migrate (see 'rebat operations')."
        ),
    ] = None
    nodes: Annotated[
        Nodes | None,
        _doc("Nodes of the machine (default: the workload's).", machine=True),
    ] = None
    window: Annotated[
        str,
        _doc(
            "Measure platform time in START:END, like 10d:30d; auto: the paper's for months, else all."
        ),
    ] = "auto"
    select: Annotated[
        str,
        _doc(
            "Measure the flow of these jobs: all, 0.2:0.8:count (the paper), 0.2:0.8:time (its program), auto."
        ),
    ] = "auto"
    walltime_kills: Annotated[
        WalltimeKills,
        _doc("Whether work of jobs killed at their walltime counts as useful or wasted."),
    ] = "wasted"
    max_attempts: Annotated[
        Count,
        _doc("End a job as failed when failures have interrupted this many attempts of it."),
    ] = MAX_ATTEMPTS
    accounting: Annotated[
        Accounting,
        _doc(
            "Which time counts as checkpoints. exact: all of it; program: only full periods with their checkpoint, as the node-stealing authors' program counts, so that a closing checkpoint is useful time."
        ),
    ] = "exact"

    def scenario(self) -> Scenario:
        """The scenario that they ask for.

        Raises
        ------
        InputError
            For options that contradict each other.
        """
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
    def uses_record_mtbf(self) -> bool:
        """Whether checkpoint periods are for the MTBF that a failure record has itself."""
        young_daly = self.checkpoint == "young-daly" and self.mtbf_s is None
        return young_daly and isinstance(self.law, Recorded)

    def with_record_mtbf(self, n_nodes: int | None) -> ScenarioOptions:
        """Return the options with the MTBF of the record on a machine of this size, if used."""
        if not (self.uses_record_mtbf and isinstance(self.law, Recorded)):
            return self
        return msgspec.structs.replace(self, mtbf=self.law.mtbf_on(n_nodes))

    def _checkpoint(self) -> CheckpointModel | PerfectCheckpoints | None:
        if self.checkpoint == "none":
            return None
        if self.checkpoint == "perfect":
            return PerfectCheckpoints()
        mtbf_s = self.mtbf_s
        if mtbf_s is None:
            raise InputError("the Young/Daly period needs --mtbf", "--checkpoint young-daly")
        costs = self.checkpoint_cost, self.recovery_cost
        return CheckpointModel(mtbf_s, *costs, self.checkpoint_rounding)

    def _operations(self) -> OperationFile | None:
        if self.operations is None:
            return None
        return OperationFile(self.operations.name, tuple(read_operations(self.operations)))

    def _silent_errors(self) -> SilentErrors | None:
        rate, probability = self.silent_errors, self.silent_error_probability
        if rate is not None and probability is not None:
            raise InputError("give one of --silent-errors and --silent-error-probability")
        if rate is None and probability is None:
            return None
        return SilentErrors(rate, probability, self.seed)
