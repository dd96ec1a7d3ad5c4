# SPDX-License-Identifier: Apache-2.0
"""A unit of work, for example a simulation, and its key: the hash of all that determines results.

The identity of a simulation is exactly the data that determines its result. It includes the
contents of input files and of files with user-defined policies and rules, but not the modules that
these files import. It excludes names of grids, workloads and files, and aliases of policies.
``RESULTS_FORMAT`` represents the program version.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec

from rebat.core.jobs import Workload
from rebat.models.failures.laws import name_of
from rebat.policies.own_policy import OwnPolicy
from rebat.policies.presets import Preset, scheduler
from rebat.results.measures.summary import parse_selection, parse_window
from rebat.runs.scenario import FailureScenario, Scenario
from rebat.workloads.load import load_workload, workload_hash

RESULTS_FORMAT = 10
"""Number that must be incremented with each change of the program that changes results of runs."""


class Source(msgspec.Struct, frozen=True):
    """The origin of a workload: a generator with a seed, or a file with import options."""

    generator: str | None = None
    seed: int = 0
    file: str | None = None
    options: dict[str, Any] = {}


class RunSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The specification of one run."""

    grid: str
    """Name of the grid in tables."""
    workload: str
    """Name of the workload in tables."""
    policy: str
    """Name of the policy, which is also its name in tables."""
    source: Source
    scenario: Scenario = Scenario()
    kind: Any = None
    """Class of the policy, if a script or notebook defines it instead of a file."""
    folder: str = ""
    """Folder of user-defined files that the policy names."""


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """A unit of work."""

    kind: str
    """Key of `campaign.kinds.KINDS`."""
    grid: str
    """Name of the grid."""
    about: str
    """Readable description."""
    spec: Any
    """Specification, of a type that depends on the kind."""
    labels: dict[str, Any]
    """Columns that identify the unit in the results table."""
    identity: dict[str, Any]
    """Data from which the key is computed, as plain JSON values.

    Its structure depends on the kind of unit. Names of grids and files are not included.
    """
    key: str


def key_of(identity: Any) -> str:
    """Return the key of a unit with this identity."""
    return hashlib.sha256(canonical(identity).encode()).hexdigest()


def canonical(value: Any) -> str:
    """Return canonical JSON. Equal values have equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def content_hash(source: Source) -> str:
    """Return the sha256 of a file, or of the jobs of a generator."""
    if source.file is not None:
        return workload_hash(Path(source.file))
    workload = generated(source)
    jobs = msgspec.json.encode([workload.n_nodes, list(workload.jobs), workload.profiles])
    return hashlib.sha256(jobs).hexdigest()


def generated(source: Source) -> Workload:
    """Return the workload of a generator."""
    from rebat.workloads.generate import generator  # runs of files need no generators

    return generator(source.generator or "")(source.seed)


def n_nodes_of(source: Source) -> int:
    """Return the number of nodes of a workload's machine."""
    if source.file is None:
        return generated(source).n_nodes
    return load_workload(Path(source.file), **source.options).n_nodes


def scheduler_of(spec: RunSpec) -> Preset | OwnPolicy:
    """Return the scheduler of a run. If it is user-defined, read its file."""
    if spec.kind is not None:
        return OwnPolicy.of_class(spec.kind)
    return scheduler(spec.policy, Path(spec.folder))


def identity(spec: RunSpec, content: str, policy: Any) -> dict[str, Any]:
    """Return the identity of a run as plain JSON values, without names or paths.

    ``content`` is the hash of the workload, and ``policy`` is the identity of the policy. Except
    for the first conditions, options with their defaults are omitted, so that keys remain the same
    when an option is added.
    """
    workload: dict[str, Any] = {"sha256": content}
    if spec.source.file is not None:
        workload["options"] = spec.source.options
        workload["reader"] = Path(Path(spec.source.file).name.removesuffix(".gz")).suffix.lower()
    scenario, usual = spec.scenario, Scenario().conditions
    first = {
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
    changed = {
        name: value
        for name, value in scenario.conditions.items()
        if name not in first and value != usual[name]
    }
    value: dict[str, Any] = msgspec.to_builtins(
        first
        | ({"silent_errors": scenario.silent_errors} if scenario.silent_errors else {})
        | changed
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
