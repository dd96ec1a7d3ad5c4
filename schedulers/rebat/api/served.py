# SPDX-License-Identifier: Apache-2.0
"""Comparison of simulations that ``rebat serve`` scheduled."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rebat.api.result import Result
from rebat.core.errors import InputError
from rebat.core.jobs import Workload
from rebat.drive.messages import Messages
from rebat.engine.jobs import ended_jobs
from rebat.policies.options import COUNTS
from rebat.policies.presets import Preset, scheduler
from rebat.results.measures.summary import Layout, Measures, summarise
from rebat.runs.single import PolicyRuns, RunResult, layout_of


def served(policies: Sequence[str], sessions: Sequence[Messages]) -> Result:
    """Compare the simulations of several policies (one each) from their completed sessions."""
    facts = [_facts(session) for session in sessions]
    for policy, fact in zip(policies, facts, strict=True):
        if fact != facts[0]:
            (files, nodes), (first_files, first_nodes) = fact, facts[0]
            problem = (
                f"policy {policy} ran {files} on {nodes} nodes, but policy {policies[0]} ran "
                f"{first_files} on {first_nodes} nodes"
            )
            raise InputError(problem, expected="the same workload and machine for all policies")
    runs = [_run(policy, session) for policy, session in zip(policies, sessions, strict=True)]
    file, n_nodes = facts[0]
    provenance: dict[str, Any] = {
        "workload": {"file": file},
        "options": {
            "nodes": n_nodes,
            **{name: getattr(sessions[0].options, name) for name in COUNTS},
            "served": True,
        },
    }
    return Result.of_runs(PolicyRuns(runs, {}, [()] * len(runs)), 0, provenance)


def _facts(session: Messages) -> tuple[str, int]:
    began = session.began
    if began is None:
        raise InputError("the simulation did not start")
    return ", ".join(Path(path).name for path in began.workloads.values()), began.n_nodes


def _run(policy: str, session: Messages) -> RunResult:
    """Return the run that a session recorded, without jobs.csv (Batsim writes this file)."""
    _, n_nodes = _facts(session)
    layout = Layout(cores_per_node=session.options.cores_per_node)
    chosen = scheduler(policy)
    if isinstance(chosen, Preset):
        layout = layout_of(chosen, Workload("served", n_nodes, (), {}), n_nodes, layout)
    summary, rows = summarise(session.ledger, n_nodes, Measures(), layout)
    return RunResult(policy, summary, rows, session.ledger, ended_jobs())
