# SPDX-License-Identifier: Apache-2.0
"""The scenario of a run: the only declaration of what happens to it, and what is measured.

Each option is declared once, as a field with its type, range, default and properties (see
`option`). The command line, the Python arguments, the keys of campaign files, the identity of a
run, the columns of the results table and the labels are derived from these fields.

A scenario has two forms. `ScenarioOptions` are the options that users set. `Scenario` is what a run
needs: a failure law, models of checkpoints and silent errors, and operations. `Conditions` are the
options that both forms have. Times are in seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from rebat.core.cores import MAX_NODES
from rebat.core.declared import Count, Seconds, declared
from rebat.core.durations import LARGEST_SEED
from rebat.core.errors import InputError
from rebat.core.numbers import exactly
from rebat.core.options import MAX_ATTEMPTS
from rebat.models.checkpoint import Accounting, Rounding, Survives
from rebat.models.failures.correlated import Correlated, Correlation, correlated
from rebat.models.failures.events import GenericEvent
from rebat.models.failures.fleet import Fleet
from rebat.models.failures.law import Law
from rebat.models.failures.laws import LAWS, make_law, parameters
from rebat.models.failures.recorded import Recorded, Trace
from rebat.models.failures.renewal import Scaled
from rebat.models.operations import read_operations
from rebat.models.tiers import SURVIVES, USUAL, Shares, parse_tiers
from rebat.results.measures.platform import WalltimeKills
from rebat.results.measures.summary import parse_selection, parse_window

MOST_LOAD = 1000.0
"""Maximum factor of the load."""

Probability = Annotated[float, msgspec.Meta(ge=0, lt=1)]
Nodes = Annotated[int, msgspec.Meta(ge=1, le=MAX_NODES)]


class Need(NamedTuple):
    """A condition without which an option has no effect."""

    expected: str
    """What the user has to change, as the error states it."""
    holds: Callable[[Any], bool]
    """Function that gets the `ScenarioOptions`."""


Group = Literal["law", "draw", "correlation", "nodes", "preparation", "run"]
"""What an option describes.

