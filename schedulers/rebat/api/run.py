# SPDX-License-Identifier: Apache-2.0
"""``rebat.run``: check, prepare and simulate policies on a workload, from Python."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from rebat.api import remarks
from rebat.api.cases import (
    FailuresOf,
    check_names,
    given_in,
    policies_of,
    single_options,
    site_in,
    with_failures_of,
)
from rebat.api.choosing import Policies, chosen
from rebat.api.failures import Duration
from rebat.api.many import SeedOptions
from rebat.api.provenance import CommandLine, Origin, origin_of
from rebat.api.remarks import Remark
from rebat.api.result import Result
from rebat.api.signatures import lists, options_in
from rebat.api.workloads import LoadedWorkload, as_file, errors_name_nodes, load_workload
from rebat.console.output import print_line, print_remarks
from rebat.console.progress import compiling_notice, counting_bar, simulation_bar
from rebat.core.declared import converted
from rebat.core.errors import InputError, error_at
from rebat.core.files import file_hash
from rebat.core.jobs import Workload
from rebat.models.failures.correlated import NONE
from rebat.models.failures.laws import name_of
from rebat.models.failures.recorded import Recorded, Trace
from rebat.results.comparison import Runs
from rebat.runs.case import PYTHON, Case, Door, case_of
from rebat.runs.scenario import FILES, OPTIONS, ScenarioOptions, grouped
from rebat.runs.single import Runnable, RunResult, failure_lines, run_each
from rebat.runs.staging import Stage, prepared, staged
from rebat.workloads.machine import machine_facts, names_in

if TYPE_CHECKING:
    from rebat.workloads.site import Site

ARGUMENTS = tuple(name for name in OPTIONS if name != "failures")
"""The options of a scenario that are arguments of `run`, besides ``failures``."""


@lists(options_in(ScenarioOptions, *ARGUMENTS))
def run(
    workload: Workload | str | Path,
    policies: Policies = (),
    *,
    failures: FailuresOf = None,
    checkpoint: str = "none",
    seeds: int | None = None,
    until_width: float | None = None,
    until_metric: str | None = None,
    workers: int | None = None,
    nodes: int | None = None,
    window: str = "auto",
    select: str = "auto",
    explain: bool = False,
    **options: Duration | None,
) -> Result:
    """Simulate policies on a workload with the embedded engine and compare them.

    Parameters
    ----------
    workload : Workload, str or Path
        A workload, or an argument of `load_workload`. A site (``site.toml``) also states the policy
        and the failures, if they are not given.
    policies : str, class, or several of them
        Policy names (see ``rebat.policies()``), with axes if needed: ``"baseline:depth=easy"``.
        A custom policy is ``"FILE.py:CLASS"`` or a class.
    failures : Failures, str or Path, optional
        How nodes fail, from `failures`, or an event file (default: no failures).
    checkpoint : {"none", "young-daly", "perfect", "tiers:auto"}
        Like the option ``rebat run --checkpoint``.
    seeds : int, optional
        Number of seeds. They are simulated on all cores. For each seed, all policies have the same
        failures. The result then has intervals, but no tables of jobs and attempts. With
        ``until_width``, this is the initial number (default: 10).
    until_width, until_metric, workers
        Like the options of ``rebat run`` with these names.
    nodes : int, optional
        Number of nodes of the machine (default: defined by the workload).
    window : str
        Time window that is measured, like the option ``rebat run --window``.
    select : str
        Jobs that are measured, like the option ``rebat run --select``.
    explain : bool
        Whether to record the plans, like the option ``rebat run --explain``. `Result.write` writes
        them.
    **options
        The other options of a scenario, like the options of ``rebat run`` with these names. The
        signature lists them.

    Returns
    -------
    Result
        Its ``jobs``, ``attempts``, ``nodes`` and ``metrics`` are pandas DataFrames. If a policy
        fails, the function warns, ``failed`` contains the reason, and the other results are
        complete.

    Raises
    ------
    InputError
        If options contradict each other, have no effect or are invalid, or if a file cannot be
        read.
    PolicyError
        If all policies fail.

    Examples
    --------
    >>> from rebat.api.failures import failures
    >>> result = run("toy", ["baseline", "sfsj"], failures=failures(file="toy"))
    >>> result.jobs.groupby("policy")["flow"].max()
    policy
    baseline    25.0
    sfsj        21.0
    Name: flow, dtype: float64
    """
    check_names(options, ARGUMENTS, "run")
    many = {
        "seeds": seeds,
        "until_width": until_width,
        "until_metric": until_metric,
        "workers": workers,
    }
    shown = {"checkpoint": checkpoint, "nodes": nodes, "window": window, "select": select}
    options |= {name: of for name, of in shown.items() if of != OPTIONS[name].default}
    with PYTHON.errors(), tempfile.TemporaryDirectory() as folder:
        comparison = study(
            lambda: _read(workload, Path(folder)),
            policies,
            given_in(failures, options),
            PYTHON,
            converted(many, SeedOptions),
            explain=explain,
            site=site_in(workload),
        )
        _warn(comparison.remarks)
        notes = [*comparison.of_partitions, *comparison.of_checkpoints]
        print_remarks((kind, PYTHON.text(text)) for kind, text in notes)
        result = comparison.run()
        print_remarks(comparison.of_waits(result))
        _warn(remarks.of_results(result.runs))
        _warn(Remark("warning", f"failed: {line}") for line in failure_lines(result.failed))
        return result


def _warn(all_remarks: Iterable[Remark]) -> None:
    for remark in all_remarks:
        if remark.kind == "warning":
            warnings.warn(PYTHON.text(remark.text), stacklevel=3)


def _read(workload: Workload | str | Path, folder: Path) -> LoadedWorkload:
    if isinstance(workload, Workload):
        return as_file(workload, folder)
    if isinstance(workload, str | Path):
        return load_workload(workload)
    expected = "a file, a name, or a workload from rebat.load_workload"
    raise InputError(f"is a {type(workload).__name__}", "workload", expected)


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """Policies with a prepared workload and scenario, ready to run."""

    policies: list[Any]
    workload: LoadedWorkload
    stage: Stage
    case: Case
    options: ScenarioOptions
    """The options of the first seed."""
    many: SeedOptions
    origin: Origin
    uses_law_mtbf: bool = False
    explain: bool = False
    """Whether the runs record their plans."""

    @property
    def remarks(self) -> list[Remark]:
        """Notes and warnings about the input."""
        notes = [*remarks.of_input(self.stage.workload, self.options, self.stage.n_nodes)]
        notes += remarks.of_users(self.stage.workload, self.policies)
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
        return [*remarks.of_partitions(self.workload, self.stage.n_nodes)]

    def of_waits(self, result: Result) -> list[Remark]:
        """Return a note if all simulated mean waits are far from the recorded mean wait."""
        waits_s = {p: result.seeds.mean(p)("service_wait_mean_s") for p in result.policies}
        recorded_s = (self.workload.machine or {}).get("mean_wait_s")
        return [*remarks.of_waits(recorded_s, waits_s)]

    @property
    def provenance(self) -> dict[str, Any]:
        """The workload with its hash, and all options."""
        jobs, notes = len(self.stage.workload.jobs), self.stage.workload.notes
        machine = machine_facts(self.workload, self.stage.n_nodes)
        return {
            "workload": {
                "file": Path(self.workload.origin.file or "").name,
                "sha256": self.workload.sha256,
                "jobs": jobs,
                **({"notes": notes} if notes else {}),
                **machine,
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
        from rebat.runs.seeds import SeedRuns, run_seeds  # a single seed needs no processes

        runs = SeedRuns(
            self.case,
            tuple(policy.name for policy in self.policies),
            {p.name: p.kind for p in self.policies if not getattr(p, "place", p.name)},
            self.workload.n_nodes,
            self.many.workers or len(os.sched_getaffinity(0)),
            self.many.narrow(),
        )
        n_runs = self.many.n_seeds * len(runs.names)
        with counting_bar("runs", n_runs) as on_progress:
            seeds: Runs[str] = run_seeds(runs, on_progress)
        return Result.of_seeds(seeds, self.provenance, self.origin)


def _of_record(options: ScenarioOptions, mtbf_s: float, workload: Workload) -> Iterator[Remark]:
    law = options.single_law()
    if isinstance(law, Recorded | Trace):
        begin_s = options.begin or 0.0
        yield from remarks.of_record_end(
            law.file, mtbf_s, law.length_s, workload, begin_s, "--mtbf"
        )


def study(
    workload: Callable[[], LoadedWorkload],
    policies: Policies,
    given: Mapping[str, Any],
    door: Door,
    many: SeedOptions,
    command: CommandLine | None = None,
    explain: bool = False,
    site: Site | None = None,
) -> Study:
    """Check all options, then read and prepare the workload.

    ``given`` contains the options of a scenario that the user set. ``command`` is the command line
    that is recorded with the result. With ``explain``, the runs record their plans. A site states
    the policy and the failures that are not given.
    """
    many.check()
    if explain and many.many:
        raise InputError("has no effect", "--explain", "a single seed")
    given = with_failures_of(site, given, many.many)
    if isinstance(policies, list | tuple):
        policies = policies_of(site, policies)
    with error_at("--policy"):
        presets = chosen(policies, many.many)
    names = [getattr(policy, "place", policy.name) or policy.name for policy in presets]
    case = many.of_seeds(case_of(given, names, door))
    options = single_options(case)
    jobs = workload()
    of_law = options.uses_law_mtbf
    options = options.with_law_mtbf(options.nodes or jobs.n_nodes)
    scenario = options.scenario()
    with errors_name_nodes(names_in((jobs.machine or {}).get("nodes"))):
        stage = staged(prepared(jobs, scenario), scenario)
    return Study(
        policies=presets,
        workload=jobs,
        stage=stage,
        case=replace(case, workloads={"workload": jobs.origin}),
        options=options,
        many=many,
        origin=origin_of(
            Path(jobs.origin.file or ""), jobs.sha256, options, policies, command, site
        ),
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
    for name in FILES:
        if values[name] is not None:
            values[name] = {"file": values[name].name, "sha256": file_hash(values[name])}
    return values
