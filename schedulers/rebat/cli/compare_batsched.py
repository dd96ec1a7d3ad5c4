# SPDX-License-Identifier: Apache-2.0
"""``rebat compare --batsched``: compare the batsched-* presets with Batsched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebat.core.errors import InputError
from rebat.core.formatting import counted

if TYPE_CHECKING:
    from rebat.results.compare.schedules import Comparison

TIMEOUT_S = 600.0
"""Maximum time to wait for a reply of Batsched, in seconds."""

Compared = tuple[str, str, "Comparison"]
"""A result: preset, source of Batsched's schedule (``recorded`` or ``running``), comparison."""


def with_batsched(
    workload: Path, policies: Sequence[str], endpoint: str | None, tolerance_s: float
) -> Iterator[Compared]:
    """Compare each policy with the recorded schedule and with a running Batsched.

    The running Batsched listens at ``endpoint``. If ``endpoint`` is None, the function starts the
    program batsched on the PATH. In a comparison, A is Batsched and B is the embedded engine.
    """
    from rebat.campaign.batsched import (
        VARIANTS,
        embedded,
        installed,
        listening,
        played,
        recorded,
        recorded_of,
    )
    from rebat.console.progress import compiling_notice, simulation_bar
    from rebat.results.compare.schedules import compare
    from rebat.results.files.batsim_files import read_jobs
    from rebat.workloads.load import load_workload

    chosen = list(policies or VARIANTS)
    if endpoint is not None and len(chosen) != 1:
        expected = f"--policy {' or '.join(VARIANTS)}"
        raise InputError("needs exactly one policy", "--endpoint", expected)
    files, program = recorded_of(workload), installed()
    if not files and program is None and endpoint is None:
        raise InputError(
            "has no recorded Batsched schedule, and batsched is not on the PATH",
            str(workload),
            f"{' or '.join(recorded())}, or Batsched 1.4 on the PATH",
        )
    jobs = load_workload(workload)
    with compiling_notice():
        for policy in chosen:
            with simulation_bar(policy, len(jobs.jobs)) as on_progress:
                ours = embedded(jobs, policy, on_progress)
            if policy in files:
                yield policy, "recorded", compare(read_jobs(files[policy]), ours, tolerance_s)
            if endpoint is None and program is None:
                continue
            source = listening(str(program), policy) if endpoint is None else nullcontext(endpoint)
            with source as address, simulation_bar("batsched", len(jobs.jobs)) as on_progress:
                theirs = played(jobs, policy, address, TIMEOUT_S, on_progress)
            yield policy, "running", compare(theirs, ours, tolerance_s)


def batsched_record(compared: Compared) -> dict[str, Any]:
    """Return comparisons as plain data. A is Batsched and B is the embedded engine."""
    from rebat.results.compare.schedules import comparison_facts

    policy, source, result = compared
    return {"policy": policy, "source": source, **comparison_facts(result, allocations=True)}


def verdict(compared: Compared) -> str:
    """Return a line with the preset, the source of Batsched's schedule and the differences."""
    policy, source, result = compared
    n_jobs = len(result.keys)
    if result.same(allocations=True):
        outcome = f"equal, {counted(n_jobs, 'job')} with the same states, times and nodes"
    else:
        alone = len(result.only_a) + len(result.only_b)
        outcome = (
            f"DIFFERENT: {counted(n_jobs, 'job')} in both runs (different times or states: "
            f"{len(result.differing)}, different nodes: {result.other_nodes}), "
            f"{counted(alone, 'job')} in only one run"
        )
    return f"{policy:<22} against {source} Batsched: {outcome}"
