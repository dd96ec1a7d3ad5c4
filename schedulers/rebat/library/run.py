# SPDX-License-Identifier: Apache-2.0
"""``rebat.run``: policies on a workload, from Python."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from rebat.console.output import tell
from rebat.core.declared import converted
from rebat.core.errors import InputError, short, unknown_name
from rebat.core.jobs import Workload
from rebat.library import remarks
from rebat.library.checks import given_of, in_python, python_spelling
from rebat.library.choosing import Policies
from rebat.library.failures import Duration
from rebat.library.many import SeedOptions
from rebat.library.remarks import Remark
from rebat.library.result import Result
from rebat.library.study import study
from rebat.library.workloads import LoadedWorkload, kept, load_workload
from rebat.runs.comparing import failure_lines
from rebat.runs.options import FailureOptions, ScenarioOptions


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
        ``cores_per_node``, ``walltime_kills``, ``max_attempts``, ``accounting``: each as the option
        of ``rebat run``; ``seed``, where nothing but silent errors is drawn.

    Returns
    -------
    Result
        With ``jobs``, ``attempts``, ``nodes`` and ``metrics`` as pandas DataFrames. When some of
        several policies fail, a warning says so, ``failed`` has the reasons, and the others'
        results are complete.

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
    given = dict(options)
    many = {
        "seeds": seeds, "until_width": until_width, "until_metric": until_metric,
        "workers": workers,
    }  # fmt: skip
    options |= {"checkpoint": checkpoint, "nodes": nodes, "window": window, "select": select}
    with in_python(), tempfile.TemporaryDirectory() as folder:
        found = study(
            lambda: _read(workload, Path(folder)),
            policies,
            _options(failures, options),
            given_of(failures, given),
            converted(many, SeedOptions),
        )
        _warn(found.remarks)
        for remark in found.of_checkpoints:
            tell(f"rebat: {remark.kind}: {python_spelling(remark.text)}")
        result = found.run()
        _warn(remarks.of_results(result.runs))
        _warn(Remark("warning", f"failed: {line}") for line in failure_lines(result.failed))
        return result


def _warn(some: Iterable[Remark]) -> None:
    for remark in some:
        if remark.kind == "warning":
            warnings.warn(python_spelling(remark.text), stacklevel=3)


def _read(workload: Workload | str | Path, folder: Path) -> LoadedWorkload:
    if isinstance(workload, Workload):
        return kept(workload, folder)
    if isinstance(workload, str | Path):
        return load_workload(workload)
    expected = "a file, a name, or what rebat.load_workload gives"
    raise InputError(f"is a {type(workload).__name__}", "workload", expected)


OPTIONS = (
    "seed",
    *(n for n in ScenarioOptions.__struct_fields__ if n not in FailureOptions.__struct_fields__),
)
"""The options of a scenario that `run` takes itself."""


def _options(failures: FailureOptions | None, given: dict[str, Any]) -> ScenarioOptions:
    """The options of a scenario.

    Raises
    ------
    InputError
        For an option that there is not, a value that cannot be, and a seed that is said twice.
    """
    if failures is not None and not isinstance(failures, FailureOptions):
        raise InputError(f"is {short(failures)}", "failures", "what rebat.failures(...) gives")
    for name in given:
        if name in FailureOptions.__struct_fields__ and name != "seed":
            raise InputError(f"says how nodes fail: rebat.failures({name}=...)", name)
        if name not in OPTIONS:
            raise unknown_name("option of run", name, OPTIONS)
    drawn = {"silent_errors", "silent_error_probability"} & given.keys()
    if "seed" in given and (failures or not drawn):
        raise InputError("has no effect", "--seed", "failures(..., seed=...), or silent errors")
    options = converted(given, ScenarioOptions)
    if failures is None:
        return options
    of_failures = {name: getattr(failures, name) for name in FailureOptions.__struct_fields__}
    return msgspec.structs.replace(options, **of_failures)
