# SPDX-License-Identifier: Apache-2.0
"""The simulations of an advice: the site and the runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from rebat.api.workloads import LoadedWorkload, as_file
from rebat.core.cores import groups_of
from rebat.core.errors import InputError
from rebat.core.job_table import Jobs
from rebat.core.numbers import duration
from rebat.models.checkpoint import young_daly_period_s
from rebat.models.failures.events import MachineEvent, machine_mtbf_s
from rebat.models.failures.fitting import UpTimes
from rebat.models.failures.law import Law
from rebat.models.failures.recorded import Recorded
from rebat.models.failures.renewal import MAX_SIGMA, SHAPES, Renewal
from rebat.models.failures.statistics import Fitted, fits, samples
from rebat.policies.partitions import differ, groups_of_partitions
from rebat.policies.presets import preset
from rebat.policies.site_rules import rules_in, without_each
from rebat.report.runs_index import parsed
from rebat.runs.case import case_with, expand
from rebat.runs.scenario import CheckpointModel, ScenarioOptions
from rebat.runs.staging import on_machine
from rebat.runs.unit import RunSpec
from rebat.studies.losses import RecordedLosses, recorded_events, recorded_losses
from rebat.workloads.checkpoint_table import (
    EARLIER,
    NONE,
    YOUNG_DALY,
    UsualCosts,
    with_checkpoints_of,
)
from rebat.workloads.site import checkpoint_rows

RULES: dict[str, str] = {
    "easy": "EASY backfilling",
    "baseline": "conservative backfilling",
    "easy-sfsj": "EASY with node stealing",
    "sfsj": "conservative backfilling with node stealing",
    "easy:react=replacement": "EASY with node replacement",
    "easy:order=shortest": "EASY, shortest jobs first",
}
"""Policies that are compared, each with its description in answers."""

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Checkpoint periods to simulate, in multiples of the Young/Daly period."""

N_SPARES = 4
"""Maximum number of different numbers of spare nodes to simulate, besides 0."""

YEAR_S = 365 * 86_400.0

LONGEST_RECORD_S = 100 * YEAR_S

TODAY, ASSUMED, OTHER_RULES, SPARES, PERIODS, FITTED = (
    "today",
    "checkpoints of no job and of all jobs",
    "rules",
    "spares",
    "periods",
    "fitted law",
)
"""Names of the grids."""


