# SPDX-License-Identifier: Apache-2.0
"""What is to be run: checked, read and made ready; and the verb that runs it."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from rebat.campaign.comparing import run_each
from rebat.campaign.options import FailureOptions, ScenarioOptions
from rebat.campaign.scenario import Stage, prepared, staged
from rebat.campaign.seeds import Asked, run_seeds
from rebat.campaign.single import Runnable, RunResult
from rebat.campaign.spec import Scenario
from rebat.console.progress import compiling_notice, counting_bar, simulation_bar
from rebat.core.errors import InputError
from rebat.core.files import file_hash
from rebat.core.jobs import Workload
from rebat.core.units import parse_duration
from rebat.library import remarks
from rebat.library.checks import (
    OF_CORRELATIONS,
    Given,
    check_options,
    given_by,
    given_of,
    in_python,
)
from rebat.library.choosing import Policies, chosen
from rebat.library.failures import Duration
from rebat.library.many import SeedOptions
from rebat.library.remarks import Remark
from rebat.library.result import Result
from rebat.library.workloads import LoadedWorkload, kept, load_workload
from rebat.metrics.platform import WalltimeKills
from rebat.metrics.seeded import Seeds
from rebat.metrics.summary import parse_selection, parse_window
from rebat.models.failures.correlated import NONE
from rebat.models.failures.laws import name_of


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """Policies, and all that they meet; nothing has run yet."""

    policies: list[Any]
    workload: LoadedWorkload
    stage: Stage
    options: ScenarioOptions
    many: SeedOptions
    nodes: int | None
    window: str
    select: str

    @property
    def remarks(self) -> list[Remark]:
        """What is to be known before it is run."""
        return [*remarks.of_input(self.stage.workload, self.options, self.stage.n_nodes)]

    @property
    def provenance(self) -> dict[str, Any]:
        """The workload and all options, for the records."""
        jobs, notes = len(self.stage.workload.jobs), self.stage.workload.notes
        return {
            "workload": {
                "file": Path(self.workload.origin.file or "").name,
                "sha256": self.workload.sha256,
                "jobs": jobs,
                **({"notes": notes} if notes else {}),
            },
            "options": {
                "nodes": self.stage.n_nodes,
                "window": self.window,
                "select": self.select,
                **_plain(self.options),
            },
        }

    def run(self) -> Result:
        """Run it, with progress on standard error.

        Raises
        ------
        InputError
            When the input is at fault.
        PolicyError
            When every policy failed; of many seeds, when one did.
        """
        with compiling_notice():
            return self._seeds() if self.many.many else self._once()

    def _once(self) -> Result:
        done = run_each(self.policies, self._run_one)
        return Result.of_runs(done, self.options.seed, self.provenance)

    def _run_one(self, policy: Runnable) -> RunResult:
        with simulation_bar(policy.name, len(self.stage.workload.jobs)) as on_progress:
            return self.stage.run(policy, on_progress)

    def _seeds(self) -> Result:
        self._check_drawn()
        names = {policy.name: getattr(policy, "place", policy.name) for policy in self.policies}
        n_seeds = self.many.n_seeds
        what = Asked(
            self.workload.origin, names, self._scenario, self.options.seed, n_seeds,
            self.many.workers or len(os.sched_getaffinity(0)), self.many.narrow(),
        )  # fmt: skip
        with counting_bar("runs", n_seeds * len(names)) as on_progress:
            seeds: Seeds = run_seeds(what, on_progress)
        return Result.of_seeds(seeds, self.provenance)

    def _scenario(self, seed: int) -> Scenario:
        options = msgspec.structs.replace(self.options, seed=seed)
        return options.scenario(self.nodes, self.window, self.select)

    def _check_drawn(self) -> None:
        scenario = self._scenario(self.options.seed)
        failures = scenario.failures
        if not (failures and failures.law.drawn) and scenario.silent_errors is None:
            raise InputError(
                "has no effect: nothing is drawn", "--seeds", "--mtbf, a --law or --silent-errors"
            )


def study(
    workload: Callable[[], LoadedWorkload], policies: Policies, options: ScenarioOptions,
    given: Given, many: SeedOptions, nodes: int | None, window: str, select: str,
) -> Study:  # fmt: skip
    """Check everything, then read the workload and make it ready.

    Raises
    ------
    InputError
        For what contradicts itself, has no effect or cannot be read.
    """
    many.check()
    check_options(options, given)
    with given_by("--policy"):
        presets = chosen(policies, many.many)
    scenario = options.scenario(nodes, window, select)
    with given_by("--window"):
        parse_window(scenario.window)
    with given_by("--select"):
        parse_selection(scenario.select)
    jobs = workload()
    stage = staged(prepared(jobs, scenario), scenario)
    return Study(
        policies=presets, workload=jobs, stage=stage, options=options, many=many, nodes=nodes,
        window=window, select=select,
    )  # fmt: skip


def run(
    workload: Workload | str | Path,
    policies: Policies,
    *,
    failures: FailureOptions | None = None,
    checkpoint: str = "none",
    seeds: int | None = None,
    until_width: float | None = None,
    until_metric: str | None = None,
    workers: int | None = None,
    nodes: int | None = None,
    window: str = "auto",
    select: str = "auto",
    **options: Duration | None,
) -> Result:
    """Run policies on a workload, on the embedded engine, and compare them.

    Parameters
    ----------
    workload : Workload, str or Path
        From `load_workload` or made in Python; or what `load_workload` takes.
    policies : str, class, or several of them
        Schedulers by name (``rebat.policies()`` lists them), with changed axes if wanted:
        ``"baseline:depth=easy"``; one's own as ``"FILE.py:CLASS"`` or as a class.
    failures : FailureOptions, optional
        From `failures`; without it no node fails.
    checkpoint : {"none", "young-daly", "perfect"}
        As ``rebat run --checkpoint``.
    seeds, until_width, until_metric, workers
        As ``rebat run --seeds`` and the rest: so many seeds, on all cores, each policy seeing the
        same failures per seed; the result then has intervals, and no jobs of single runs.
    nodes : int, optional
        Nodes of the machine (default: the workload's).
    window, select : str
        What to measure, as ``rebat run --window`` and ``--select``.
    **options
        ``checkpoint_cost``, ``recovery_cost`` (durations), ``checkpoint_rounding``,
        ``silent_errors``, ``silent_error_probability``, ``operations`` (a file),
        ``cores_per_node``, ``walltime_kills``: each as the option of ``rebat run``; ``seed``, where
        nothing but silent errors is drawn.

    Returns
    -------
    Result
        With ``jobs``, ``attempts``, ``nodes`` and ``metrics`` as pandas DataFrames.

    Raises
    ------
    InputError
        For what contradicts itself, has no effect or cannot be read.
    PolicyError
        When every policy failed.

    Examples
    --------
    >>> from rebat.library.failures import failures
    >>> result = run("toy", ["baseline", "sfsj"], failures=failures(file="toy"))
    >>> result.jobs.groupby("policy")["flow"].max()
    policy
    baseline    25.0
    sfsj        21.0
    Name: flow, dtype: float64
    """
    with in_python(), tempfile.TemporaryDirectory() as folder:
        asked = _options(failures, {"checkpoint": checkpoint, **options})
        found = study(
            lambda: _read(workload, Path(folder)),
            policies,
            asked,
            given_of(failures, options),
            SeedOptions(
                seeds=seeds, until_width=until_width, until_metric=until_metric, workers=workers
            ),
            nodes,
            window,
            select,
        )
        for remark in found.remarks:
            if remark.kind == "warning":
                warnings.warn(remark.text, stacklevel=2)
        return found.run()


def _read(workload: Workload | str | Path, folder: Path) -> LoadedWorkload:
    return kept(workload, folder) if isinstance(workload, Workload) else load_workload(workload)


class RunOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of `run` that are those of ``rebat run``; durations in human units."""

    checkpoint: Literal["none", "young-daly", "perfect"] = "none"
    checkpoint_cost: Duration = "5min"
    recovery_cost: Duration = "5min"
    checkpoint_rounding: Literal["ceil", "floor"] = "ceil"
    silent_errors: Annotated[float, msgspec.Meta(ge=0)] | None = None
    silent_error_probability: Annotated[float, msgspec.Meta(ge=0, lt=1)] | None = None
    operations: str | None = None
    cores_per_node: Annotated[int, msgspec.Meta(ge=1)] = 1
    walltime_kills: WalltimeKills = "wasted"
    seed: Annotated[int, msgspec.Meta(ge=0)] = 0


def _options(failures: FailureOptions | None, given: dict[str, Any]) -> ScenarioOptions:
    """The options of a scenario.

    Raises
    ------
    InputError
        For an option that there is not, a value that cannot be, and a seed that is said twice.
    """
    if "seed" in given and failures:
        raise InputError("is said twice", "--seed", "failures(..., seed=...) alone")
    try:
        told = msgspec.structs.asdict(msgspec.convert(given, RunOptions))
    except msgspec.ValidationError as error:
        raise InputError(str(error), "run", ", ".join(RunOptions.__struct_fields__)) from None
    for name in ("checkpoint_cost", "recovery_cost"):
        told[name] = parse_duration(told[name])
    if told["operations"] is not None:
        told["operations"] = Path(told["operations"])
    return ScenarioOptions(**{**told, **(msgspec.structs.asdict(failures) if failures else {})})


def _plain(options: ScenarioOptions) -> dict[str, Any]:
    values = msgspec.structs.asdict(options)
    if options.correlation == NONE:
        for name in OF_CORRELATIONS:
            del values[name]
    law = values.pop("law")
    if law is not None:
        values["law"] = {"name": name_of(law), **law.identity()}
    for name in ("failures", "operations"):
        if values[name] is not None:
            values[name] = {"file": values[name].name, "sha256": file_hash(values[name])}
    return values
