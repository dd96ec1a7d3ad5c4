# SPDX-License-Identifier: Apache-2.0
"""Preparation of scenarios for the runs of `rebat run` and of campaigns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from rebat.core.attempts import check_ids
from rebat.core.cores import groups_of
from rebat.core.errors import InputError
from rebat.core.events import SimulationBegan
from rebat.core.job_table import Jobs
from rebat.core.jobs import Workload
from rebat.core.units import to_s, to_us
from rebat.engine.engine import OnProgress
from rebat.models.checkpoint import add_perfect, add_young_daly, checkpointed_profile
from rebat.models.failures.correlated import Correlated
from rebat.models.failures.events import GenericEvent, MachineEvent
from rebat.models.failures.history import History, Remembered, after, before
from rebat.models.failures.law import Law
from rebat.models.failures.laws import reads_files
from rebat.models.operations import check_operations
from rebat.models.tiers import add_tiers, parse_tiers
from rebat.policies.options import Adapt
from rebat.policies.partitions import partition_text
from rebat.policies.placement.hazards import NOTHING_FAILS, Hazards
from rebat.policies.presets import Preset
from rebat.results.measures.summary import Measures, parse_selection, parse_window
from rebat.runs.scenario import (
    MEASURED,
    Checkpoints,
    FailureScenario,
    PerfectCheckpoints,
    Scenario,
    SilentErrors,
    TierCheckpoints,
    grouped,
)
from rebat.runs.single import OnWarning, Runnable, RunResult, simulate
from rebat.workloads.load import load_workload
from rebat.workloads.machine import names_in, partitions_in_use, stated_rules_of


class Stage(msgspec.Struct, frozen=True):
    """A prepared workload and scenario. All policies share them."""

    workload: Workload
    n_nodes: int
    events: Iterable[MachineEvent]
    measures: Measures
    scenario: Scenario
    """Scenario that determines the machine events."""
    history: History | None = None
    """Failures before the run. Policies that predict failures use them."""

    @property
    def operations(self) -> Sequence[GenericEvent]:
        """Operations of an administrator."""
        file = self.scenario.operations
        return file.events if file else ()

    def run(
        self,
        policy: Runnable,
        on_progress: OnProgress | None = None,
        on_warning: OnWarning | None = None,
        explain: bool = False,
    ) -> RunResult:
        """Run one policy (see `single.simulate`)."""
        if isinstance(policy, Preset):
            policy = self._prepared(policy)
        return simulate(
            self.workload,
            policy,
            n_nodes=self.n_nodes,
            machine_events=self.events,
            measures=self.measures,
            on_progress=on_progress,
            uptime_us=self.history.uptime_us if self.history else None,
            cores_per_node=self.scenario.cores_per_node,
            operations=self.operations,
            max_attempts=self.scenario.max_attempts,
            on_warning=on_warning,
            explain=explain,
        )

    def _prepared(self, policy: Preset) -> Preset:
        """Return the policy with partitions, hazards (if it predicts failures) and seed."""
        policy = on_machine(policy, self.workload, self.n_nodes, self.scenario.cores_per_node)
        if policy.foresees:
            policy = policy.knowing(self._hazards(policy.foresight))
        failures = self.scenario.failures
        if policy.draws and failures:
            policy = policy.reseeded(failures.seed)
        return policy

    def _hazards(self, foresight: str) -> Hazards | None:
        """Return the hazards of the nodes, from the failure law or a fit to earlier failures."""
        check_foresight(self.scenario)
        failures = self.scenario.failures
        if foresight == "fit":
            return fitted(self.history) if self.history else None
        return failures.law.nodes(self.n_nodes, failures.seed) if failures else NOTHING_FAILS


def on_machine(policy: Preset, workload: Workload, n_nodes: int, cores_per_node: int = 1) -> Preset:
    """Return the policy with the rules of the site that it names, and with its partitions.

    The partitions are those of the recorded machine, if it has this size. Partitions in the options
    of the policy take precedence.
    """
    if policy.point.common.rules:
        policy = policy.with_rules(stated_rules_of(workload.machine))
    names = (workload.machine or {}).get("nodes")
    size = len(names_in(names)) if names else workload.n_nodes // cores_per_node
    if not policy.takes_partitions or size != n_nodes // cores_per_node:
        return policy
    return policy.on_partitions(
        "+".join(
            partition_text(row.name, row.nodes, row.words)
            for row in partitions_in_use(workload, cores_per_node)
        )
    )


def on_machine_of(began: SimulationBegan) -> Adapt | None:
    """Return a function that adapts a preset to the machine of a simulation of Batsim.

    The workload is read from Batsim's file. If it cannot be read here, or if there are several,
    return None.
    """
    paths = [Path(path) for path in began.workloads.values()]
    if len(paths) != 1 or not paths[0].is_file():
        return None
    try:
        workload = load_workload(paths[0])
    except InputError:  # Batsim accepts more than rebat
        return None
    return lambda preset, cores: on_machine(preset, workload, began.n_nodes, cores)


def check_foresight(scenario: Scenario) -> None:
    """Raise InputError if a policy would predict correlated failures.

    Hazards are defined per node, and the hazard of a job is their sum. This is wrong for nodes that
    fail together.
    """
    if scenario.failures and isinstance(scenario.failures.law, Correlated):
        problem = "failures are correlated, but the policy predicts independent failures of nodes"
        raise InputError(
            problem, "failure group, cascade", "a law without failure groups and cascades"
        )
    if scenario.failures and scenario.cores_per_node > 1:
        cores = scenario.cores_per_node
        problem = f"is {cores}, but the policy predicts independent failures of nodes"
        raise InputError(problem, "cores per node", "1")


def staged(workload: Workload, scenario: Scenario) -> Stage:
    """Combine a workload that `prepared` returned with the events of the scenario."""
    n_nodes = scenario.nodes or workload.n_nodes
    measured = {name: getattr(scenario, name) for name in MEASURED - {"window", "select"}}
    window, selection = parse_window(scenario.window), parse_selection(scenario.select)
    measures = Measures(window, selection, **measured, load=scenario.load)
    count = groups_of(n_nodes, scenario.cores_per_node)
    if scenario.operations:
        jobs = {*Jobs.of(workload.jobs).ids}
        try:
            check_operations(scenario.operations.events, count, jobs)
        except InputError as error:
            raise error.at(scenario.operations.file) from None
    events = machine_events(scenario, n_nodes)
    past = history(scenario, n_nodes)
    return Stage(workload, n_nodes, events, measures, scenario, past)


def prepared(workload: Workload, scenario: Scenario) -> Workload:
    """Return the workload with the checkpoints and silent errors of the scenario."""
    jobs = Jobs.of(workload.jobs)
    try:
        if b"#" in jobs.ids.data:
            check_ids(jobs.ids)
    except InputError as error:
        raise error.at(f"workload {workload.name}") from None
    if scenario.load != 1:
        jobs = jobs.at_load(scenario.load)
    if jobs is not workload.jobs:
        workload = msgspec.structs.replace(workload, jobs=jobs)
    n_nodes = scenario.nodes or workload.n_nodes
    checkpointing = _with_checkpoints(workload, scenario.checkpoint, n_nodes)
    return _with_silent_errors(checkpointing, scenario.silent_errors)


def has_checkpoints(workload: Workload) -> bool:
    """Return whether a profile of the workload has checkpoints."""
    return checkpointed_profile(workload) is not None


def preparation(scenario: Scenario) -> Scenario:
    """Return the part of a scenario that affects `prepared`, for use as a cache key."""
    return Scenario(**{name: getattr(scenario, name) for name in _PREPARING})


_PREPARING = tuple(
    name for name in Scenario.__struct_fields__ if name in ("nodes", *grouped("preparation"))
)
"""The parts of a scenario that affect `prepared`."""


def machine_events(scenario: Scenario, n_nodes: int) -> Iterable[MachineEvent]:
    """Return the failures of a scenario."""
    failures, cores = scenario.failures, scenario.cores_per_node
    if failures is None:
        return ()
    if failures.begin_s:
        past = _remembered(failures, n_nodes, cores, _content(failures.law))
        return after(past, to_us(failures.begin_s))
    return failures.law.events(n_nodes, failures.seed, failures.horizon_s, cores)


def _content(law: Law) -> str:
    """Return the contents of the law's files as a key for caches, because files may change."""
    return str(law.identity()) if reads_files(law) else ""


