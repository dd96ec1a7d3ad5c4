# SPDX-License-Identifier: Apache-2.0
"""The identity of a simulation: exactly the data that determines its result.

The key of a simulation is the hash of its identity. The identity includes the contents of input
files and of files with user-defined policies and rules, but not the modules that these files
import. It excludes names of grids, workloads and files, and aliases of policies. ``RESULTS_FORMAT``
represents the program version.
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
from rebat.policies.presets import Preset, scheduler
from rebat.results.measures.summary import parse_selection, parse_window
from rebat.runs.spec import FailureScenario, RunSpec, Source

RESULTS_FORMAT = 8
"""Number that must be incremented with each change of the program that changes results of runs."""


def content_hash(source: Source) -> str:
    """Return the sha256 of a file, or of the jobs of a generator."""
    if source.file is None:
        return hashlib.sha256(_jobs_bytes(generated(source))).hexdigest()
    return file_hash(Path(source.file))


def generated(source: Source) -> Workload:
    """Return the workload of a generator."""
    from rebat.workloads.generate import generator  # runs of files need no generators

    return generator(source.generator or "")(source.seed)


def scheduler_of(spec: RunSpec) -> Preset | OwnPolicy:
    """Return the scheduler of a run. If it is user-defined, read its file."""
    if spec.kind is not None:
        return OwnPolicy.of_class(spec.kind)
    return scheduler(spec.policy, Path(spec.folder))


def identity(spec: RunSpec, content: str, policy: Any) -> dict[str, Any]:
    """Return the identity of a run as plain JSON values, without names or paths.

    ``content`` is the hash of the workload, and ``policy`` is the identity of the policy.
    """
    workload: dict[str, Any] = {"sha256": content}
    if spec.source.file is not None:
        workload["options"] = spec.source.options
        workload["reader"] = Path(Path(spec.source.file).name.removesuffix(".gz")).suffix.lower()
    scenario = spec.scenario
    value: dict[str, Any] = msgspec.to_builtins(
        {
            "format": RESULTS_FORMAT,
            "workload": workload,
            "policy": policy,
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


def _failures(failures: FailureScenario | None) -> dict[str, Any] | None:
    if failures is None:
        return None
    drawn = {"seed": failures.seed, "horizon_s": failures.horizon_s}
    if failures.begin_s:
        drawn["begin_s"] = failures.begin_s
    return {"model": name_of(failures.law), **failures.law.identity(), **drawn}


def _jobs_bytes(workload: Workload) -> bytes:
    return msgspec.json.encode([workload.n_nodes, list(workload.jobs), workload.profiles])
