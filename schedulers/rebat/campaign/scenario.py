"""A scenario made ready to run policies on: one way, for `rebat run` and for campaigns."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from rebat.campaign.single import Runnable, RunResult, simulate
from rebat.campaign.spec import CheckpointModel, FailureScenario, Scenario, SilentErrors
from rebat.core.jobs import Workload
from rebat.engine.engine import OnProgress
from rebat.metrics.summary import Measures, parse_selection, parse_window
from rebat.models.checkpoint import add_young_daly
from rebat.models.failures.events import MachineEvent
from rebat.policies.presets import Preset


class Stage(msgspec.Struct, frozen=True):
    """All that policies meet: they see the same, one after the other.

    ``failures`` is what the events come from; policies that foresee failures are told of it.
    """

    workload: Workload
    n_nodes: int
    events: Iterable[MachineEvent]
    measures: Measures
    failures: FailureScenario | None = None

    def run(self, policy: Runnable, on_progress: OnProgress | None = None) -> RunResult:
        """Run one policy; see `single.simulate`."""
        if isinstance(policy, Preset) and policy.foresees and self.failures:
            failures = self.failures
            policy = policy.knowing(failures.law.nodes(self.n_nodes, failures.seed))
        return simulate(
            self.workload,
            policy,
            n_nodes=self.n_nodes,
            machine_events=self.events,
            measures=self.measures,
            on_progress=on_progress,
        )


def staged(workload: Workload, scenario: Scenario) -> Stage:
    """A workload that was `prepared` for the scenario, and what befalls it.

    Raises
    ------
    InputError
        For failures or measures that cannot be.
    """
    n_nodes = scenario.nodes or workload.n_nodes
    measures = Measures(parse_window(scenario.window), parse_selection(scenario.select))
    events = machine_events(scenario.failures, n_nodes)
    return Stage(workload, n_nodes, events, measures, scenario.failures)


def prepared(workload: Workload, scenario: Scenario) -> Workload:
    """The workload as it is run: with the checkpoints, then the silent errors asked for."""
    n_nodes = scenario.nodes or workload.n_nodes
    checkpointing = _with_checkpoints(workload, scenario.checkpoint, n_nodes)
    return _with_silent_errors(checkpointing, scenario.silent_errors)


def preparation(scenario: Scenario) -> Scenario:
    """What of a scenario `prepared` looks at: scenarios that share it share the workload."""
    return Scenario(
        nodes=scenario.nodes,
        checkpoint=scenario.checkpoint,
        silent_errors=scenario.silent_errors,
    )


def machine_events(failures: FailureScenario | None, n_nodes: int) -> Iterable[MachineEvent]:
    """The failures that a scenario asks for, if any."""
    if failures is None:
        return ()
    return failures.law.events(n_nodes, failures.seed, failures.horizon_s)


def _with_checkpoints(
    workload: Workload, checkpoint: CheckpointModel | None, n_nodes: int
) -> Workload:
    if checkpoint is None:
        return workload
    return add_young_daly(
        workload,
        n_nodes=n_nodes,
        mtbf_s=checkpoint.mtbf_s,
        cost_s=checkpoint.cost_s,
        recovery_s=checkpoint.recovery_s,
        rounding=checkpoint.rounding,
    )


def _with_silent_errors(workload: Workload, errors: SilentErrors | None) -> Workload:
    from rebat.models.silent_errors import add_silent_errors, error_rate, job_times_s

    if errors is None:
        return workload
    rate = errors.rate
    if errors.probability is not None:
        sizes = [job.n_nodes for job in workload.jobs]
        rate = error_rate(job_times_s(workload), sizes, errors.probability)
    return workload if rate is None else add_silent_errors(workload, rate, seed=errors.seed)