@lru_cache(maxsize=1)
def _remembered(
    failures: FailureScenario, n_nodes: int, cores_per_node: int, content: str
) -> Iterable[MachineEvent]:
    """Return the events of the law from time 0 on, which runs and their history share."""
    horizon_s, begin_s = failures.horizon_s, failures.begin_s
    last_s = None if horizon_s is None else horizon_s + begin_s
    events = failures.law.events(n_nodes, failures.seed, last_s, cores_per_node)
    return events if isinstance(events, Sequence) else Remembered(events)


def history(scenario: Scenario, n_nodes: int) -> History | None:
    """Return the failures before the run, or None if the run begins at time 0 of the law."""
    failures, cores = scenario.failures, scenario.cores_per_node
    if failures is None or not failures.begin_s:
        return None
    return _history(failures, n_nodes, cores, _content(failures.law))


@lru_cache(maxsize=4)
def _history(failures: FailureScenario, n_nodes: int, cores_per_node: int, content: str) -> History:
    past = _remembered(failures, n_nodes, cores_per_node, content)
    return before(past, n_nodes, to_us(failures.begin_s))


@lru_cache(maxsize=4)
def fitted(past: History) -> Hazards:
    """Fit a Weibull law for each node to the failures before the run."""
    from rebat.models.failures.fitting import fit_nodes  # slow import (scipy)

    try:
        fit = fit_nodes(past.events, past.n_nodes, until_s=to_s(past.begin_us))
    except InputError as error:
        raise error.at("foresight=fit") from None
    laws: Hazards = fit.table.laws
    return laws


