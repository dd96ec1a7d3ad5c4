# SPDX-License-Identifier: Apache-2.0
"""Findings of ``rebat validate`` in the files of a run."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from rebat.api.validation import validate_files
from rebat.core.jobs import Workload
from rebat.models.failures.events import MachineEvent
from rebat.results.validate.findings import Finding, Reference
from rebat.runs.single import RunResult, write_run

MEMORY = Path("/dev/shm")
"""A folder in memory, where files are written and removed faster. Not every system has it."""


def findings_in(
    result: RunResult, workload: Workload, events: Sequence[MachineEvent], slack_us: int = 0
) -> list[Finding]:
    """Write the files of a run and validate them, as the command does."""
    known = Reference(result.summary.n_nodes, events, workload, slack_us=slack_us)
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        write_run(Path(folder), result, {})
        return validate_files(Path(folder), known).findings
