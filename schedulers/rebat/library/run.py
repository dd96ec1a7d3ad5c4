# SPDX-License-Identifier: Apache-2.0
"""``rebat.run``: simulate policies on a workload, from Python."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from rebat.console.output import print_remarks
from rebat.core.declared import converted
from rebat.core.errors import InputError, short, unknown_name
from rebat.core.jobs import Workload
from rebat.library import remarks
from rebat.library.checks import in_python, options_of_call, python_spelling
from rebat.library.choosing import Policies
from rebat.library.failures import Duration, Failures
from rebat.library.many import SeedOptions
from rebat.library.remarks import Remark
from rebat.library.result import Result
from rebat.library.signatures import lists, options_in
from rebat.library.study import study
from rebat.library.workloads import LoadedWorkload, as_file, load_workload
from rebat.runs.scenario import OF_FAILURES, ScenarioOptions
from rebat.runs.scenario import OPTIONS as ALL_OPTIONS
from rebat.runs.single import failure_lines

OPTIONS = ("seed", *(name for name in ALL_OPTIONS if name not in OF_FAILURES))
"""The options of a scenario that are arguments of `run`."""


@lists(options_in(ScenarioOptions, *OPTIONS))
def run(
    workload: Workload | str | Path,
    policies: Policies,
    *,
    failures: Failures | None = None,
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
        A workload, or an argument of `load_workload`.
    policies : str, class, or several of them
        Policy names (see ``rebat.policies()``), with axes if needed: ``"baseline:depth=easy"``.
        A custom policy is ``"FILE.py:CLASS"`` or a class.
    failures : Failures, optional
        How nodes fail, from `failures` (default: no failures).
    checkpoint : {"none", "young-daly", "perfect"}
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
        signature lists them. ``seed`` is the seed of the silent errors. It is allowed only if
        ``failures`` is not set.

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
    >>> from rebat.library.failures import failures
    >>> result = run("toy", ["baseline", "sfsj"], failures=failures(file="toy"))
    >>> result.jobs.groupby("policy")["flow"].max()
    policy
    baseline    25.0
    sfsj        21.0
    Name: flow, dtype: float64
    """
    used = dict(options)
    many = {
        "seeds": seeds,
        "until_width": until_width,
        "until_metric": until_metric,
        "workers": workers,
    }
    options |= {"checkpoint": checkpoint, "nodes": nodes, "window": window, "select": select}
    with in_python(), tempfile.TemporaryDirectory() as folder:
        comparison = study(
            lambda: _read(workload, Path(folder)),
            policies,
            scenario_options_of(failures, options),
            options_of_call(failures, used),
            converted(many, SeedOptions),
            explain=explain,
        )
        _warn(comparison.remarks)
        notes = [*comparison.of_partitions, *comparison.of_checkpoints]
        print_remarks((kind, python_spelling(text)) for kind, text in notes)
        result = comparison.run()
        print_remarks(comparison.of_waits(result))
        _warn(remarks.of_results(result.runs))
        _warn(Remark("warning", f"failed: {line}") for line in failure_lines(result.failed))
        return result


def _warn(all_remarks: Iterable[Remark]) -> None:
    for remark in all_remarks:
        if remark.kind == "warning":
            warnings.warn(python_spelling(remark.text), stacklevel=3)


def _read(workload: Workload | str | Path, folder: Path) -> LoadedWorkload:
    if isinstance(workload, Workload):
        return as_file(workload, folder)
    if isinstance(workload, str | Path):
        return load_workload(workload)
    expected = "a file, a name, or a workload from rebat.load_workload"
    raise InputError(f"is a {type(workload).__name__}", "workload", expected)


def scenario_options_of(failures: Failures | None, arguments: dict[str, Any]) -> ScenarioOptions:
    """Return the options of a scenario.

    Raises
    ------
    InputError
        If an option is unknown, a value is invalid, or a seed has no effect.
    """
    if failures is not None and not isinstance(failures, Failures):
        raise InputError(f"is {short(failures)}", "failures", "rebat.failures(...)")
    for name in arguments:
        if name in OF_FAILURES and name != "seed":
            raise InputError("is an option of failures", name, f"rebat.failures({name}=...)")
        if name not in OPTIONS:
            raise unknown_name("option of run", name, OPTIONS)
    drawn = {"silent_errors", "silent_error_probability"} & arguments.keys()
    if "seed" in arguments and (failures or not drawn):
        raise InputError(
            "has no effect", "--seed", "failures(..., seed=...), or silent errors without failures"
        )
    options = converted(arguments, ScenarioOptions)
    if failures is None:
        return options
    of_failures = {name: getattr(failures, name) for name in OF_FAILURES}
    return msgspec.structs.replace(options, **of_failures)