law: the failure law of single nodes. draw: which failures of the law occur. correlation: nodes that
fail together. nodes: what a node is. preparation: checkpoints and silent errors, which are added to
the workload. run: the rest.
"""


def option(
    group: Group,
    description: str,
    *,
    needs: tuple[Need, ...] = (),
    prepares: tuple[Need, ...] = (),
    label: str | Callable[[Any], str] = "",
    label_last: bool = False,
    added: int = 1000,
    blank: bool = False,
    measured: bool = False,
    **extra: Any,
) -> msgspec.Meta:
    """Return the properties of an option, an annotation of its field.

    Parameters
    ----------
    description : str
        Help of the option.
    needs : tuple of Need
        What the option needs to have an effect.
    prepares : tuple of Need
        What it needs in addition if a workload is only prepared, and not run.
    label : str or callable
        Text of a value that is not the default, in the label of a scenario. ``{}`` is the value.
    label_last : bool
        Whether this text is at the end of the label.
    added : int
        Rank of the column in the results table. Columns are in the order in which they were added.
        If an older table lacks the column, its cells are None.
    blank : bool
        Whether the cell of the default is empty.
    measured : bool
        Whether the option only affects what is measured.
    **extra
        ``flags`` of the command line, ``file`` (kind of file), ``machine``, ``key`` (the name in
        its table of a campaign file, if this is another name), ``read`` (a function that raises
        InputError for an invalid value), and ``examples`` (valid texts).
    """
    effects = {"group": group, "needs": needs, "prepares": prepares, "measured": measured}
    shown = {"label": label, "label_last": label_last, "added": added, "blank": blank}
    return msgspec.Meta(description=description, extra=effects | shown | extra)


# ---- what options need


def _in_periods(options: Any) -> bool:
    """Return whether the period of the checkpoints depends on the MTBF."""
    return options.checkpoint in ("young-daly", "tiers:auto")


# They are not within the annotations, because a lambda there does not see the names of the module.

_NO_LAW = Need("no --law", lambda o: o.law is None)
_WITH_MTBF = (
    Need("--mtbf as well", lambda o: o.law is not None or o.mtbf is not None),
    Need(
        "no --failures, because its file sets the downtimes",
        lambda o: o.law is not None or o.failures is None,
    ),
)
_OF_MTBF = (
    Need(
        "no --law, or a law without MTBF and --checkpoint young-daly",
        lambda o: o.law is None or (_in_periods(o) and not hasattr(o.law, "mtbf_s")),
    ),
    Need(
        "no --failures, or --checkpoint young-daly as well",
        lambda o: o.law is not None or o.failures is None or _in_periods(o),
    ),
)
_WITH_DOWNTIME = Need(
    "a --model that has a downtime, or --law",
    lambda o: o.model not in LAWS or "downtime" in parameters(o.model),
)
_DRAWN = Need("a --law that draws failures", lambda o: o.law is None or o.law.drawn)
_FAILING = Need(
    "--law, --failures or --mtbf as well",
    lambda o: (o.law, o.failures, o.mtbf) != (None, None, None),
)
_CASCADE = (Need("--cascade as well", lambda o: o.cascade > 0), _FAILING)
_YOUNG_DALY = Need("--checkpoint young-daly as well", lambda o: o.checkpoint == "young-daly")
_PERIODS = Need("--checkpoint young-daly or tiers:auto as well", _in_periods)
_TIERS = Need("--checkpoint tiers:auto as well", lambda o: o.checkpoint == "tiers:auto")
_SILENT = Need(
    "--silent-errors or --silent-error-probability as well",
    lambda o: (o.silent_errors, o.silent_error_probability) != (None, None),
)


def _of_nodes(count: int) -> str:
    return exactly(count, "node")


def _of_attempts(most: int) -> str:
    return f"at most {exactly(most, 'interruption')} per job"


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a scenario that a run uses unchanged."""

    # fmt: off
    nodes: Annotated[Nodes | None, option("run",
        "Number of nodes of the machine (default: the workload's).",
        label=_of_nodes, added=0, machine=True)] = None
    cores_per_node: Annotated[Count, option("nodes",
        "Treat the machine's nodes as cores and group every N consecutive cores into one node. Cores of a node fail and drain together. Failure laws and operations apply to nodes, not to cores.",
        label="{} cores per node", added=0)] = 1
    load: Annotated[Annotated[float, msgspec.Meta(gt=0, le=MOST_LOAD)], option("preparation",
        "Divide all submission times by this factor: at 1.2, the same jobs arrive in 1/1.2 of the time. The time window (--window) is divided by the same factor.",
        label="load x {:g}", added=7, blank=True)] = 1.0
    window: Annotated[str, option("run",
        "Time window START:END in which node time is measured, like 10d:30d. auto: days 10 to 30 if the workload spans a month (as in the node-stealing paper), otherwise the entire run.",
        label="window {}", label_last=True, added=0, measured=True, read=parse_window,
        examples=("0s:40s", "10s:1min"))] = "auto"
    select: Annotated[str, option("run",
        "Jobs whose flow is measured. all: every job. FIRST:LAST:count, like 0.2:0.8:count: leave out the first 20 % and the last 20 % of the jobs in order of submission (as in the node-stealing paper). FIRST:LAST:time, like 0.2:0.8:time: leave out the jobs of the first 20 % and the last 20 % of the submission period (as in the program of its authors). auto: 0.2:0.8:count if the workload spans a month, otherwise all.",
        label="jobs {}", label_last=True, added=0, measured=True, read=parse_selection,
        examples=("all", "0.2:0.8:count", "0.1:0.9:time"))] = "auto"
    walltime_kills: Annotated[WalltimeKills, option("run",
        "Whether work of jobs killed at their walltime counts as useful or wasted.",
        label="work of jobs killed at walltime counts as useful", added=4, measured=True)] = "wasted"
    max_attempts: Annotated[Count, option("run",
        "Number of interruptions by failures after which a job ends as failed.",
        label=_of_attempts, added=6, blank=True)] = MAX_ATTEMPTS
    accounting: Annotated[Accounting, option("run",
        "Which checkpoints count as checkpoint time. exact: all checkpoints. program: only checkpoints that end full periods, as in the program of the node-stealing authors; a closing checkpoint counts as useful time.",
        label="checkpoint accounting of the program", added=5, measured=True)] = "exact"
    # fmt: on

    @property
    def conditions(self) -> dict[str, Any]:
        """The options of this class by name."""
        return {name: getattr(self, name) for name in Conditions.__struct_fields__}