def _with_checkpoints(workload: Workload, checkpoint: Checkpoints | None, n_nodes: int) -> Workload:
    if checkpoint is None:
        return workload
    check_without_checkpoints(
        workload,
        "no --checkpoint: the jobs then write these checkpoints. To replace them, run 'rebat "
        "workload prepare WORKLOAD --drop-checkpoints -o FILE' first",
    )
    if isinstance(checkpoint, PerfectCheckpoints):
        return add_perfect(workload)
    if isinstance(checkpoint, TierCheckpoints):
        return add_tiers(
            workload,
            parse_tiers(checkpoint.tiers),
            n_nodes=n_nodes,
            mtbf_s=checkpoint.mtbf_s,
            light_share=checkpoint.light_share,
            software=checkpoint.software,
            group=checkpoint.group or 1,
        )
    return add_young_daly(
        workload,
        n_nodes=n_nodes,
        mtbf_s=checkpoint.mtbf_s,
        cost_s=checkpoint.cost_s,
        recovery_s=checkpoint.recovery_s,
        rounding=checkpoint.rounding,
    )


def check_without_checkpoints(workload: Workload, expected: str) -> None:
    """Raise InputError if a profile has checkpoints, because they would be added a second time."""
    if name := checkpointed_profile(workload):
        problem = f"profile {name} already has checkpoints"
        raise InputError(problem, f"workload {workload.name}", expected)


def _with_silent_errors(workload: Workload, errors: SilentErrors | None) -> Workload:
    from rebat.models.silent_errors import add_silent_errors, error_rate, job_times_s

    if errors is None:
        return workload
    rate = errors.rate
    if errors.probability is not None:
        sizes = Jobs.of(workload.jobs).n_nodes
        rate = error_rate(job_times_s(workload), sizes, errors.probability)
    return workload if rate is None else add_silent_errors(workload, rate, seed=errors.seed)
