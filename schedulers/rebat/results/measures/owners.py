# SPDX-License-Identifier: Apache-2.0
"""Metrics of each user or queue: the rows of rebat_users.csv and rebat_queues.csv."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rebat.results.measures.jobs import JobRows, job_times
from rebat.results.measures.service import Service, groups, service_of

COUNTED = ("attempts", "failures", "stolen", "wasted_node_seconds", "node_seconds")
"""Columns that are summed over the jobs of a group."""

GROUP_COLUMNS = ("jobs", "finished", *COUNTED, *Service.__struct_fields__)


def group_rows(rows: JobRows, column: str) -> Iterator[tuple[Any, ...]]:
    """Yield the name and `GROUP_COLUMNS` of every user or queue. Times are in seconds.

    Waiting times, flows and slowdowns include only finished jobs. They are NaN if no job finished.
    """
    for name, places in groups(rows.column(column)):
        jobs = rows[places]
        finished = jobs[jobs.has_finished]
        service = service_of(job_times(finished))
        sums = (jobs.column(field).sum().item() for field in COUNTED)
        of_service = (
            getattr(service, field) if service else float("nan")
            for field in Service.__struct_fields__
        )
        yield name, len(jobs), len(finished), *sums, *of_service