# ---- what a run needs


class FailureScenario(msgspec.Struct, frozen=True):
    """Failures that follow a law."""

    law: Law
    seed: int = 0
    horizon_s: float | None = None
    """Time after which no failure occurs, in seconds from the start of the run."""
    begin_s: float = 0.0
    """Time of the law at which the run begins. Earlier failures only set initial uptimes."""

    @property
    def mtbf_s(self) -> float | None:
        """Mean time between failures of the machine, or None if the law has none."""
        return getattr(self.law, "mtbf_s", None)

    @property
    def downtime_s(self) -> float | None:
        """Time that a failed node stays down, or None if the law does not define it."""
        return getattr(self.law, "downtime_s", None)


class CheckpointModel(msgspec.Struct, frozen=True):
    """Young/Daly checkpoints of all jobs (section 5.2 of Du et al. 2024). Times are in seconds."""

    mtbf_s: float
    cost_s: float
    recovery_s: float
    rounding: Rounding


class PerfectCheckpoints(msgspec.Struct, frozen=True, tag_field="model", tag="perfect"):
    """Checkpoints with which interruptions lose no work and no time (Prabhakaran et al. 2018)."""


class TierCheckpoints(msgspec.Struct, frozen=True, tag_field="model", tag="tiers"):
    """Checkpoints of all jobs in storage tiers (see `models.tiers`). Times are in seconds."""

    mtbf_s: float
    tiers: str
    light_share: Shares
    """For each light tier, the share of the failures that it survives."""
    software: str = ""
    """Causes of failures after which a node remains usable, joined by +."""
    group: int | msgspec.UnsetType = msgspec.UNSET
    """Number of nodes in a group that can fail together. Set only if a tier survives this."""

    @staticmethod
    def under(law: Law | None, text: str, mtbf_s: float) -> TierCheckpoints:
        """Return the tiers of a text, with the failures of the law that light tiers survive."""
        survives = [SURVIVES[tier.name] for tier in parse_tiers(text).lights] or [None]
        shares = tuple(_survived_share(law, failures) for failures in survives)
        single = law.of if isinstance(law, Correlated) else law
        software = single.software if isinstance(single, Fleet) else ""
        group = _group(law) if "group" in survives else msgspec.UNSET
        return TierCheckpoints(mtbf_s, text, shares if shares[1:] else shares[0], software, group)


def _survived_share(law: Law | None, survives: Survives | None) -> float:
    single = law.of if isinstance(law, Correlated) else law
    if survives == "node" and isinstance(law, Correlated) and law.correlation.group > 1:
        return 0.0
    if isinstance(single, Fleet):
        return single.survived_share(survives)
    return 0.0 if survives == "process" else 1.0


def _group(law: Law | None) -> int:
    """Return the number of nodes in a group of nodes that fail together under the law."""
    if isinstance(law, Correlated):
        return max(law.correlation.group, _group(law.of))
    return law.group if isinstance(law, Fleet) else 1


Checkpoints = CheckpointModel | PerfectCheckpoints | TierCheckpoints


class SilentErrors(msgspec.Struct, frozen=True):
    """Random silent errors. Either their rate or their probability is set."""

    rate: float | None = None
    """Errors per node and second."""
    probability: float | None = None
    """Probability of an error in a job of average area."""
    seed: int = 0


class OperationFile(msgspec.Struct, frozen=True):
    """Operations of an administrator: the events, and the name of their file, shown in tables."""

    file: str
    events: tuple[GenericEvent, ...]


class Scenario(Conditions, frozen=True, kw_only=True):
    """The scenario of a run: machine, failures, checkpoints, operations and measurement."""

    failures: FailureScenario | None = None
    checkpoint: Checkpoints | None = None
    silent_errors: SilentErrors | None = None
    operations: OperationFile | None = None


# ---- what users set


