# SPDX-License-Identifier: Apache-2.0
"""A scheduler as a combination of a planning, a placement, reactions, and common options.

To add one of these parts, write a module with its options, and add them to a table below.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from rebat.contract import Policy
from rebat.core.cores import MAX_NODES
from rebat.core.errors import InputError
from rebat.core.options import DIALECTS, STAGES, Dialect, Recovery, SessionOptions, parse_stage
from rebat.core.units import parse_duration, to_us
from rebat.models.formula import COLUMNS, NAMED, Formula, formula_of
from rebat.models.power import read_power
from rebat.policies.composition import Duty, Planning, Scheduler
from rebat.policies.context import RIGID, Context, PlanningOptions, ReactionOptions
from rebat.policies.guard import Guarded
from rebat.policies.limits import OwnLimit, OwnLimits, read_limits
from rebat.policies.own import OwnCode, file_of, is_own, name_of, source_of
from rebat.policies.parted import InEach, Parts, check_shared
from rebat.policies.partitions import (
    differ,
    groups_of_partitions,
    partitions_on,
    read_partitions,
)
from rebat.policies.placement.cores import ClusterOptions
from rebat.policies.placement.hazards import Hazards
from rebat.policies.placement.plans import (
    AnyOptions,
    CustomOptions,
    NamedOptions,
    PlacementOptions,
)
from rebat.policies.placement.torus import (
    FapsOptions,
    LinearOptions,
    RandomOptions,
    TorusFirstOptions,
)
from rebat.policies.planning.by_rules import RulePlanning
from rebat.policies.planning.fifo import FifoOptions
from rebat.policies.planning.flexible import Flexible, FlexibleOptions
from rebat.policies.planning.list_scheduling import ListOptions
from rebat.policies.planning.shelves import PlainShelfOptions, ShelfOptions
from rebat.policies.queue_order import QUEUE_ORDERS, OwnOrder, check_order, order_of
from rebat.policies.reactions.compaction import CompactionOptions
from rebat.policies.reactions.defragmentation import DefragmentationOptions
from rebat.policies.reactions.exclusion import Exclusion, ExclusionOptions
from rebat.policies.reactions.foresight import ForesightOptions
from rebat.policies.reactions.horizon import Horizon
from rebat.policies.reactions.operations import DRAINS, Operations
from rebat.policies.reactions.preemption import PreemptionOptions
from rebat.policies.reactions.priorities import PrioritiesOptions
from rebat.policies.reactions.replacement import ReplacementOptions
from rebat.policies.reactions.sleep import SleepOptions
from rebat.policies.reactions.stealing import StealingOptions
from rebat.policies.shares import RULES, Shares, read_shares
from rebat.policies.site_rules import check_rules
from rebat.policies.variants import (
    Difference,
    Options,
    choice,
    fields,
    number,
    parts,
    price,
    table,
    text,
)
from rebat.policies.windows import ANNOUNCED, Announced, read_reservations
from rebat.state import codes

PLANNINGS: dict[str, type[PlanningOptions]] = table(
    ListOptions, FlexibleOptions, ShelfOptions, PlainShelfOptions, FifoOptions
)
"""Plannings by name; they decide when attempts start."""

PLACEMENTS: dict[str, type[PlacementOptions]] = table(
    AnyOptions,
    NamedOptions,
    LinearOptions,
    TorusFirstOptions,
    RandomOptions,
    FapsOptions,
    ClusterOptions,
)
"""Placements by name. They choose the nodes of attempts."""

REACTIONS: dict[str, type[ReactionOptions]] = table(
    StealingOptions,
    ReplacementOptions,
    CompactionOptions,
    PrioritiesOptions,
    SleepOptions,
    DefragmentationOptions,
    ForesightOptions,
    ExclusionOptions,
    PreemptionOptions,
)
"""Reactions by name. 'requeue' means no reaction: the session then requeues failed jobs."""


def _check_power(watts: str) -> None:
    if watts:
        read_power(watts)


def _stage(description: str) -> Meta:
    """Return the metadata of an option that sets how long a recovery stage of failed jobs takes."""
    return text(parse_stage, f"{description}: a duration like 30s, random, or by cause.")


class CommonOptions(Options, frozen=True):
    """Options of every scheduler."""

    order: Annotated[
        str,
        choice(
            (*QUEUE_ORDERS, *NAMED),
            "Queue order, FILE.py:FUNCTION, or a formula like 1000*age/week+10*size. The largest "
            f"value of a formula is first. Columns: {', '.join(COLUMNS)}. "
            "multifactor:age=W,fairshare=W,size=W,partition=W uses Slurm's multifactor priority.",
            OwnOrder,
            check_order,
        ),
    ] = "fcfs"
    order_period: Annotated[
        str | float,
        text(
            parse_duration,
            "Time between two sorts of the queue, if the order changes over time, like 5min "
            "(Slurm's PriorityCalcPeriod). 0: before every plan.",
        ),
    ] = 0.0
    shares: Annotated[
        str,
        text(
            read_shares,
            "Shares of accounts and users for the column fairshare, like "
            "phys=3(ann=1+bo=2)+chem=1. Other accounts and users have one share.",
        ),
    ] = ""
    fairshare_rule: Annotated[
        str,
        choice(
            RULES,
            "Rule for the column fairshare: Slurm's fair tree (tree), or its classic algorithm "
            "(classic).",
        ),
    ] = "tree"
    half_life: Annotated[
        str | float,
        text(
            parse_duration,
            "Time in which the weight of past usage halves, for the columns usage and fairshare. "
            "0: usage does not decay.",
        ),
    ] = "7d"
    semantics: Annotated[
        str,
        choice(
            DIALECTS,
            "Whether to follow the text of the node-stealing paper or the program of its authors. "
            "This sets how interrupted jobs continue, and the value of all options that are "
            "'auto'.",
        ),
    ] = "paper"
    passes: Difference = "auto"
    digits: Difference = "auto"
    silent_errors: Annotated[
        str,
        choice(
            ("accept", "retry"),
            "What happens to a job that ends with a silent error: it fails (accept), or runs "
            "again (retry).",
        ),
    ] = "accept"
    migration_cost: Annotated[
        str | float,
        text(
            partial(price, "migration_cost"),
            "Time to checkpoint and restart a job: a number of seconds, 'table' (Table 1 of "
            "Rodríguez-Pascual et al. 2019), or bandwidth*MB_PER_S.",
            ("table",),
        ),
    ] = "table"
    purge: Annotated[
        float,
        number(
            0,
            1e9,
            "seconds",
            "Slurm's PURGE_JOB_INTERVAL in seconds. Half of this interval is part of the migration "
            "costs 'table' and 'bandwidth'.",
        ),
    ] = 60.0
    drain: Annotated[
        str,
        choice(
            ("auto", *DRAINS),
            "What happens to jobs on nodes that an operation drains: they are checkpointed and "
            "requeued (migrate), or run to their ends (wait). ignore: no operation is carried out. "
            "auto: migrate in runs with operations, ignore under an external simulator.",
        ),
    ] = "auto"
    power: Annotated[
        str,
        text(
            _check_power,
            "Power of a node in watts: asleep, without jobs, and with all cores in use, like "
            "10/100/300. If this option is empty, no energy is computed.",
        ),
    ] = ""
    detect: Annotated[str | float, _stage("Time until a failure of a job is detected")] = "0"
    diagnose: Annotated[
        str | float, _stage("Time after the detection until it is known which nodes have failed")
    ] = "0"
    reschedule: Annotated[
        str | float, _stage("Time until the job is rescheduled, after the diagnosis")
    ] = "0"
    init: Annotated[
        str | float,
        _stage("Time until a failed job has started again, before it loads its checkpoint"),
    ] = "0"
    operators: Annotated[
        str, text(str, "Users who may request operations, joined by +. all: every user.")
    ] = "all"
    horizon: Annotated[
        float,
        number(
            0,
            1e9,
            "seconds",
            "Time at which eternal jobs end, in seconds. 0: they end when no other job is left.",
        ),
    ] = 0.0
    rules: Annotated[
        str,
        text(
            check_rules,
            "Rules of the site that apply, from the workload or site.toml: all, or order, limits "
            "and reservations, joined by +. They replace the options with these names.",
            ("all", "order", "limits", "reservations"),
        ),
    ] = ""
    reservations: Annotated[
        str,
        text(
            read_reservations,
            "Reservations of nodes, NAME:NODES:begin=TIME:length=TIME[:every=TIME][:user=NAME]"
            "[:account=NAME], joined by +. Example: maint:0-63:begin=2d:length=8h. No other job "
            "starts on a node if it could still run in the reservation. announced: only the "
            "maintenance that operations announce (default in runs with announcements).",
            (ANNOUNCED,),
        ),
    ] = ""
    limits: Annotated[
        str,
        text(
            read_limits,
            "Maximum numbers of running jobs, and of nodes on which they run, for each user, "
            "account or queue: KIND[=NAME]:jobs=N:nodes=N, joined by +. Example: "
            "user:jobs=4+user=ann:jobs=8+account=phys:nodes=64. account=NAME:child=NAME joins "
            "accounts, and user=NAME:account=NAME is for one account. Or FILE.py:FUNCTION. A job "
            "that would exceed a limit waits without a reservation.",
            custom=OwnLimit,
        ),
    ] = ""

    @property
    def formula(self) -> Formula | None:
        """The formula of the queue order, or None if the order is another one."""
        if self.order in QUEUE_ORDERS or is_own(self.order):
            return None
        return formula_of(self.order)

    seed: Annotated[
        int,
        number(
            0,
            2**63 - 1,
            "a whole number",
            "Seed of the queue order 'random' and of the placement 'rps'. rps also uses the seed "
            "of the failures.",
        ),
    ] = 0


def is_in_python(order: str) -> bool:
    """Return whether Python computes the keys of a queue order."""
    return is_own(order) or order in QUEUE_ORDERS.keys() - codes.ORDERS


class Point(msgspec.Struct, frozen=True):
    """A scheduler: a planning, a placement and reactions (the parts), and all options."""

    planning: PlanningOptions = ListOptions()
    placement: PlacementOptions = AnyOptions()
    reactions: tuple[ReactionOptions, ...] = ()
    common: CommonOptions = CommonOptions()

    @property
    def parts(self) -> tuple[Options, ...]:
        """The parts, including the common options."""
        placement = (self.placement,) if self.planning.places else ()
        return (self.common, self.planning, *placement, *self.reactions)

    @property
    def values(self) -> dict[str, Any]:
        """All options by name, including options without an effect."""
        names: dict[str, Any] = {}
        for part in self.parts:
            names |= {name: getattr(part, name) for name in fields(type(part))}
            if part is self.common:
                names["planning"], names["placement"] = self.planning.name, self.placement.name
                names["react"] = "+".join(part.name for part in self.reactions) or "requeue"
        return names

    @property
    def effective(self) -> dict[str, Any]:
        """The options with an effect, by name."""
        idle = {name for part in self.parts for name in part.idle()} | self._idle_of_orders
        names = self.values
        if not self.planning.places:
            idle.add("placement")
        return {name: value for name, value in names.items() if name not in idle}

    @property
    def formulas(self) -> list[Formula]:
        """The distinct formulas of the queue orders: of the scheduler, and of partitions."""
        orders = [row.options.get("order", "") for row in read_partitions(self.partitions)]
        own = [formula_of(order) for order in orders if order and order not in QUEUE_ORDERS]
        return [*dict.fromkeys([*filter(None, [self.common.formula]), *own])]

    @property
    def n_spares(self) -> int:
        """Number of nodes that reactions reserve."""
        return sum(reaction.n_spares for reaction in self.reactions)

    @property
    def accounts_usage(self) -> bool:
        """Whether a queue order depends on the usage of users."""
        return any(formula.columns & {"usage", "fairshare"} for formula in self.formulas)

    @property
    def _idle_of_orders(self) -> set[str]:
        """The options that have no effect on the queue orders."""
        names = set()
        if not any("fairshare" in formula.columns for formula in self.formulas):
            names |= {"shares", "fairshare_rule"}
        if not self.accounts_usage:
            names.add("half_life")
        if not any(formula.varies for formula in self.formulas):
            names.add("order_period")
        return names

    @property
    def partitions(self) -> str:
        """The partitions, in the notation of `partitions.read_partitions`.

        Partitions state no order that is also the order of the scheduler.
        """
        stated = rf":order={re.escape(self.common.order)}(?=[:+]|$)"
        return re.sub(stated, "", str(self.values.get("partitions", "")))

    @property
    def parted(self) -> bool:
        """Whether the machine has partitions."""
        return bool(read_partitions(self.partitions))

    @property
    def dialect(self) -> Dialect:
        """Which details follow the node-stealing paper, and which follow its program.

        With partitions, a waiting job holds its own nodes, because the lowest free nodes of the
        machine may be in another partition.
        """
        dialect = DIALECTS[self.common.semantics]
        values = {name: value for name, value in self.values.items() if value != "auto"}
        values["hold_margin_s"] = float(values.get("hold_margin", dialect.hold_margin_s))
        changes = {name: values[name] for name in dialect.__struct_fields__ if name in values}
        if self.parted:
            changes["held"] = "surviving"
        return msgspec.structs.replace(dialect, **changes)

    @property
    def session(self) -> SessionOptions:
        """Options of the session that runs this scheduler."""
        common, values = self.common, self.values
        return SessionOptions(
            dialect=self.dialect,
            silent_errors="retry" if common.silent_errors == "retry" else "accept",
            resize_cost=str(values.get("resize_cost", "0")),
            migration_cost=str(common.migration_cost),
            purge_s=common.purge,
            recovery=self.recovery,
            resumes_moldable=values.get("restarts") == "checkpoint",
        )

    @property
    def recovery(self) -> Recovery | None:
        """The stages of the recovery of failed jobs; None if recovery takes no time."""
        stages = {name: str(getattr(self.common, name)) for name in STAGES}
        recovery = Recovery(**stages, seed=self.common.seed)
        return recovery if recovery.stages else None

    @property
    def own_rules(self) -> dict[str, str]:
        """File and function of each user-defined rule other than reactions, by option."""
        values = self.values.items()
        return {name: value for name, value in values if is_own(value) and name != "react"}

    @property
    def own_reactions(self) -> list[str]:
        """File and name of each user-defined reaction."""
        return [part.name for part in self.reactions if is_own(part.name)]

    @property
    def own_sources(self) -> list[OwnCode]:
        """File name, name and hash of all user-defined code."""
        return [*map(source_of, (*self.own_rules.values(), *self.own_reactions))]

    def check(self) -> None:
        """Raise InputError if the parts, or the options of a part, cannot be combined."""
        for part in self.parts:
            part.check()
        self._check_pauses()
        boxes = isinstance(self.placement, LinearOptions)
        custom = isinstance(self.placement, CustomOptions)
        for part in (*self.reactions, self.planning):
            if part.boxless and (boxes or (custom and part.uncustom)):
                problem = f"{part.name} is not possible with placement {self.placement.name!r}"
                expected = f"placement=any, named or cluster: {part.boxless}"
                raise InputError(problem, expected=expected)
        self._check_order_and_limits()
        self._check_reservations()
        if self.parted:
            self._check_partitions()
        if not self.placement.backwards and any(
            row.backwards for row in read_partitions(self.partitions)
        ):
            problem = f"reversed partitions are not possible with placement {self.placement.name!r}"
            raise InputError(problem, "axis partitions", "placement=cluster")

    def _check_reservations(self) -> None:
        """Raise InputError if the other parts do not support reservations of nodes."""
        if not self.common.reservations:
            return
        moving = [part.name for part in self.reactions if part.moves_jobs]
        allows = isinstance(self.planning, FifoOptions | ListOptions) and not self.chooses_nodes
        if moving or not allows:
            name = f"planning={self.planning.name}"
            if moving:
                name = f"react={moving[0]}"
            elif isinstance(self.planning, ListOptions):
                name = f"placement={self.placement.name}"
            expected = "list with placement=any or named, or fifo; reactions that do not move jobs"
            problem = f"reservations of nodes are not possible with {name}"
            raise InputError(problem, "axis reservations", expected)

    def _check_order_and_limits(self) -> None:
        """Raise InputError if the other parts do not support the order, or limits of users."""
        names = [part.name for part in self.reactions]
        if any(formula.varies for formula in self.formulas) and "preempt" in names:
            problem = "react=preempt is not possible with an order that changes over time"
            raise InputError(problem, "axis order", "an order that does not change over time")
        if not self.common.limits:
            return
        resizes = self.planning.malleability is not None
        others = [part.name for part in self.reactions if part.serves_queue]
        if resizes or others:
            name = f"planning={self.planning.name}" if resizes else f"react={others[0]}"
            problem = f"limits are not possible with {name}"
            raise InputError(problem, "axis limits", "another planning or reaction")

    def _check_partitions(self) -> None:
        """Raise InputError if the other parts do not support the partitions."""
        placement = self.placement
        alike = isinstance(placement, AnyOptions | NamedOptions)
        alike |= isinstance(self.planning, FifoOptions)
        if not (alike or isinstance(placement, ClusterOptions)):
            problem = f"partitions are not possible with placement {placement.name!r}"
            raise InputError(problem, "axis partitions", "placement=any, named or cluster")
        try:
            partitions = partitions_on(self.partitions, MAX_NODES, 1)
        except InputError:  # a share may have no node on this machine
            return
        for group in groups_of_partitions(partitions):
            if differ(group):
                flexible = self.planning.malleability is not None
                check_shared(group, self.n_spares, flexible, alike)

    def _check_pauses(self) -> None:
        """Raise InputError if the other parts do not support paused jobs."""
        if self.effective.get("wait") != "hold":
            return
        if len(self.reactions) > 1 and "stealing" in {part.name for part in self.reactions}:
            expected = "wait=requeue: a paused job steals no nodes"
            raise InputError("hold is not possible with stealing", "axis wait", expected)
        if self.dialect.two_passes:
            raise InputError("hold is not possible with passes=two", "axis wait", "passes=one")

    @property
    def chooses_nodes(self) -> bool:
        """Whether plans reserve nodes that a chooser of the placement chooses."""
        alike = isinstance(self.placement, AnyOptions | NamedOptions)
        return isinstance(self.planning, ListOptions) and not alike

    @property
    def limits(self) -> str:
        """The limits, or an empty text if they are user-defined."""
        return "" if is_own(self.common.limits) else self.common.limits

    @property
    def orders(self) -> dict[str, str]:
        """The queue orders by the names that partitions have. An empty name: the scheduler's."""
        rows = read_partitions(self.partitions)
        names = [str(row.options.get("order", "")) for row in rows] or [""]
        return {name: name or self.common.order for name in names}

    def policy(self, hazards: Hazards | None = None) -> Policy:
        """Return a new policy. Errors of user-defined rules name the line of the rule.

        ``hazards`` is the failure law of the run, if there is one.
        """
        common = self.common
        if common.rules:
            expected = "a workload or site.toml that states the rules of its site"
            raise InputError("the rules of the site are unknown", "axis rules", expected)
        context = self.context(hazards)
        plans = not isinstance(self.planning, FifoOptions)
        parts = Parts(self.partitions, partial(self.context, hazards), plans)
        announced = Announced() if common.reservations else None
        decide = None
        if isinstance(self.planning, FlexibleOptions):
            decide = Flexible(self.planning, context, parts)
        planning: Planning = RulePlanning(self, context.placement, announced, decide)
        if is_own(common.limits):
            planning = OwnLimits(planning, common.rule("limits"))
        reactions = [
            InEach(parts, reaction.make, reaction.in_each == "group")
            if self.parted and reaction.in_each
            else reaction.make(context)
            for reaction in self.reactions
        ]
        returning = [made.returning for made in reactions if isinstance(made, Exclusion)]
        duties = [*self.duties(announced), *returning]
        policy = Scheduler(planning, reactions, duties)
        own = self.own_rules.values()  # a reaction has its own guard
        if not own:
            return policy
        return Guarded(policy, "+".join(map(name_of, own)), [file_of(place) for place in own])

    def shares(self) -> Shares:
        """Return the accounts and users of the machine, without usage."""
        common = self.common
        half_life_us = to_us(parse_duration(common.half_life))
        return Shares(common.shares, half_life_us, common.fairshare_rule)

    def context(self, hazards: Hazards | None = None) -> Context:
        """Return the inputs that the parts share, in addition to their options."""
        common, rule = self.common, self.planning.malleability
        order = common.rule("order") if is_own(common.order) else order_of(common.order)
        return Context(
            order=order,
            seed=common.seed,
            placement=self.placement.make(hazards, common.seed),
            partitions=self.partitions if self.parted else "",
            reserves=bool(common.reservations),
            hazards=hazards,
            dialect=self.dialect,
            flexible=rule is not None,
            rule=rule or RIGID,
            n_spares=self.n_spares,
            hit_first=any(reaction.hit_first for reaction in self.reactions),
            margin_us=self.planning.margin_us,
        )

    def duties(self, announced: Announced | None = None) -> list[Duty]:
        """Return the reactions that carry out operations and end eternal jobs."""
        common = self.common
        duties: list[Duty] = [Horizon(to_us(common.horizon))]
        migrates = DRAINS[common.drain] if common.drain != "auto" else None
        if migrates is not None:
            operators = parts(common.operators)
            duties.insert(0, Operations(migrates, operators, self.partitions, announced))
        return duties
