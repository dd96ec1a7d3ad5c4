# SPDX-License-Identifier: Apache-2.0
"""Detection of network latency: all jobs leave failed nodes a little later than the failure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from rebat.core.units import US_PER_S
from rebat.results.files.batsim_files import JobRecord, JobsFile
from rebat.results.validate.findings import Finding, Reference
from rebat.results.validate.sweep import sweep
from rebat.results.validate.validate import validate

MOST_US = US_PER_S
"""Maximum delay that counts as latency. Batsim's platforms have less than 10 ms."""


class Latency(msgspec.Struct, frozen=True):
    """A delay (us) that explains findings, and the findings that are left with this slack."""

    us: int
    left: list[Finding]


def latency(jobs: JobsFile, reference: Reference, findings: Sequence[Finding]) -> Latency | None:
    """Return the delay that explains findings, or None if no network latency explains them.

    Every job on a failed node must have left the node within `MOST_US`.
    """
    if reference.slack_us or not findings:
        return None
    delays = [*_after_failures(jobs.records, reference), *_after_walltimes(jobs.records)]
    if not delays or max(delays) > MOST_US:
        return None
    slack_us = max(delays)
    left = validate(jobs, msgspec.structs.replace(reference, slack_us=slack_us))
    return Latency(slack_us, left) if len(left) < len(findings) else None


def _after_failures(rows: Sequence[JobRecord], reference: Reference) -> Iterator[int]:
    """Yield for how long jobs held a failed node, without the time for which they hung."""
    for clash in sweep(rows, reference.events, hung_us=reference.hung_us):
        row, left_us = clash.row, clash.row.left_us
        if clash.kind == "dead node" and left_us is not None and row.start_us != clash.at_us:
            yield left_us - clash.at_us - reference.hung_us.get(row.job_id, 0)


def _after_walltimes(rows: Sequence[JobRecord]) -> Iterator[int]:
    """Yield for how long jobs ran after their walltimes."""
    for row in rows:
        held_us, walltime_us = row.held_us, row.walltime_us
        if held_us is not None and walltime_us is not None and held_us > walltime_us:
            yield held_us - walltime_us