class ScenarioOptions(Conditions, frozen=True):
    """All options of a scenario.

    There are two short forms for a ``law``: ``failures`` (a file), or ``model`` with ``mtbf`` and
    ``downtime``.
    """

    # fmt: off
    law: Annotated[Law | None, option("law",
        "Failure law of the nodes, NAME:PARAMETER=VALUE,... (see the list below).")] = None
    failures: Annotated[Path | None, option("draw",
        "Event file with the node failures (Batsim's --events). With this option, --mtbf only sets the checkpoint period.",
        needs=(_NO_LAW,), file="failure_events")] = None
    mtbf: Annotated[Seconds | None, option("law",
        "Mean time between failures of the entire machine; short form of a law with this MTBF.",
        needs=_OF_MTBF, prepares=(Need(_YOUNG_DALY.expected, _in_periods),))] = None
    downtime: Annotated[Seconds, option("law",
        "With --mtbf: time that a failed node stays down.",
        needs=(_NO_LAW, *_WITH_MTBF, _WITH_DOWNTIME))] = 3600.0
    seed: Annotated[int, msgspec.Meta(ge=0, le=LARGEST_SEED), option("draw",
        "Seed of the failures and silent errors; with --seeds, the first seed.",
        prepares=(_SILENT,))] = 0
    model: Annotated[str, option("law",
        "With --mtbf: name of the failure law.",
        needs=(_NO_LAW, *_WITH_MTBF), flags=("--model", "--failure-model"),
        examples=("poisson", "renewal"))] = "authors"
    horizon: Annotated[Seconds | None, option("draw",
        "Draw no failure after this time (default: the end of the simulation).",
        needs=(_DRAWN, *_WITH_MTBF))] = None
    begin: Annotated[Seconds | None, option("draw",
        "Start the simulation at this time of the failure law or event file (default: 0). Earlier failures only set the nodes' initial uptimes.",
        needs=(_FAILING,))] = None
    failure_group: Annotated[Count, option("correlation",
        "Group every N consecutive nodes; all nodes of a group fail together (512: a midplane). The MTBF is then the mean time between failures of groups.",
        needs=(_FAILING,))] = 1
    cascade: Annotated[Probability, option("correlation",
        "Probability P that a failure causes another failure, which can cause the next failure. On average a failure causes P/(1 - P) further failures. The MTBF does not include them.",
        needs=(_FAILING,))] = 0.0
    cascade_window: Annotated[Seconds, option("correlation",
        "With --cascade: maximum delay between a failure and the failure it causes.",
        needs=_CASCADE)] = 3600.0
    cascade_within: Annotated[Count | None, option("correlation",
        "With --cascade: every N consecutive nodes form a block, and the caused failure hits the block of the failure that causes it (default: any node of the machine).",
        needs=_CASCADE)] = None
    checkpoint: Annotated[Literal["none", "young-daly", "perfect", "tiers:auto"], option("preparation",
        "Checkpoints of the jobs. young-daly: every job writes checkpoints at its Young/Daly period (see --checkpoint-rounding), and takes longer by their cost. perfect: an interrupted job loses no work, and checkpoints cost no time. tiers:auto: checkpoints in the storage tiers of --tiers, at their best intervals.")] = "none"
    tiers: Annotated[str, option("preparation",
        "With --checkpoint tiers:auto: storage tiers with the times to write and to load a checkpoint, TIER=WRITE/LOAD joined by +. Checkpoints in memory and disk survive software failures. Checkpoints in peer also survive the failure of one node, those in group the failure of one group of nodes. Checkpoints in remote survive all failures. TIER=WRITE/LOAD@INTERVAL sets the interval.",
        needs=(_TIERS,), examples=("remote=1s/2s", "peer=1s/2s+remote=3s/4s"))] = USUAL
    checkpoint_cost: Annotated[Seconds, option("preparation",
        "Time to write a checkpoint.",
        needs=(_YOUNG_DALY,), key="cost")] = 300.0
    recovery_cost: Annotated[Seconds, option("preparation",
        "Time to read a checkpoint after an interruption.",
        needs=(_YOUNG_DALY,), key="recovery")] = 300.0
    checkpoint_mtbf: Annotated[Seconds | None, option("preparation",
        "MTBF from which the period of the checkpoints is computed (default: the MTBF of the failures).",
        needs=(_PERIODS,), key="mtbf")] = None
    checkpoint_rounding: Annotated[Rounding, option("preparation",
        "How to round the number of checkpoints of a job. floor: a job shorter than its period writes no checkpoint. ceil: every job ends with a checkpoint (equations 1 and 2 of the node-stealing paper).",
        needs=(_YOUNG_DALY,), key="rounding")] = "floor"
    silent_errors: Annotated[Annotated[float, msgspec.Meta(ge=0)] | None, option("preparation",
        "Draw silent errors at this rate per node and second. A job with a silent error ends as COMPLETED_FAILED; policies with silent_errors=retry run it again.")] = None
    silent_error_probability: Annotated[Probability | None, option("preparation",
        "Draw silent errors so that a job of average area (nodes x time) has an error with this probability (q-bar of RR-9296, section 5.1).")] = None
    operations: Annotated[Path | None, option("run",
        "File with operations of an administrator: nodes to drain and undrain, jobs to migrate, one JSON object per line (see 'rebat operations').")] = None
    # fmt: on

    @property
    def mtbf_s(self) -> float | None:
        """Mean time between failures of the machine, or None if law and options do not state it."""
        mtbf_s: float | None = getattr(self.law, "mtbf_s", self.mtbf)
        return mtbf_s

    @property
    def is_silent(self) -> bool:
        """Whether silent errors are drawn."""
        return (self.silent_errors, self.silent_error_probability) != (None, None)

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

    def scenario(self) -> Scenario:
        """Return the scenario of these options."""
        law, file = self.failure_law(), self.operations
        drawn = (self.seed, self.horizon, self.begin or 0.0)
        return Scenario(
            **self.conditions,
            failures=None if law is None else FailureScenario(law, *drawn),
            checkpoint=self._checkpoint(),
            silent_errors=self._silent_errors(),
            operations=OperationFile(file.name, tuple(read_operations(file))) if file else None,
        )

    @property
    def uses_law_mtbf(self) -> bool:
        """Whether checkpoint periods use an MTBF that depends on the number of nodes."""
        needs_one = _in_periods(self) and (self.checkpoint_mtbf or self.mtbf_s) is None
        return needs_one and isinstance(self.single_law(), Recorded | Scaled | Fleet | Trace)

    def with_law_mtbf(self, n_nodes: int | None) -> ScenarioOptions:
        """Return these options. If they use the law's MTBF, set it for this number of processors."""
        law = self.single_law()
        if not self.uses_law_mtbf or law is None:
            return self
        count = n_nodes and max(1, n_nodes // self.cores_per_node)
        return msgspec.structs.replace(self, mtbf=law.mtbf_on(count))

    def _checkpoint(self) -> Checkpoints | None:
        if self.checkpoint == "none":
            return None
        if self.checkpoint == "perfect":
            return PerfectCheckpoints()
        mtbf_s = self.checkpoint_mtbf or self.mtbf_s
        if mtbf_s is None:
            raise InputError("needs an MTBF", f"--checkpoint {self.checkpoint}", "--mtbf as well")
        if self.checkpoint == "tiers:auto":
            try:
                return TierCheckpoints.under(self.failure_law(), self.tiers, mtbf_s)
            except InputError as error:
                raise error.at("--tiers") from None
        costs = self.checkpoint_cost, self.recovery_cost
        return CheckpointModel(mtbf_s, *costs, self.checkpoint_rounding)

    def _silent_errors(self) -> SilentErrors | None:
        rate, probability = self.silent_errors, self.silent_error_probability
        if rate is not None and probability is not None:
            expected = "one of the two"
            raise InputError("contradicts --silent-error-probability", "--silent-errors", expected)
        if rate is None and probability is None:
            return None
        return SilentErrors(rate, probability, self.seed)


OPTIONS = dict(
    sorted(
        declared(ScenarioOptions).items(),
        key=lambda item: item[1].extra["group"] in ("preparation", "run"),
    )
)
"""All options by name: first those of failures and nodes, then the others."""


def grouped(*groups: Group) -> tuple[str, ...]:
    """Return the names of the options of these groups, group by group."""
    return tuple(
        name for group in groups for name in OPTIONS if OPTIONS[name].extra["group"] == group
    )


FILES = tuple(name for name, option in OPTIONS.items() if option.kind is Path)
"""Names of the options that are files."""

OF_FAILURES = frozenset(grouped("law", "draw", "correlation"))
"""Names of the options that describe failures."""

MEASURED = frozenset(name for name in OPTIONS if OPTIONS[name].extra["measured"])
"""Names of the options that only affect what is measured."""
