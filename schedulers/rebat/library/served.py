# SPDX-License-Identifier: Apache-2.0
"""Simulations that ``rebat serve`` decided for, compared as embedded runs are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rebat.core.errors import InputError
from rebat.core.jobs import Workload
from rebat.library.result import Result
from rebat.policies.presets import Preset, scheduler
from rebat.results.measures.summary import Layout, Measures, summarise
from rebat.runs.comparing import PolicyRuns
from rebat.runs.single import RunResult, layout_of
from rebat.session.session import Session


def served(policies: Sequence[str], sessions: Sequence[Session], cores_per_node: int) -> Result:
    """The result of one simulation per policy, each with its ended session.

    Raises
    ------
    InputError
        When the simulations were of different workloads or machines.
    """
    facts = [_facts(session) for session in sessions]
    for policy, fact in zip(policies, facts, strict=True):
        if fact != facts[0]:
            what = f"policy {policy} had {fact}, policy {policies[0]} {facts[0]}"
            raise InputError(what, expected="one workload and one machine for all policies")
    runs = [
        _run(policy, session, cores_per_node)
        for policy, session in zip(policies, sessions, strict=True)
    ]
    file, n_nodes = facts[0]
    provenance: dict[str, Any] = {
        "workload": {"file": file},
        "options": {"nodes": n_nodes, "cores_per_node": cores_per_node, "served": True},
    }
    return Result.of_runs(PolicyRuns(runs, {}, [()] * len(runs)), 0, provenance)


def _facts(session: Session) -> tuple[str, int]:
    """Names of the workload files, and the number of nodes."""
    began = session.began
    if began is None:
        raise InputError("the simulation has not begun")
    return ", ".join(Path(path).name for path in began.workloads.values()), began.n_nodes


def _run(policy: str, session: Session, cores_per_node: int) -> RunResult:
    """What a session recorded; the jobs' own table is written by the simulator."""
    _, n_nodes = _facts(session)
    layout = Layout(cores_per_node=cores_per_node)
    chosen = scheduler(policy)
    if isinstance(chosen, Preset):
        layout = layout_of(chosen, Workload("served", n_nodes, (), {}), n_nodes, layout)
    summary, rows = summarise(session.ledger, n_nodes, Measures(), layout)
    return RunResult(policy, summary, rows, session.ledger, [])