class AdvisedSite(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster that needs advice.

    Attributes
    ----------
    workload
        The jobs of the cluster, without checkpoints, with the work that earlier attempts saved.
    given
        The imported jobs, if they differ from ``workload``.
    policy
        The policy that represents the current scheduler of the cluster.
    options
        Machine, failures, and the Young/Daly checkpoints that all jobs could write.
    n_nodes
        Number of nodes (not cores) of the machine.
    mtbf_s
        Mean time between failures of the machine.
    down_nodes
        Mean number of nodes that are down.
    fitted
        A law that is fitted to the recorded failures, or None if the options already contain a law.
    checkpoints
        The checkpoints of the jobs today: `NONE`, `YOUNG_DALY`, or the file of a table.
    today
        The jobs with the checkpoints of the table, or None if there is no table.
    n_checkpointed
        Number of jobs with checkpoints in the table.
    recorded
        What failures cost in the recorded schedule, or None if there is no recorded schedule.
    changed
        The jobs under changed assumptions, by the name of the grid (see `advice.changed`).
    """

    workload: LoadedWorkload
    given: LoadedWorkload | None = None
    policy: str
    options: ScenarioOptions
    n_nodes: int
    mtbf_s: float
    down_nodes: float
    fitted: Renewal | None = None
    checkpoints: str = NONE
    today: LoadedWorkload | None = None
    n_checkpointed: int = 0
    recorded: RecordedLosses | None = None
    changed: dict[str, LoadedWorkload] = {}

    @property
    def name(self) -> str:
        """The name of the cluster."""
        return (self.given or self.workload).name

    @property
    def used(self) -> float:
        """Share of the node time that attempts used in the record, or 0 if it is unknown."""
        if self.recorded is None:
            return 0.0
        used_h = sum(group.used_h for group in self.recorded.groups if group.kind == "size")
        return used_h / self.recorded.total_h

    @property
    def usual(self) -> CheckpointModel:
        """The Young/Daly checkpoints that all jobs could write."""
        model = self.options.scenario().checkpoint
        assert isinstance(model, CheckpointModel)
        return model

    @property
    def rules(self) -> list[str]:
        """Today's policy, followed by the rules that are compared with it.

        If today's policy has rules of the site (priorities, limits, reservations), the others have
        them too. Today's policy without each of these rules is also compared.
        """
        own = parsed(self.policy)[1].get("rules")
        others = [with_options(policy, rules=own) if own else policy for policy in RULES]
        stated = rules_in(self.workload.machine)
        names = stated if own == "all" else own.split("+") if own else []
        others += [with_options(self.policy, rules=left) for left in without_each(names).values()]
        return list(dict.fromkeys([self.policy, *filter(self._supports, others)]))

    def _supports(self, policy: str) -> bool:
        """Return whether a policy can have the rules and the partitions of the site."""
        cores = self.options.cores_per_node
        try:
            chosen = on_machine(preset(policy), self.workload, self.n_nodes * cores, cores)
            parts = chosen.partitions(self.n_nodes * cores, cores)
        except InputError:
            return False
        spares = any(reaction.n_spares for reaction in chosen.point.reactions)
        return not (spares and any(map(differ, groups_of_partitions(parts))))

    @property
    def spares(self) -> list[int]:
        """The numbers of spare nodes: 0, and the mean number of down nodes times 1, 2, 4, ...."""
        first = max(1, round(self.down_nodes))
        if not self._supports(with_options(self.policy, react="replacement", spares=1)):
            return []
        tried = [first * 2**power for power in range(N_SPARES)]
        return [0, *(count for count in tried if count <= self.n_nodes // 8)]


def specs(site: AdvisedSite, seeds: Iterable[int]) -> list[RunSpec]:
    """Return all runs for these seeds, in the order of the questions that need them."""
    numbers = list(seeds)
    return [spec for grid in GRIDS for spec in grid(site, numbers)]


def today(site: AdvisedSite, seeds: Iterable[int]) -> Iterator[RunSpec]:
    """Yield today's policy under the failures of each seed, and once without failures."""
    yield spec_of(site, TODAY, 0, law=None, mtbf=None, checkpoint_mtbf=site.usual.mtbf_s)
    yield from (spec_of(site, TODAY, seed) for seed in seeds)


def _assumed(site: AdvisedSite, seeds: Iterable[int]) -> Iterator[RunSpec]:
    """Yield today's policy if no job writes checkpoints, and if all jobs do."""
    for seed in seeds:
        yield _of_all(site, ASSUMED, seed, None)
        yield _of_all(site, ASSUMED, seed, 1.0)


def _other_rules(site: AdvisedSite, seeds: Iterable[int]) -> Iterator[RunSpec]:
    for seed in seeds:
        yield from (spec_of(site, OTHER_RULES, seed, policy) for policy in site.rules)


def _spares(site: AdvisedSite, seeds: Iterable[int]) -> Iterator[RunSpec]:
    for seed in seeds:
        for count in site.spares:
            policy = with_options(site.policy, react="replacement", spares=count)
            yield spec_of(site, SPARES, seed, policy)


def _periods(site: AdvisedSite, seeds: Iterable[int]) -> Iterator[RunSpec]:
    for seed in seeds:
        yield from (_of_all(site, PERIODS, seed, factor) for factor in (*FACTORS, None))


def _fitted(site: AdvisedSite, seeds: Iterable[int]) -> Iterator[RunSpec]:
    if site.fitted is not None:
        for seed in seeds:
            for policy in site.rules:
                yield spec_of(site, FITTED, seed, policy, **with_law(site, site.fitted))


GRIDS = (today, _assumed, _other_rules, _spares, _periods, _fitted)


def with_law(site: AdvisedSite, law: Law) -> dict[str, Any]:
    """Return the options that change for another law. The period of checkpoints does not."""
    return {"law": law, "checkpoint_mtbf": site.usual.mtbf_s}


def with_options(policy: str, **options: object) -> str:
    """Return a policy with some of its options changed. Options with an empty value are left out.

    >>> with_options("easy:order=shortest", react="replacement", spares=2)
    'easy:order=shortest,react=replacement,spares=2'
    """
    name, present = parsed(policy)
    values = present | {key: str(value) for key, value in options.items()}
    texts = ",".join(f"{key}={value}" for key, value in values.items() if value)
    return f"{name}:{texts}".rstrip(":")


def spec_of(site: AdvisedSite, grid: str, seed: int, policy: str = "", **changes: Any) -> RunSpec:
    """Return a run, by default of today's policy, with the checkpoints of today.

    ``changes`` are other options of the scenario.
    """
    return _spec(site, grid, seed, policy, site.today or site.workload, changes)


def _of_all(site: AdvisedSite, grid: str, seed: int, factor: float | None) -> RunSpec:
    """Return a run of today's policy in which all jobs write the same kind of checkpoints.

    ``factor`` is their period in multiples of the Young/Daly period, or None without checkpoints.
    """
    changes: dict[str, Any] = {"checkpoint": "none"}
    if factor is not None:
        mtbf_s = site.usual.mtbf_s * factor**2
        changes = {"checkpoint": "young-daly", "checkpoint_mtbf": mtbf_s}
    return _spec(site, grid, seed, "", site.workload, changes)


def _spec(
    site: AdvisedSite,
    grid: str,
    seed: int,
    policy: str,
    workload: LoadedWorkload,
    changes: Mapping[str, Any],
) -> RunSpec:
    checkpoint = {} if site.checkpoints == YOUNG_DALY else {"checkpoint": "none"}
    options = replace(site.options, **{"seed": seed, **checkpoint, **changes})
    case = case_with(
        options,
        grid=grid,
        workloads={site.workload.name: workload.origin},
        policies=(policy or site.policy,),
        folder=str(Path.cwd()),
    )
    (spec,) = expand(case)
    return spec


# ---- the site's failures


def turned(events: Path, n_nodes: int) -> Recorded:
    """Return a failure law that replays recorded events.

    The replay starts at a different time for each seed.
    """
    return Recorded(str(events.absolute()), format="events", size=n_nodes, turn=True)


def fitted_law(law: Recorded, n_nodes: int) -> Renewal | None:
    """Return the renewal law that fits a record: Weibull gaps, log-normal repairs.

    Return None if there are too few failures for a fit. Shape and spread are limited to the ranges
    that the law allows.
    """
    in_order = msgspec.structs.replace(law, turn=False)
    gaps, _, repairs = samples(list(in_order.events(n_nodes, 0, LONGEST_RECORD_S)), n_nodes)
    shapes, spreads = _family(gaps.times, "weibull"), _family(repairs.times, "lognormal")
    if shapes is None or spreads is None:
        return None
    return Renewal(
        mtbf_s=float(gaps.times.failed_s.mean()),
        repair_s=float(repairs.times.failed_s.mean()),
        shape=min(max(shapes.parameters[1], SHAPES[0]), SHAPES[1]),
        sigma=min(spreads.parameters[1], MAX_SIGMA),
    )


def _family(times: UpTimes, name: str) -> Fitted | None:
    return next((fit for fit in fits(times) if fit.family == name), None)


def site_of(
    workload: LoadedWorkload,
    policy: str,
    options: ScenarioOptions,
    *,
    checkpoints: str = NONE,
    past: Path | None = None,
    folder: Path = Path(),
) -> AdvisedSite:
    """Describe the cluster of a workload, with its failures and a law fitted to them.

    Parameters
    ----------
    checkpoints : str
        The checkpoints of the jobs today: `NONE`, `YOUNG_DALY`, or the file of a table.
    past : Path, optional
        The recorded schedule of the workload.
    folder : Path
        Folder for the workload with the checkpoints of the table.
    """
    n_nodes = groups_of(options.nodes or workload.n_nodes, options.cores_per_node)
    options = _with_law(options, n_nodes).with_law_mtbf(options.nodes or workload.n_nodes)
    law = options.failure_law()
    if law is None or not law.seeded:
        expected = "--failures EVENTS, --law or --mtbf, so that failures differ between seeds"
        raise InputError("is missing", "failures", expected)
    first_year = list(law.events(n_nodes, 0, YEAR_S))
    mtbf_s = options.mtbf_s or machine_mtbf_s(first_year) or YEAR_S
    site = AdvisedSite(
        workload=workload,
        policy=policy,
        options=msgspec.structs.replace(options, mtbf=mtbf_s),
        n_nodes=n_nodes,
        mtbf_s=mtbf_s,
        down_nodes=_mean_down(first_year),
        fitted=fitted_law(law, n_nodes) if isinstance(law, Recorded) else None,
        checkpoints=checkpoints,
    )
    if checkpoints not in (NONE, YOUNG_DALY):
        usual = UsualCosts(site.usual.cost_s, site.usual.recovery_s)
        rows = checkpoint_rows(Path(checkpoints), usual)
        today, count = with_checkpoints_of(workload, rows, n_nodes, mtbf_s)
        site = msgspec.structs.replace(site, today=as_file(today, folder), n_checkpointed=count)
        if any(EARLIER in extra for extra in Jobs.of(workload.jobs).extra_fields):
            plain, _ = with_checkpoints_of(workload, rows, n_nodes, mtbf_s, only_work=True)
            place = folder / "without-checkpoints"
            place.mkdir(parents=True, exist_ok=True)
            site = msgspec.structs.replace(site, workload=as_file(plain, place), given=workload)
    if past is None:
        return site
    recorded = recorded_losses(past, workload, recorded_events(law), site.today)
    return msgspec.structs.replace(site, recorded=msgspec.structs.replace(recorded, by_job={}))


def _with_law(options: ScenarioOptions, n_nodes: int) -> ScenarioOptions:
    """Return the options with a failure law in place of the event file."""
    if options.failures is None:
        return options
    if options.cores_per_node > 1:
        expected = "--law record:file=EVENTS,turn=true, where EVENTS contains numbers of nodes"
        raise InputError("contains numbers of cores, not of nodes", str(options.failures), expected)
    law = turned(options.failures, n_nodes)
    return msgspec.structs.replace(options, law=law, failures=None)


def _mean_down(events: Sequence[MachineEvent]) -> float:
    """Return the mean number of nodes that are down from time 0 to the last event."""
    down, since_us, node_us = 0, 0, 0
    for event in events:
        node_us += down * (event.at_us - since_us)
        since_us = event.at_us
        down += -len(event.nodes) if event.available else len(event.nodes)
    return node_us / since_us if since_us else 0.0


def period_text(site: AdvisedSite, factor: float = 1.0) -> str:
    """Return a text that states the checkpoint periods of jobs of three sizes."""
    model, texts = site.usual, []
    for size in dict.fromkeys(max(1, math.ceil(site.n_nodes * part)) for part in (0.01, 0.1, 1.0)):
        period_s = young_daly_period_s(size, site.n_nodes, model.mtbf_s, model.cost_s)
        minutes = max(1, round(factor * period_s / 60))
        texts.append(f"{duration(60 * minutes)} on {size} node{'s' * (size > 1)}")
    return ", ".join(texts)
