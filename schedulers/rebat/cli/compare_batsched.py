# SPDX-License-Identifier: Apache-2.0
"""``rebat compare --batsched``: Batsched's presets against Batsched itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rebat.core.errors import InputError

if TYPE_CHECKING:
    from rebat.report.compare import Comparison

TIMEOUT_S = 600.0
"""How long an installed Batsched may take for one answer."""

Compared = tuple[str, str, "Comparison"]
"""Preset, what it is compared with (``recorded`` or ``installed``), the comparison."""


def with_batsched(workload: Path, tolerance_s: float) -> Iterator[Compared]:
    """Compare each preset with the recorded schedule, and with the Batsched on the PATH.

    The schedule of Batsched is A, that of the embedded engine is B.

    Raises
    ------
    InputError
        When there is neither a recorded schedule of the workload nor a Batsched.
    """
    from rebat.campaign.batsched import (
        VARIANTS,
        embedded,
        installed,
        played,
        recorded,
        recorded_of,
    )
    from rebat.console.progress import compiling_notice, simulation_bar
    from rebat.report.batsim_files import read_jobs
    from rebat.report.compare import compare
    from rebat.workloads.load import load_workload

    files, program = recorded_of(workload), installed()
    if not files and program is None:
        raise InputError(
            "no recorded Batsched schedule, and no batsched on the PATH",
            str(workload),
            f"{' or '.join(recorded())}, or Batsched 1.4 on the PATH",
        )
    jobs = load_workload(workload)
    with compiling_notice():
        for policy in VARIANTS:
            with simulation_bar(policy, len(jobs.jobs)) as on_progress:
                ours = embedded(jobs, policy, on_progress)
            if policy in files:
                yield policy, "recorded", compare(read_jobs(files[policy]), ours, tolerance_s)
            if program is not None:
                with simulation_bar("batsched", len(jobs.jobs)) as on_progress:
                    theirs = played(jobs, policy, program, TIMEOUT_S, on_progress)
                yield policy, "installed", compare(theirs, ours, tolerance_s)


def verdict(compared: Compared) -> str:
    """One line: the preset, what it is compared with, and how many jobs differ."""
    policy, source, result = compared
    n_jobs = len(result.pairs)
    if result.same(allocations=True):
        said = f"equal, {n_jobs} jobs with the same states, times and nodes"
    else:
        apart = len(result.only_a) + len(result.only_b)
        said = (
            f"DIFFERENT: of {n_jobs} jobs in both, {len(result.differing)} have another time or "
            f"state, {result.other_nodes} other nodes; {apart} jobs are in one only"
        )
    return f"{policy:<22} against {source} Batsched: {said}"
