# SPDX-License-Identifier: Apache-2.0
"""What determines the result of a simulation, and so makes its key: this and nothing else.

Names of grids, of workloads and of files, and aliases of policies, do not count; the content of
the input does, and that of files with policies and rules of one's own (not of what they import).
``RESULTS_FORMAT`` stands for the program.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from rebat.core.files import file_hash
from rebat.core.jobs import Workload
from rebat.core.options import MAX_ATTEMPTS
from rebat.models.failures.laws import name_of
from rebat.policies.own_policy import OwnPolicy
from rebat.policies.preset import identity as policy_identity
from rebat.policies.presets import Preset, scheduler
from rebat.results.measures.summary import parse_selection, parse_window
from rebat.runs.spec import FailureScenario, RunSpec, Source
from rebat.workloads.generate import generator

RESULTS_FORMAT = 8
"""Raise it with every change that makes a run's result another: of its form, or of its numbers."""


def content_hash(source: Source) -> str:
    """sha256 of a file as it is, or of the jobs that a generator makes."""
    if source.file is None:
        return hashlib.sha256(_jobs_bytes(generated(source))).hexdigest()
    return file_hash(Path(source.file))


def generated(source: Source) -> Workload:
    """The workload of a generator."""
    return generator(source.generator or "")(source.seed)


def scheduler_of(spec: RunSpec) -> Preset | OwnPolicy:
    """A run's scheduler; files of one's own are read now."""
    return scheduler(spec.policy, Path(spec.folder))


def identity(spec: RunSpec, content: str) -> dict[str, Any]:
    """All that determines a run's result, as plain JSON values without names or paths."""
    workload: dict[str, Any] = {"sha256": content}
    if spec.source.file is not None:
        workload["options"] = spec.source.options
        workload["reader"] = Path(Path(spec.source.file).name.removesuffix(".gz")).suffix.lower()
    scenario = spec.scenario
    value: dict[str, Any] = msgspec.to_builtins(
        {
            "format": RESULTS_FORMAT,
            "workload": workload,
            "policy": policy_identity(scheduler_of(spec)),
            "nodes": scenario.nodes,
            "cores_per_node": scenario.cores_per_node,
            "failures": _failures(scenario.failures),
            "checkpoint": scenario.checkpoint,
            "window": parse_window(scenario.window),
            "select": parse_selection(scenario.select),
        }
        | ({"silent_errors": scenario.silent_errors} if scenario.silent_errors else {})
        | ({"walltime_kills": "useful"} if scenario.walltime_kills == "useful" else {})
        | ({"max_attempts": most} if (most := scenario.max_attempts) != MAX_ATTEMPTS else {})
        | ({"accounting": "program"} if scenario.accounting == "program" else {})
        | ({"operations": scenario.operations.events} if scenario.operations else {})
    )
    return value


def _failures(asked: FailureScenario | None) -> dict[str, Any] | None:
    if asked is None:
        return None
    drawn = {"seed": asked.seed, "horizon_s": asked.horizon_s}
    if asked.begin_s:
        drawn["begin_s"] = asked.begin_s
    return {"model": name_of(asked.law), **asked.law.identity(), **drawn}


def _jobs_bytes(workload: Workload) -> bytes:
    return msgspec.json.encode([workload.n_nodes, workload.jobs, workload.profiles])
