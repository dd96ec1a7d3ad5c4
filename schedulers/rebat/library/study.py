# SPDX-License-Identifier: Apache-2.0
"""A set of policies that run on a workload: checks, preparation and runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from rebat.console.output import print_line
from rebat.console.progress import compiling_notice, counting_bar, simulation_bar
from rebat.core.errors import InputError
from rebat.core.files import file_hash
from rebat.core.jobs import Workload
from rebat.library import remarks
from rebat.library.checks import (
    UsedOptions,
    check_options,
    error_at,
)
from rebat.library.choosing import Policies, chosen
from rebat.library.many import SeedOptions
from rebat.library.node_names import errors_name_nodes, names_in, node_list
from rebat.library.provenance import CommandLine, Origin, origin_of
from rebat.library.remarks import Remark
from rebat.library.result import Result
from rebat.library.workloads import LoadedWorkload
from rebat.models.failures.correlated import NONE
from rebat.models.failures.law import Law
from rebat.models.failures.laws import name_of
from rebat.models.failures.recorded import Recorded, Trace
from rebat.results.comparison import Seeds
from rebat.results.measures.summary import parse_selection, parse_window
from rebat.runs.scenario import OPTIONS, Scenario, ScenarioOptions, grouped
from rebat.runs.seeds import SeedRuns, run_seeds
from rebat.runs.single import Runnable, RunResult, run_each
from rebat.runs.staging import Stage, prepared, staged


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """Policies with a prepared workload and scenario, ready to run."""

    policies: list[Any]
    workload: LoadedWorkload
    stage: Stage
    options: ScenarioOptions
    many: SeedOptions
    origin: Origin
    uses_law_mtbf: bool = False
    explain: bool = False
    """Whether the runs record their plans."""

    @property
    def remarks(self) -> list[Remark]:
        """Notes and warnings about the input."""
        notes = [*remarks.of_input(self.stage.workload, self.options, self.stage.n_nodes)]
        notes += remarks.of_operations(self.options.operations, self.stage.operations)
        if self.uses_law_mtbf and self.options.mtbf is not None:
            file = self.options.failures
            source = "the failure law" if file is None else file.name
            notes.append(remarks.of_law_mtbf(self.options.mtbf, source))
            notes += _of_record(self.options, self.options.mtbf, self.workload)
        return notes + self.of_partitions + self.of_checkpoints

    @property
    def of_checkpoints(self) -> list[Remark]:
        """A note about jobs that are too short for a checkpoint, if there are any."""
        model, n_nodes = self.stage.scenario.checkpoint, self.stage.n_nodes
        return [*remarks.of_checkpoints(self.workload, model, n_nodes)]

    @property
    def of_partitions(self) -> list[Remark]:
        """A note if recorded partitions with different nodes are simulated as one machine."""
        return [*remarks.of_partitions(self.workload)]

    def of_waits(self, result: Result) -> list[Remark]:
        """Return a note if all simulated mean waits are far from the recorded mean wait."""
        waits_s = {p: result.seeds.mean(p)("service_wait_mean_s") for p in result.policies}
        recorded_s = (self.workload.machine or {}).get("mean_wait_s")
        return [*remarks.of_waits(recorded_s, waits_s)]

    @property
    def provenance(self) -> dict[str, Any]:
        """The workload with its hash, and all options."""
        jobs, notes = len(self.stage.workload.jobs), self.stage.workload.notes
        names = node_list(self.workload, self.stage.n_nodes)
        return {
            "workload": {
                "file": Path(self.workload.origin.file or "").name,
                "sha256": self.workload.sha256,
                "jobs": jobs,
                **({"notes": notes} if notes else {}),
                **({"nodes": names} if names else {}),
            },
            "options": {
                "nodes": self.stage.n_nodes,
                "window": self.options.window,
                "select": self.options.select,
                **_plain(self.options),
            },
        }

    def run(self) -> Result:
        """Run all policies, with progress on standard error."""
        with compiling_notice():
            return self._seeds() if self.many.many else self._once()

    def _once(self) -> Result:
        done = run_each(self.policies, self._run_one)
        return Result.of_runs(done, self.options.seed, self.provenance, self.origin)

    def _run_one(self, policy: Runnable) -> RunResult:
        with simulation_bar(policy.name, len(self.stage.workload.jobs)) as on_progress:
            return self.stage.run(
                policy,
                on_progress,
                lambda text: print_line(f"rebat: warning: {text}"),
                self.explain,
            )

    def _seeds(self) -> Result:
        self._check_drawn()
        names = {p.name: getattr(p, "place", p.name) or p.name for p in self.policies}
        kinds = {p.name: p.kind for p in self.policies if not getattr(p, "place", p.name)}
        n_seeds = self.many.n_seeds
        runs = SeedRuns(
            self.workload.origin,
            names,
            self._scenario,
            self.options.seed,
            n_seeds,
            self.many.workers or len(os.sched_getaffinity(0)),
            self.many.narrow(),
            kinds,
        )
        with counting_bar("runs", n_seeds * len(names)) as on_progress:
            seeds: Seeds = run_seeds(runs, on_progress)
        return Result.of_seeds(seeds, self.provenance, self.origin)

    def _scenario(self, seed: int) -> Scenario:
        options = msgspec.structs.replace(self.options, seed=seed)
        return options.scenario()

    def _check_drawn(self) -> None:
        scenario = self._scenario(self.options.seed)
        failures = scenario.failures
        if not (failures and failures.law.seeded) and scenario.silent_errors is None:
            law = failures.law if failures else None
            expected = _random_failures(law, scenario.cores_per_node)
            raise InputError("has no effect: nothing is random", "--seeds", expected)


def _of_record(options: ScenarioOptions, mtbf_s: float, workload: Workload) -> Iterator[Remark]:
    law = options.single_law()
    if isinstance(law, Recorded | Trace):
        begin_s = options.begin or 0.0
        yield from remarks.of_record_end(
            law.file, mtbf_s, law.length_s, workload, begin_s, "--mtbf"
        )


def _random_failures(law: Law | None, cores_per_node: int) -> str:
    """Return which options make a run random. ``law`` is a law that does not depend on the seed."""
    if law is None:
        return "--mtbf, --law or --silent-errors as well"
    if isinstance(law, Trace):
        numbers = " (the file must contain numbers of nodes)" if cores_per_node > 1 else ""
        turned = f"--law record:file={law.file},turn=true{numbers} in place of these failures"
        return f"{turned}, or --silent-errors as well"
    return "turn=true in the law of recorded failures, or --silent-errors as well"


def study(
    workload: Callable[[], LoadedWorkload],
    policies: Policies,
    options: ScenarioOptions,
    used: UsedOptions,
    many: SeedOptions,
    command: CommandLine | None = None,
    explain: bool = False,
) -> Study:
    """Check all options, then read and prepare the workload.

    ``command`` is the command line that is recorded with the result. With ``explain``, the runs
    record their plans.
    """
    many.check()
    if explain and many.many:
        raise InputError("has no effect", "--explain", "a single seed")
    check_options(options, used)
    with error_at("--policy"):
        presets = chosen(policies, many.many)
    nodes = options.nodes
    scenario = options.with_law_mtbf(nodes).scenario()
    with error_at("--window"):
        parse_window(scenario.window)
    with error_at("--select"):
        parse_selection(scenario.select)
    jobs = workload()
    if of_law := options.uses_law_mtbf:
        options = options.with_law_mtbf(nodes or jobs.n_nodes)
        scenario = options.scenario()
    with errors_name_nodes(names_in((jobs.machine or {}).get("nodes"))):
        stage = staged(prepared(jobs, scenario), scenario)
    return Study(
        policies=presets,
        workload=jobs,
        stage=stage,
        options=options,
        many=many,
        origin=origin_of(Path(jobs.origin.file or ""), jobs.sha256, options, policies, command),
        uses_law_mtbf=of_law,
        explain=explain,
    )


def _plain(options: ScenarioOptions) -> dict[str, Any]:
    hidden = {"nodes", "window", "select", "law"}
    if options.correlation == NONE:
        hidden |= {*grouped("correlation")}
    values = {name: getattr(options, name) for name in OPTIONS if name not in hidden}
    law = options.law
    if law is not None:
        values["law"] = {"name": name_of(law), **law.identity()}
    for name in ("failures", "operations"):
        if values[name] is not None:
            values[name] = {"file": values[name].name, "sha256": file_hash(values[name])}
    return values
